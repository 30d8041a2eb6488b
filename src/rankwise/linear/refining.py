"""Refinement of a linear ranker by the smooth loss, held to where it started by a proximal term.

    minimise  Δ_width(X w) + (λ/2)·pull(w),   pull = ‖w − w₀‖²/‖w₀‖²  or  the variance of X w − X w₀

The scores of the start have a deviation of 1, which is the unit of the width. Grades count by threshold, which ranked
better on MQ2008 than soft ranks of all samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector
from rankwise.linear.objective import Task
from rankwise.linear.pointwise import descend
from rankwise.smooth import as_smooth, solve_smooth

__all__ = ["Refinement", "Way", "unit_spread"]

_STEPS, _GAIN = 10, 1e-5
Rows = NDArray[np.int64] | slice


class Way(NamedTuple):
    """How a start is refined. pull: on "weights" or on "scores". width: of the ramp."""

    pull: str
    width: float


def unit_spread(features: Features, coef: Vector, rows: Rows) -> Vector:
    """Coefficients under which the scores of some rows have a deviation of 1; as they are if that is 0."""
    spread = float(features.scores(coef)[rows].std())
    return coef / spread if 0.0 < spread < np.inf else coef


class Refinement:
    """Refinements of a start of unit spread for falling strength, each beginning where the last ended.

    rows: the samples that a task ranks.
    """

    def __init__(self, features: Features, task: Task, rows: Rows, start: Vector, way: Way) -> None:
        self._features, self._task, self._rows, self._start, self._way = features, task, rows, start, way
        self._loss = as_smooth(task.inference.loss)
        self._start_scores = features.scores(start)[rows]
        self._size = float(start @ start) or 1.0
        self.point = start

    def fit(self, strength: float) -> Vector:
        """The coefficients for a strength."""
        self.point = descend(lambda coef: self._at(coef, strength), self.point, _STEPS, _GAIN)
        return self.point.copy()

    def _at(self, coef: Vector, strength: float) -> tuple[float, Vector]:
        queries, n_threads = self._task.inference.queries, self._task.inference.n_threads
        scores = self._features.scores(coef)
        gathered, width = self._task.gather(scores), self._way.width
        solved = solve_smooth(gathered, queries, self._loss, width, n_threads, "by threshold")
        risk = self._task.weigh(solved)
        if self._way.pull == "weights":
            away = (coef - self._start) / self._size
            value = risk.value + 0.5 * strength * float(away @ away) * self._size
            return value, self._features.combine(risk.gradient) + strength * away
        moved = scores[self._rows] - self._start_scores
        moved -= moved.mean()
        gradient = risk.gradient.copy()
        gradient[self._rows] += strength / moved.size * moved
        value = risk.value + 0.5 * strength * float(moved @ moved) / moved.size
        return value, self._features.combine(gradient)
