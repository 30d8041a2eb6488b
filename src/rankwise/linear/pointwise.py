"""Linear classifiers as starts: logistic regression and the squared hinge, along a path of C.

    minimise  Σ_i u_i·ℓ(y_i (x_i·w + b)) + ‖w‖²/(2C),   y = ±1

The intercept b is not penalised. Samples with weight u = 0 do not count, so all folds can share one matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from rankwise.linear.features import Vector
from rankwise.linear.standardising import RowSpace, Standardised

__all__ = ["Classifier", "descend"]

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
    """A loss of margins: value and slope, second derivative, and a first intercept by the share of positives."""

    at: Callable[[Vector], tuple[Vector, Vector]]
    bend: Callable[[Vector], Vector]
    intercept: Callable[[float], float]


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


_LOSSES = {
    "logistic": _Loss(_logistic, _logistic_bend, lambda share: np.log(share / (1.0 - share))),
    "squared hinge": _Loss(_squared_hinge, _squared_hinge_bend, lambda share: 2.0 * share - 1.0),
}
# Before the name of a loss: both classes have the same total weight.
_BALANCED = "balanced "


class _At(NamedTuple):
    """The objective at a point, its gradient in coefficients and intercept, and the margins, for the Hessian."""

    value: float
    gradient: Vector
    margins: Vector


class Classifier:
    """Fits for C that grows by equal factors, each started near the last; point: coefficients and intercept."""

    def __init__(
        self, features: Standardised | RowSpace, relevant: NDArray[np.bool_], weights: Vector, name: str
    ) -> None:
        self._loss = _LOSSES[name.removeprefix(_BALANCED)]
        if name.startswith(_BALANCED):
            weights = weights * np.where(relevant, 0.5 / weights[relevant].sum(), 0.5 / weights[~relevant].sum())
            weights *= np.count_nonzero(weights)
        self._features, self._weights = features, weights
        self._sign = np.where(relevant, 1.0, -1.0)
        self._total = float(weights.sum())
        share = float(weights[relevant].sum()) / self._total
        share = min(max(share, _LEAST), 1.0 - _LEAST)  # beside weights that are far larger, a class may vanish
        self.point = np.zeros(features.n_coefs + 1)
        self.point[-1] = self._loss.intercept(share)
        self._before = self.point

    def fit(self, C: float) -> Vector:
        """Return the coefficients for C."""
        if self._features.is_dense and self._features.n_coefs <= _NEWTON:
            self._newton(C)
        else:
            ahead = self.point + _AHEAD * (self.point - self._before)
            self._before = self.point
            self.point = descend(lambda v: self._at(v, C)[:2], ahead, _ITERATIONS, _GAIN)
        return self.point[:-1].copy()

    def _at(self, point: Vector, C: float) -> _At:
        coef = point[:-1]
        margins = self._features.scores(coef) + point[-1]
        margins *= self._sign
        value, slope = self._loss.at(margins)
        slope *= self._sign * self._weights
        gradient = np.append(self._features.combine(slope), slope.sum()) + np.append(coef / C, 0.0)
        objective = float(self._weights @ value) + float(coef @ coef) / (2.0 * C)
        return _At(objective / self._total, gradient / self._total, margins)

    def _newton(self, C: float) -> None:
        """Newton's method. Steps are halved until the objective falls."""
        ridge = np.append(np.full(self.point.size - 1, 1.0 / C), _INTERCEPT_PENALTY)
        here = self._at(self.point, C)
        for _ in range(_NEWTON_ITERATIONS):
            hessian = self._hessian(here.margins)
            hessian[np.diag_indices(self.point.size)] += ridge
            step = cho_solve(cho_factor(hessian), here.gradient * self._total)
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

    def _hessian(self, margins: Vector) -> NDArray[np.float64]:
        """Return the Hessian of Σ u·ℓ in coefficients and intercept."""
        bend = self._loss.bend(margins) * self._weights
        hessian = np.empty((self.point.size, self.point.size))
        hessian[:-1, :-1], hessian[-1, -1] = self._features.gram(bend), bend.sum()
        hessian[:-1, -1] = hessian[-1, :-1] = self._features.combine(bend)
        return hessian


def descend(objective: Callable[[Vector], tuple[float, Vector]], point: Vector, max_iter: int, gain: float) -> Vector:
    """Run L-BFGS from a point until a step lowers the value by less than the fraction `gain`."""
    options = {"maxiter": max_iter, "ftol": gain, "gtol": 1e-9, "maxcor": 10}
    found: Vector = minimize(objective, point, jac=True, method="L-BFGS-B", options=options).x
    return found
