"""Linear classifiers as starts: logistic regression and the squared hinge, along a path of C.

    minimise  Σ_i u_i·ℓ(y_i (x_i·w + b)) + ‖w‖²/(2C),   y = ±1

The intercept b is not penalised. Samples with weight u = 0 do not count, so all folds can share one matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from rankwise.linear.features import Features, Vector
from rankwise.linear.standardising import RowSpace, Standardised

__all__ = ["POINTWISE", "Classifier", "LabelledRows", "Rows", "Sums", "descend", "hessian_of", "sums_at"]

# Newton's method is faster up to so many dense features.
_NEWTON = 128
_NEWTON_ITERATIONS, _NEWTON_GAIN, _HALVINGS = 40, 1e-5, 20
_ITERATIONS, _GAIN = 300, 1e-5
# A fit starts beyond the last one, by this fraction of the difference between the last two.
_AHEAD = 0.5
# Neither class has less of the weight where a fit starts.
_LEAST = 2.0**-52
# A tiny penalty of the intercept, which makes the Hessian invertible.
_INTERCEPT_PENALTY = 1e-9


class _Loss(NamedTuple):
    """A loss of margins: its value and slope, and its second derivative."""

    at: Callable[[Vector], tuple[Vector, Vector]]
    bend: Callable[[Vector], Vector]


def _logistic(margin: Vector) -> tuple[Vector, Vector]:
    """log(1 + exp(−margin)), and its slope."""
    small = np.exp(-np.abs(margin))
    slope = np.where(margin >= 0.0, small, 1.0)
    small += 1.0
    slope /= -small
    value = np.log(small, out=small)  # faster than log1p, with an error of about 1e-16
    value -= np.minimum(margin, 0.0)
    return value, slope


def _logistic_bend(margin: Vector) -> Vector:
    slope = _logistic(margin)[1]
    return np.asarray(-slope * (1.0 + slope))


def _squared_hinge(margin: Vector) -> tuple[Vector, Vector]:
    """max(0, 1 − margin)², and its slope."""
    short = np.maximum(1.0 - margin, 0.0)
    return short**2, -2.0 * short


def _squared_hinge_bend(margin: Vector) -> Vector:
    return np.where(margin < 1.0, 2.0, 0.0)


LOGISTIC, SQUARED_HINGE = _Loss(_logistic, _logistic_bend), _Loss(_squared_hinge, _squared_hinge_bend)
# By name: the loss, and whether both classes have the same total weight.
POINTWISE = {
    "logistic": (LOGISTIC, False),
    "squared hinge": (SQUARED_HINGE, False),
    "balanced logistic": (LOGISTIC, True),
    "balanced squared hinge": (SQUARED_HINGE, True),
}


class Sums(NamedTuple):
    """Σ u·ℓ over samples, its gradient by coefficients and intercept, and the margins, for the Hessian."""

    value: float
    gradient: Vector
    margins: Any


class Rows(Protocol):
    """Labelled samples, seen as sums. total: sum of the weights. share: fraction of it that the positives have."""

    n_coefs: int
    total: float
    share: float
    is_dense: bool

    def at(self, point: Vector, loss: str) -> Sums:
        """Return the sums at given coefficients and intercept."""
        ...

    def hessian(self, margins: Any, loss: str) -> NDArray[np.float64]:
        """Return the Hessian of the value at given margins."""
        ...


class LabelledRows:
    """Samples in memory: features, relevance and weights."""

    def __init__(
        self, features: Standardised | RowSpace, relevant: NDArray[np.bool_], weights: Vector, loss: str
    ) -> None:
        if POINTWISE[loss][1]:
            weights = weights * np.where(relevant, 0.5 / weights[relevant].sum(), 0.5 / weights[~relevant].sum())
            weights *= np.count_nonzero(weights)
        self._features, self._weights = features, weights
        self._sign = np.where(relevant, 1.0, -1.0)
        self.n_coefs, self.is_dense = features.n_coefs, features.is_dense
        self.total = float(weights.sum())
        self.share = float(weights[relevant].sum()) / self.total

    def at(self, point: Vector, loss: str) -> Sums:
        """See `Rows`."""
        return sums_at(self._features, self._sign, self._weights, point, loss)

    def hessian(self, margins: Any, loss: str) -> NDArray[np.float64]:
        """See `Rows`."""
        bend = POINTWISE[loss][0].bend(margins) * self._weights
        return hessian_of(self._features.gram(bend), self._features.combine(bend), bend)


def sums_at(features: Features, sign: Vector, weights: Vector, point: Vector, loss: str) -> Sums:
    """Return `Sums` of samples in memory; sign: ±1 by sample."""
    margin = features.scores(point[:-1]) + point[-1]
    margin *= sign
    value, slope = POINTWISE[loss][0].at(margin)
    slope *= sign * weights
    return Sums(float(weights @ value), np.append(features.combine(slope), slope.sum()), margin)


def hessian_of(gram: NDArray[np.float64], combined: Vector, bend: Vector) -> NDArray[np.float64]:
    """Return the Hessian in coefficients and intercept."""
    d = combined.size
    hessian = np.empty((d + 1, d + 1))
    hessian[:d, :d], hessian[d, d] = gram, bend.sum()
    hessian[:d, d] = hessian[d, :d] = combined
    return hessian


class _At(NamedTuple):
    """The objective at a point, its gradient, and the margins there."""

    value: float
    gradient: Vector
    margins: Any


class Classifier:
    """Fits for C that grows by equal factors, each started near the last; point: coefficients and intercept."""

    def __init__(self, rows: Rows, loss: str) -> None:
        self._rows, self._loss = rows, loss
        self.point = np.zeros(rows.n_coefs + 1)
        share = min(max(rows.share, _LEAST), 1.0 - _LEAST)  # beside weights that are far larger, a class may vanish
        is_logistic = POINTWISE[loss][0] is LOGISTIC
        self.point[-1] = np.log(share / (1.0 - share)) if is_logistic else 2.0 * share - 1.0
        self._before = self.point

    def fit(self, C: float) -> Vector:
        """Return the coefficients for C."""
        if self._rows.is_dense and self._rows.n_coefs <= _NEWTON:
            self._newton(C)
        else:
            ahead = self.point + _AHEAD * (self.point - self._before)
            self._before = self.point
            self.point = descend(lambda v: self._at(v, C)[:2], ahead, _ITERATIONS, _GAIN)
        return self.point[:-1].copy()

    def _at(self, point: Vector, C: float) -> _At:
        coef, total = point[:-1], self._rows.total
        value, gradient, margins = self._rows.at(point, self._loss)
        gradient = gradient + np.append(coef / C, 0.0)
        return _At((value + float(coef @ coef) / (2.0 * C)) / total, gradient / total, margins)

    def _newton(self, C: float) -> None:
        """Newton's method. Steps are halved until the objective falls."""
        ridge = np.append(np.full(self.point.size - 1, 1.0 / C), _INTERCEPT_PENALTY)
        here = self._at(self.point, C)
        for _ in range(_NEWTON_ITERATIONS):
            hessian = self._rows.hessian(here.margins, self._loss)
            hessian[np.diag_indices(self.point.size)] += ridge
            step = cho_solve(cho_factor(hessian), here.gradient * self._rows.total)
            gain, size = float(here.gradient @ step), 1.0
            for _ in range(_HALVINGS):
                there = self._at(self.point - size * step, C)
                if there.value <= here.value - 1e-4 * size * gain:
                    break
                size *= 0.5
            else:
                return  # rounding prevents progress
            self.point, here = self.point - size * step, there
            if gain < _NEWTON_GAIN * here.value:
                return


def descend(objective: Callable[[Vector], tuple[float, Vector]], point: Vector, max_iter: int, gain: float) -> Vector:
    """Run L-BFGS from a point until a step lowers the value by less than the fraction `gain`."""
    options = {"maxiter": max_iter, "ftol": gain, "gtol": 1e-9, "maxcor": 10}
    found: Vector = minimize(objective, point, jac=True, method="L-BFGS-B", options=options).x
    return found
