"""The candidates of LinearRanker, along paths: starts with ascending C, refinements with falling strength.

    minimise  Δ(X w) + (λ/2)·pull(w),   pull = ‖w − w₀‖²/‖w₀‖²  or  the variance of X w − X w₀

A refinement minimises a surrogate of the loss near its start w₀, whose scores have standard deviation 1: the unit of a
surrogate's width. The smooth loss treats grades threshold by threshold, which ranked better on MQ2008 than soft ranks.
The samples may be elsewhere: a path needs only a risk, a classifier, a surrogate and the spread of scores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector
from rankwise.linear.labels import Labels
from rankwise.linear.objective import LinearRisk, Objective
from rankwise.linear.path import solve_path
from rankwise.linear.pointwise import Classifier, LabelledRows, descend
from rankwise.linear.solvers import AUTO, Settings, Step
from rankwise.linear.standardising import RowSpace, Standardised
from rankwise.linear.task import Task, pose
from rankwise.metrics.loss import Loss
from rankwise.surrogates import Smooth, Surrogate

__all__ = ["HINGE", "STRENGTHS", "Part", "Paths", "Refinement", "Samples", "SurrogateRisk", "Way", "unit_spread"]

HINGE = "structured hinge"
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# Relative gap of the structured hinge. With more features than samples, it needs a plane for nearly each of these.
_GAP, _WIDE_GAP = 1e-2, 2e-2
_ITERATIONS, _GAIN = 10, 1e-5
Rows = NDArray[np.int64] | slice


class Samples(NamedTuple):
    """Samples to fit to: features, labels, weights by sample, the loss, queries and their weights.

    starts: names of the classifiers. surrogate: for refinements; None means `Smooth` of several widths.
    """

    features: Standardised | RowSpace
    labels: Labels
    weights: Vector
    loss: Loss
    qid: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    starts: tuple[str, ...] = ()
    surrogate: Surrogate | None = None

    def copy_of(self, rows: NDArray[np.int64]) -> Samples:
        """Return a copy of some of the samples."""
        assert isinstance(self.features, Standardised)
        return self._replace(
            features=self.features.rows(rows),
            labels=self.labels.part(rows),
            weights=self.weights[rows],
            qid=None if self.qid is None else self.qid[rows],
            query_weight=None if self.query_weight is None else self.query_weight[rows],
        )


class Way(NamedTuple):
    """How to refine a start. pull: on "weights" or "scores". width: of the ramp. graded: whether to use grades."""

    pull: str
    width: float
    graded: bool = True


class SurrogateRisk(Protocol):
    """A surrogate of the loss of linear rankers on some samples, with an optional pull on their scores."""

    def at(self, coef: Vector, width: float, start: Vector | None, strength: float) -> tuple[float, Vector]:
        """Return the risk and its gradient, plus (strength/2)·variance of X·(coef − start) unless start is None."""
        ...


class Paths:
    """The paths of candidates. Subclasses define the samples by these methods."""

    stop: threading.Event
    gap = _GAP

    def risk(self) -> LinearRisk:
        """Return the structured hinge by relevance, which was a better start on MQ2008 than by grades."""
        raise NotImplementedError

    def classifier(self, name: str) -> Classifier:
        """Return a classifier by its name."""
        raise NotImplementedError

    def smooth(self, graded: bool) -> SurrogateRisk:
        """Return the surrogate that refines, by grades or by relevance."""
        raise NotImplementedError

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1."""
        raise NotImplementedError

    def starts(self, name: str, Cs: tuple[float, ...]) -> Iterator[Vector]:
        """Yield classifiers or rankers with unit spread for ascending C."""
        if name == HINGE:
            settings = Settings(self.gap, 1000, None, self._check)
            for result in solve_path(self.risk(), np.array(Cs), AUTO, settings):
                if result.interrupted:  # solvers catch KeyboardInterrupt
                    raise KeyboardInterrupt
                yield self.unit(result.coef)
            return
        classifier = self.classifier(name)
        for C in Cs:
            yield self.unit(classifier.fit(C))

    def refined(self, start: Vector, way: Way) -> Iterator[Vector]:
        """Yield refinements with unit spread for falling strength."""
        refinement = Refinement(self.smooth(way.graded), start, way)
        for strength in STRENGTHS:
            yield self.unit(refinement.fit(strength))

    def _check(self, step: Step) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt


