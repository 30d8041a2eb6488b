"""The candidates of LinearRanker, along paths: starts with ascending C, refinements with falling strength.

The samples may be elsewhere: a path needs only a risk, a classifier, a smooth loss and the spread of scores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Vector
from rankwise.linear.labels import Labels
from rankwise.linear.objective import LinearRisk, Objective, Task
from rankwise.linear.path import solve_path
from rankwise.linear.pointwise import Classifier, RowsHere
from rankwise.linear.posing import lowest_ranked, pose
from rankwise.linear.refining import Refinement, Rows, SmoothHere, SmoothRisk, Way, unit_spread
from rankwise.linear.solvers import AUTO, Settings, Step
from rankwise.linear.standardising import Standardised
from rankwise.metrics.loss import Loss

__all__ = ["HINGE", "STRENGTHS", "Part", "Paths", "Samples"]

HINGE = "structured hinge"
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
_HINGE_GAP = 1e-2


class Samples(NamedTuple):
    """Samples to fit to: features, labels, weights by sample, the loss, queries and their weights.

    Cs: for the structured hinge; empty if it is not tried as a start. starts: names of the classifiers.
    """

    features: Standardised
    labels: Labels
    weights: Vector
    loss: Loss
    qid: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    Cs: tuple[float, ...] = ()
    starts: tuple[str, ...] = ()

    def pose(self, rows: NDArray[np.int64] | None = None, graded: bool = True) -> Task:
        """Return the task of ranking some of the samples. graded: by their grades, if they have any."""
        truth = self.labels.truth if graded else self.relevant(rows)
        return pose(truth, self.loss, self.qid, self.query_weight, rows)

    def relevant(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
        """Return which samples are relevant to those who fit to some of them.

        Of grades, those above the lowest of the queries that count. So both classes are in every part that has
        something to rank, even if none of its samples has the lowest grade of all.
        """
        grades = self.labels.grades
        if grades is None:
            return self.labels.relevant
        return grades > lowest_ranked(grades, self.qid, self.query_weight, rows)

    def part(self, rows: NDArray[np.int64]) -> Samples:
        """Return a copy of some of the samples."""
        return self._replace(
            features=self.features.rows(rows),
            labels=self.labels.part(rows),
            weights=self.weights[rows],
            qid=None if self.qid is None else self.qid[rows],
            query_weight=None if self.query_weight is None else self.query_weight[rows],
        )


class Paths:
    """The paths of candidates. Subclasses define the samples by these methods."""

    stop: threading.Event

    def risk(self) -> LinearRisk:
        """Return the structured hinge by relevance, which was a better start on MQ2008 than by grades."""
        raise NotImplementedError

    def classifier(self, name: str) -> Classifier:
        """Return a classifier by its name."""
        raise NotImplementedError

    def smooth(self, graded: bool) -> SmoothRisk:
        """Return the smooth loss, by grades or by relevance."""
        raise NotImplementedError

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1."""
        raise NotImplementedError

    def starts(self, name: str, Cs: tuple[float, ...]) -> Iterator[Vector]:
        """Yield classifiers or rankers with unit spread for ascending C."""
        if name == HINGE:
            settings = Settings(_HINGE_GAP, 1000, None, self._check)
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
    """Paths that are fitted to samples in memory, or to some of their rows."""

    def __init__(self, samples: Samples, rows: NDArray[np.int64] | None, stop: threading.Event) -> None:
        self._samples, self.stop = samples, stop
        self.rows: Rows = slice(None) if rows is None else rows
        self._given = rows
        self._weights = np.zeros(samples.labels.relevant.size)
        self._weights[self.rows] = samples.weights[self.rows]

    def risk(self) -> Objective:
        """Return the structured hinge by relevance."""
        return Objective(self._samples.features, self._samples.pose(self._given, graded=False))

    def classifier(self, name: str) -> Classifier:
        """Return a classifier by its name."""
        samples = self._samples
        return Classifier(RowsHere(samples.features, samples.relevant(self._given), self._weights, name), name)

    def smooth(self, graded: bool) -> SmoothHere:
        """Return the smooth loss, by grades or by relevance."""
        return SmoothHere(self._samples.features, self._samples.pose(self._given, graded), self.rows)

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1."""
        return unit_spread(self._samples.features, coef, self.rows)
