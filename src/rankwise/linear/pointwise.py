"""Linear classifiers as starts: logistic regression and the squared hinge, along a path of C.

    minimise  Σ_i u_i·ℓ(y_i (x_i·w + b)) + ‖w‖²/(2C),   y = ±1

The intercept b is not penalised. Samples of weight u = 0 are left out, so that all folds share one matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from rankwise.linear.features import Vector
from rankwise.linear.standardising import Standardised

__all__ = ["POINTWISE", "Classifier", "descend"]

# Up to so many dense features, Newton's method is faster.
_NEWTON = 128
_NEWTON_STEPS, _NEWTON_GAIN, _HALVINGS = 40, 1e-5, 20
_STEPS, _GAIN = 300, 1e-5
# A fit begins where the last two point to: so far beyond the last, as a part of what came between them.
_AHEAD = 0.5
# The intercept's own penalty, so that a Hessian has an inverse.
_HARDLY = 1e-9


class _Loss(NamedTuple):
    """A loss of margins: its value and slope, and its bend."""

    at: Callable[[Vector], tuple[Vector, Vector]]
    bend: Callable[[Vector], Vector]


def _logistic(margin: Vector) -> tuple[Vector, Vector]:
    """log(1 + exp(−margin)), and its slope."""
    small = np.exp(-np.abs(margin))
    slope = np.where(margin >= 0.0, small, 1.0)
    small += 1.0
    slope /= -small
    value = np.log(small, out=small)  # faster than log1p; off by 1e-16, against a sum of at least as much
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
# By name: the loss, and whether both classes weigh the same.
POINTWISE = {
    "logistic": (LOGISTIC, False),
    "squared hinge": (SQUARED_HINGE, False),
    "balanced logistic": (LOGISTIC, True),
    "balanced squared hinge": (SQUARED_HINGE, True),
}


class _At(NamedTuple):
    """The objective at a point, its gradient, and the margins there."""

    value: float
    gradient: Vector
    margin: Vector


class Classifier:
    """Fits for C rising by even factors, each beginning near the last; point: coefficients and intercept."""

    def __init__(self, features: Standardised, relevant: NDArray[np.bool_], weights: Vector, loss: str) -> None:
        self._loss, balanced = POINTWISE[loss]
        if balanced:
            weights = weights * np.where(relevant, 0.5 / weights[relevant].sum(), 0.5 / weights[~relevant].sum())
            weights *= np.count_nonzero(weights)
        self._features, self._weights = features, weights
        self._sign = np.where(relevant, 1.0, -1.0)
        self._signed = self._sign * weights
        self._total = float(weights.sum())
        share = float(weights[relevant].sum()) / self._total
        self.point = np.zeros(features.n_coefs + 1)
        self.point[-1] = np.log(share / (1.0 - share)) if self._loss is LOGISTIC else 2.0 * share - 1.0
        self._before = self.point

    def fit(self, C: float) -> Vector:
        """The coefficients for C."""
        if self._features.is_dense and self._features.n_coefs <= _NEWTON:
            self._newton(C)
        else:
            ahead = self.point + _AHEAD * (self.point - self._before)
            self._before = self.point
            self.point = descend(lambda v: self._at(v, C)[:2], ahead, _STEPS, _GAIN)
        return self.point[:-1].copy()

    def _at(self, point: Vector, C: float) -> _At:
        coef = point[:-1]
        margin = self._features.scores(coef) + point[-1]
        margin *= self._sign
        value, slope = self._loss.at(margin)
        slope *= self._signed
        gradient = np.append(self._features.combine(slope) + coef / C, slope.sum())
        whole = float(self._weights @ value) + float(coef @ coef) / (2.0 * C)
        return _At(whole / self._total, gradient / self._total, margin)

    def _newton(self, C: float) -> None:
        """Newton's method; steps are halved until they gain."""
        ridge = np.append(np.full(self.point.size - 1, 1.0 / C), _HARDLY)
        here = self._at(self.point, C)
        for _ in range(_NEWTON_STEPS):
            d, bend = self.point.size - 1, self._loss.bend(here.margin) * self._weights
            hessian = np.empty((d + 1, d + 1))
            hessian[:d, :d], hessian[d, d] = self._features.gram(bend), bend.sum()
            hessian[:d, d] = hessian[d, :d] = self._features.combine(bend)
            hessian[np.diag_indices(d + 1)] += ridge
            step = cho_solve(cho_factor(hessian), here.gradient * self._total)
            gain, size = float(here.gradient @ step), 1.0
            for _ in range(_HALVINGS):
                there = self._at(self.point - size * step, C)
                if there.value <= here.value - 1e-4 * size * gain:
                    break
                size *= 0.5
            else:
                return  # rounding rules
            self.point, here = self.point - size * step, there
            if gain < _NEWTON_GAIN * here.value:
                return


def descend(objective: Callable[[Vector], tuple[float, Vector]], point: Vector, max_iter: int, gain: float) -> Vector:
    """L-BFGS from a point, until a step gains less than this part of the value."""
    options = {"maxiter": max_iter, "ftol": gain, "gtol": 1e-9, "maxcor": 10}
    found: Vector = minimize(objective, point, jac=True, method="L-BFGS-B", options=options).x
    return found