class Part(Paths):
    """Paths that are fitted to samples in memory, or to some of their rows. Their tasks are posed once."""

    def __init__(self, samples: Samples, rows: NDArray[np.int64] | None, stop: threading.Event) -> None:
        self._samples, self._given, self.stop = samples, rows, stop
        self.gap = _WIDE_GAP if isinstance(samples.features, RowSpace) else _GAP
        self._rows: Rows = slice(None) if rows is None else rows
        self._weights = np.zeros(samples.labels.relevant.size)
        self._weights[self._rows] = samples.weights[self._rows]
        labels, given = samples.labels, (samples.loss, samples.qid, samples.query_weight, rows)
        self._graded, self.relevant = pose(labels.truth, *given), labels.relevant
        if labels.grades is not None:
            # Those above the lowest grade of the queries that count: so both classes are in every part that has
            # something to rank, even if none of its samples has the lowest grade of all.
            self.relevant = labels.grades > self._graded.lowest_grade
        self._task = self._graded if labels.grades is None else pose(self.relevant, *given)

    @property
    def n_queries(self) -> int:
        """Number of queries that have something to rank by relevance."""
        return self._task.n_queries

    def risk(self) -> Objective:
        """Return the structured hinge by relevance."""
        return Objective(self._samples.features, self._task)

    def classifier(self, name: str) -> Classifier:
        """Return a classifier by its name."""
        return Classifier(LabelledRows(self._samples.features, self.relevant, self._weights, name), name)

    def smooth(self, graded: bool) -> _PartRisk:
        """Return the surrogate that refines, by grades or by relevance."""
        task = self._graded if graded else self._task
        return _PartRisk(self._samples.features, task, self._rows, self._samples.surrogate)

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1."""
        return unit_spread(self._samples.features, coef, self._rows)


def unit_spread(features: Features, coef: Vector, rows: Rows) -> Vector:
    """Scale coefficients so that the scores of some rows have standard deviation 1, unless it is 0."""
    spread = float(features.scores(coef)[rows].std())
    return coef / spread if 0.0 < spread < np.inf else coef


class _PartRisk:
    """`SurrogateRisk` in memory. rows: those in the task. own: the surrogate, if it is not `Smooth`."""

    def __init__(self, features: Features, task: Task, rows: Rows, own: Surrogate | None) -> None:
        self._features, self._task, self._rows, self._own = features, task, rows, own
        self._loss = (own or Smooth()).accepts(task.inference.loss)
        self._kept: tuple[Vector, Vector] | None = None

    def at(self, coef: Vector, width: float, start: Vector | None, strength: float) -> tuple[float, Vector]:
        """See `SurrogateRisk`."""
        scores, task = self._features.scores(coef), self._task
        surrogate = self._own or Smooth(width, soft_ranks=False)
        queries, n_threads = task.inference.queries, task.inference.n_threads
        risk = task.weigh(surrogate.solve(task.gather(scores), queries, self._loss, n_threads))
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

    def __init__(self, risk: SurrogateRisk, start: Vector, way: Way) -> None:
        self._risk, self._start, self._way = risk, start, way
        self._size = float(start @ start) or 1.0
        self.point = start

    def fit(self, strength: float) -> Vector:
        """Return the coefficients for a strength."""
        self.point = descend(lambda coef: self._at(coef, strength), self.point, _ITERATIONS, _GAIN)
        return self.point.copy()

    def _at(self, coef: Vector, strength: float) -> tuple[float, Vector]:
        if self._way.pull == "scores":
            return self._risk.at(coef, self._way.width, self._start, strength)
        value, gradient = self._risk.at(coef, self._way.width, None, 0.0)
        away = (coef - self._start) / self._size
        return value + 0.5 * strength * float(away @ away) * self._size, gradient + strength * away
