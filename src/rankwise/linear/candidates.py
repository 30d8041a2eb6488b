"""What LinearRanker fits, along paths: starts of ascending C, refinements of falling strength.

What is fitted to may lie elsewhere: a path asks for a risk, a classifier, a smooth loss and a spread, and no more.
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
from rankwise.linear.posing import pose
from rankwise.linear.refining import Refinement, Rows, SmoothHere, SmoothRisk, Way, unit_spread
from rankwise.linear.solvers import AUTO, Settings, Step
from rankwise.linear.standardising import Standardised
from rankwise.losses import Loss

__all__ = ["HINGE", "STRENGTHS", "Part", "Paths", "Samples"]

HINGE = "structured hinge"
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
_HINGE_GAP = 1e-2


class Samples(NamedTuple):
    """What is fitted: features, what labels say, weights by sample, the loss, queries and their weights.

    Cs: of the structured hinge, none where it is no start. starts: the classifiers.
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
        """The task of ranking some of the samples. graded: by their grades, if they have any."""
        truth = self.labels.truth if graded else self.labels.relevant
        return pose(truth, self.loss, self.qid, self.query_weight, rows)

    def part(self, rows: NDArray[np.int64]) -> Samples:
        """A copy of some of the samples."""
        return self._replace(
            features=self.features.rows(rows),
            labels=self.labels.part(rows),
            weights=self.weights[rows],
            qid=None if self.qid is None else self.qid[rows],
            query_weight=None if self.query_weight is None else self.query_weight[rows],
        )


class Paths:
    """The paths of candidates, whatever they are fitted to: what is behind these methods is all that differs."""

    stop: threading.Event

    def risk(self) -> LinearRisk:
        """The structured hinge, by relevance: one by grades was the worse start on MQ2008."""
        raise NotImplementedError

    def classifier(self, name: str) -> Classifier:
        """A classifier by its name."""
        raise NotImplementedError

    def smooth(self, graded: bool) -> SmoothRisk:
        """The smooth loss, by grades or by relevance."""
        raise NotImplementedError

    def unit(self, coef: Vector) -> Vector:
        """The same ranking by scores of unit spread."""
        raise NotImplementedError

    def starts(self, name: str, Cs: tuple[float, ...]) -> Iterator[Vector]:
        """Classifiers or rankers of unit spread for ascending C."""
        if name == HINGE:
            settings = Settings(_HINGE_GAP, 1000, None, self._check)
            for result in solve_path(self.risk(), np.array(Cs), AUTO, settings):
                if result.interrupted:  # which a solver keeps to itself
                    raise KeyboardInterrupt
                yield self.unit(result.coef)
            return
        classifier = self.classifier(name)
        for C in Cs:
            yield self.unit(classifier.fit(C))

    def refined(self, start: Vector, way: Way) -> Iterator[Vector]:
        """Refinements of unit spread, for falling strength."""
        refinement = Refinement(self.smooth(way.graded), start, way)
        for strength in STRENGTHS:
            yield self.unit(refinement.fit(strength))

    def _check(self, step: Step) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt


class Part(Paths):
    """Paths fitted to samples in memory, or to some rows of them."""

    def __init__(self, samples: Samples, rows: NDArray[np.int64] | None, stop: threading.Event) -> None:
        self._samples, self.stop = samples, stop
        self.rows: Rows = slice(None) if rows is None else rows
        self._given = rows
        self._weights = np.zeros(samples.labels.relevant.size)
        self._weights[self.rows] = samples.weights[self.rows]

    def risk(self) -> Objective:
        """The structured hinge, by relevance."""
        return Objective(self._samples.features, self._samples.pose(self._given, graded=False))

    def classifier(self, name: str) -> Classifier:
        """A classifier by its name."""
        samples = self._samples
        return Classifier(RowsHere(samples.features, samples.labels.relevant, self._weights, name), name)

    def smooth(self, graded: bool) -> SmoothHere:
        """The smooth loss, by grades or by relevance."""
        return SmoothHere(self._samples.features, self._samples.pose(self._given, graded), self.rows)

    def unit(self, coef: Vector) -> Vector:
        """The same ranking by scores of unit spread."""
        return unit_spread(self._samples.features, coef, self.rows)
