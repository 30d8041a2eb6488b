"""The candidates of LinearRanker, along paths: starts with ascending C, refinements with falling strength.

    minimise  Δ(X w) + (λ/2)·pull(w),   pull = ‖w − w₀‖²/‖w₀‖²  or  the variance of X w − X w₀

A refinement minimises a surrogate of the loss near its start w₀, whose scores have standard deviation 1: the unit of a
surrogate's width. The smooth loss treats grades threshold by threshold, which ranked better on MQ2008 than soft ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.cross_validation import Stop
from rankwise.linear.cutting_plane import Settings
from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, Objective, risk_of
from rankwise.linear.path import solve_path
from rankwise.linear.pointwise import Classifier, descend
from rankwise.linear.ranker_data import RankerData
from rankwise.linear.standardising import RowSpace, Standardised
from rankwise.linear.task import Task, pose
from rankwise.metrics.loss import Loss
from rankwise.surrogates import Smooth, Surrogate

__all__ = ["HINGE", "STRENGTHS", "Part", "Samples", "Way"]

HINGE = "structured hinge"
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# Relative gap of the structured hinge. With more features than samples, it needs a plane for nearly each of these.
_GAP, _WIDE_GAP = 1e-2, 2e-2
_ITERATIONS, _GAIN = 10, 1e-5


class Samples(NamedTuple):
    """Samples to fit to: features, what else is known of them, weights by sample, and the loss.

    surrogate: for refinements; None means `Smooth` of several widths.
    """

    features: Standardised | RowSpace
    data: RankerData
    weights: Vector
    loss: Loss
    surrogate: Surrogate | None = None

    def copy_of(self, rows: NDArray[np.int64]) -> Samples:
        """Return a copy of some of the samples."""
        assert isinstance(self.features, Standardised)
        parts = self.features.rows(rows), self.data.part(rows), self.weights[rows]
        return Samples(*parts, self.loss, self.surrogate)


class Way(NamedTuple):
    """How to refine a start. pull: on "weights" or "scores". width: of the ramp. graded: whether to use grades."""

    pull: str
    width: float
    graded: bool = True


class Part:
    """Paths of candidates that are fitted to samples, or to some of their rows. Their tasks are posed once."""

    def __init__(self, samples: Samples, rows: NDArray[np.int64] | None, stop: Stop) -> None:
        self._samples, self._features, self._stop = samples, samples.features, stop
        self._rows: NDArray[np.int64] | slice = slice(None) if rows is None else rows
        data = samples.data
        labels, given = data.labels, (samples.loss, data.qid, data.weight, rows)
        self._graded = self._task = pose(labels.truth, *given)
        self.relevant = labels.relevant
        if labels.grades is not None:
            # Those above the lowest grade of the queries that count: so both classes are in every part that has
            # something to rank, even if none of its samples has the lowest grade of all.
            self.relevant = labels.grades > self._graded.lowest_grade
            self._task = pose(self.relevant, *given)

    @property
    def n_queries(self) -> int:
        """Number of queries that have something to rank by relevance."""
        return self._task.n_queries

    def risk(self) -> Objective:
        """Return the structured hinge by relevance, which was a better start on MQ2008 than by grades."""
        return Objective(self._features, self._task)

    def starts(self, name: str, Cs: tuple[float, ...]) -> Iterator[Vector]:
        """Yield classifiers or rankers with unit spread for ascending C."""
        if name == HINGE:
            gap = _WIDE_GAP if isinstance(self._features, RowSpace) else _GAP
            for result in solve_path(self.risk(), np.array(Cs), Settings(gap, 1000, report=self._stop.check)):
                yield self.unit(result.coef)
            return
        weights = np.zeros(self.relevant.size)
        weights[self._rows] = self._samples.weights[self._rows]
        classifier = Classifier(self._features, self.relevant, weights, name)
        for C in Cs:
            yield self.unit(classifier.fit(C))

    def refined(self, start: Vector, way: Way) -> Iterator[Vector]:
        """Yield refinements with unit spread for falling strength, each started where the last ended."""
        task = self._graded if way.graded else self._task
        task = task.by(surrogate=self._samples.surrogate or Smooth(way.width, soft_ranks=False))
        pulled = (self._on_scores if way.pull == "scores" else self._on_weights)(task, start)
        point = start
        for strength in STRENGTHS:
            point = descend(partial(pulled, strength), point, _ITERATIONS, _GAIN)
            yield self.unit(point)

    def _on_weights(self, task: Task, start: Vector) -> Callable[[float, Vector], tuple[float, Vector]]:
        """Return the objective of strength and coefficients, and its gradient, with a pull on the coefficients."""
        size = float(start @ start) or 1.0

        def at(strength: float, coef: Vector) -> tuple[float, Vector]:
            risk = risk_of(task, self._features.scores(coef), Clock())
            away = (coef - start) / size
            gradient = self._features.combine(risk.gradient) + strength * away
            return risk.value + 0.5 * strength * float(away @ away) * size, gradient

        return at

    def _on_scores(self, task: Task, start: Vector) -> Callable[[float, Vector], tuple[float, Vector]]:
        """Return the same with a pull on the scores."""
        before = self._features.scores(start)[self._rows]

        def at(strength: float, coef: Vector) -> tuple[float, Vector]:
            scores = self._features.scores(coef)
            risk = risk_of(task, scores, Clock())
            moved = scores[self._rows] - before
            moved -= moved.mean()
            gradient = risk.gradient.copy()
            gradient[self._rows] += strength / moved.size * moved
            value = risk.value + 0.5 * strength * float(moved @ moved) / moved.size
            return value, self._features.combine(gradient)

        return at

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1, unless it is 0."""
        spread = float(self._features.scores(coef)[self._rows].std())
        return coef / spread if 0.0 < spread < np.inf else coef
