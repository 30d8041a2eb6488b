"""Refinement of a linear ranker by the smooth loss, with a proximal term that keeps it near its start.

    minimise  Δ_width(X w) + (λ/2)·pull(w),   pull = ‖w − w₀‖²/‖w₀‖²  or  the variance of X w − X w₀

The scores of the start have standard deviation 1, which is the unit of the width. Grades are treated threshold by
threshold, which ranked better on MQ2008 than soft ranks of all samples.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector
from rankwise.linear.objective import Task
from rankwise.linear.pointwise import descend
from rankwise.surrogates import Smooth

__all__ = ["Refinement", "SmoothHere", "SmoothRisk", "Way", "unit_spread"]

_STEPS, _GAIN = 10, 1e-5
Rows = NDArray[np.int64] | slice


class Way(NamedTuple):
    """How to refine a start. pull: on "weights" or "scores". width: of the ramp. graded: whether to use grades."""

    pull: str
    width: float
    graded: bool = True


def unit_spread(features: Features, coef: Vector, rows: Rows) -> Vector:
    """Scale coefficients so that the scores of some rows have standard deviation 1, unless it is 0."""
    spread = float(features.scores(coef)[rows].std())
    return coef / spread if 0.0 < spread < np.inf else coef


class SmoothRisk(Protocol):
    """The smooth loss of linear rankers on some samples, with an optional pull on their scores."""

    def at(self, coef: Vector, width: float, start: Vector | None, strength: float) -> tuple[float, Vector]:
        """Return the risk and its gradient, plus (strength/2)·variance of X·(coef − start) unless start is None."""
        ...


class SmoothHere:
    """Samples in memory. rows: those in the task."""

    def __init__(self, features: Features, task: Task, rows: Rows) -> None:
        self._features, self._task, self._rows = features, task, rows
        self._loss = Smooth().accepts(task.inference.loss)
        self._kept: tuple[Vector, Vector] | None = None

    def at(self, coef: Vector, width: float, start: Vector | None, strength: float) -> tuple[float, Vector]:
        """See `SmoothRisk`."""
        queries, n_threads = self._task.inference.queries, self._task.inference.n_threads
        scores = self._features.scores(coef)
        gathered = self._task.gather(scores)
        surrogate = Smooth(width, soft_ranks=False)
        risk = self._task.weigh(surrogate.solve(gathered, queries, self._loss, n_threads))
        if start is None:
            return risk.value, self._features.combine(risk.gradient)
        moved = scores[self._rows] - self._start_scores(start)
        moved -= moved.mean()
        gradient = risk.gradient.copy()
        gradient[self._rows] += strength / moved.size * moved
        value = risk.value + 0.5 * strength * float(moved @ moved) / moved.size
        return value, self._features.combine(gradient)

    def _start_scores(self, start: Vector) -> Vector:
        if self._kept is None or self._kept[0] is not start:
            self._kept = start, self._features.scores(start)[self._rows]
        return self._kept[1]


class Refinement:
    """Refinements of a start with unit spread for falling strength, each started where the last ended."""

    def __init__(self, risk: SmoothRisk, start: Vector, way: Way) -> None:
        self._risk, self._start, self._way = risk, start, way
        self._size = float(start @ start) or 1.0
        self.point = start

    def fit(self, strength: float) -> Vector:
        """Return the coefficients for a strength."""
        self.point = descend(lambda coef: self._at(coef, strength), self.point, _STEPS, _GAIN)
        return self.point.copy()

    def _at(self, coef: Vector, strength: float) -> tuple[float, Vector]:
        if self._way.pull == "scores":
            return self._risk.at(coef, self._way.width, self._start, strength)
        value, gradient = self._risk.at(coef, self._way.width, None, 0.0)
        away = (coef - self._start) / self._size
        return value + 0.5 * strength * float(away @ away) * self._size, gradient + strength * away
