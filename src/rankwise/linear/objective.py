"""The regularised risk of a linear ranker, and the planes that bound it from below.

    F(v) = ½‖v‖² + C·risk(v),   risk(v) = Σ_q ω_q J_q(b + X v),   Σ_q ω_q = 1

J_q is the structured hinge of query q, ω its weight, b the scores at v = 0 (0, or those of a model that is refined).
A most violating ranking, kept fixed, gives a plane under the convex risk: risk(v) ≥ offset + normal·v, a `Cut`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector
from rankwise.losses import Loss
from rankwise.method import AUTO, Method
from rankwise.queries import Queries, single_query
from rankwise.solving import solve

# Squares of planes, times C twice, must be numbers.
_LARGEST = 1e100


class Cut(NamedTuple):
    """A plane under the risk: risk(v) ≥ offset + normal·v for every v."""

    offset: float
    normal: Vector


class Evaluation(NamedTuple):
    """The risk at a point, and the plane that touches it there."""

    risk: float
    cut: Cut


class LinearRisk(Protocol):
    """A convex risk of linear rankers as solvers see it: its value and a plane at a point, wherever the samples are."""

    clock: Clock

    @property
    def n_coefs(self) -> int:
        """Dimension of v."""

    def evaluate(self, v: Vector) -> Evaluation:
        """The risk at v, and its plane there."""

    def largest_score(self, v: Vector) -> float:
        """max |X·v| over samples."""

    def queries(self) -> Sequence[tuple[float, LinearRisk]]:
        """Every query's weight, and its risk alone."""


@dataclass
class Clock:
    """Where the time of a fit goes, in seconds, and how often inference was called."""

    inference: float = 0.0
    products: float = 0.0
    calls: int = 0

    def count(self, n_queries: int, started: float) -> None:
        """Account for inference on so many queries, which began at a time of `time.perf_counter`."""
        self.inference += time.perf_counter() - started
        self.calls += n_queries


class Inference(NamedTuple):
    """All that `solve` is given beside the scores."""

    queries: Queries
    loss: Loss
    scale: float = 1.0
    method: Method = AUTO
    n_threads: int = 1


class SolvedLike(Protocol):
    """By query a value and a loss, by sample the gradient of the values' sum: of the hinge, or of the smooth loss."""

    @property
    def value(self) -> NDArray[np.float64]:
        """(Q,)."""

    @property
    def loss(self) -> NDArray[np.float64]:
        """(Q,)."""

    @property
    def gradient(self) -> NDArray[np.floating]:
        """(n,)."""


class Risk(NamedTuple):
    """Σ ω J, Σ ω Δ and the gradient by sample, (n,)."""

    value: float
    loss: float
    gradient: Vector


@dataclass(frozen=True, eq=False)
class Task:
    """What is ranked, built once a fit.

    relevant: (n,) by sample; of grades, those above 0. inference: of the queries; their samples are samples order[0],
    order[1], …, or all of them as they are where order is None. weights: (Q,) ω by query; every query has something to
    rank.
    """

    relevant: NDArray[np.bool_]
    inference: Inference
    order: NDArray[np.int64] | None
    weights: Vector

    @property
    def n_queries(self) -> int:
        """Queries, with positives and negatives each."""
        return self.weights.size

    @cached_property
    def _weight_of_sample(self) -> Vector:
        return np.repeat(self.weights, self.inference.queries.sizes)

    def gather(self, scores: Vector) -> Vector:
        """Scores with each query's samples together."""
        return scores if self.order is None else scores[self.order]

    def weigh(self, solved: SolvedLike) -> Risk:
        """The risk of queries that were solved."""
        if self.n_queries == 1 and self.weights[0] == 1.0:
            value, lost = float(solved.value[0]), float(solved.loss[0])
            gradient = solved.gradient.astype(np.float64, copy=False)
        else:
            value, lost = float(self.weights @ solved.value), float(self.weights @ solved.loss)
            gradient = solved.gradient * self._weight_of_sample
        if self.order is None:
            return Risk(value, lost, gradient)
        scattered = np.zeros(self.relevant.size)  # samples of empty queries are in no query
        scattered[self.order] = gradient
        return Risk(value, lost, scattered)


def risk_of(task: Task, scores: Vector, clock: Clock) -> Risk:
    """The risk of scores by sample."""
    started = time.perf_counter()
    solved = solve(task.gather(scores), *task.inference)
    clock.count(task.n_queries, started)
    return task.weigh(solved)


def evaluation_of(risk: float, offset: float, normal: Vector) -> Evaluation:
    """A risk and its plane; refuses one whose square is no number."""
    if not np.abs(normal).max(initial=0.0) <= _LARGEST:
        raise ValueError(f"features are beyond {_LARGEST:g}, too large to be squared; scale them first")
    return Evaluation(risk, Cut(offset, normal))


@dataclass(eq=False)
class Objective:
    """The risk of a task over features, with its time accounted for; base: scores at v = 0, or None for none."""

    features: Features
    task: Task
    base: Vector | None = None
    clock: Clock = field(default_factory=Clock)

    @property
    def n_coefs(self) -> int:
        """Dimension of v."""
        return self.features.n_coefs

    def scores(self, v: Vector) -> Vector:
        """b + X v by sample."""
        started = time.perf_counter()
        scores = self.features.scores(v) if self.base is None else self.base + self.features.scores(v)
        self.clock.products += time.perf_counter() - started
        return scores

    def evaluate(self, v: Vector) -> Evaluation:
        """The risk at v, and its plane there."""
        scores = self.scores(v)
        started = time.perf_counter()
        solved = solve(self.task.gather(scores), *self.task.inference)
        self.clock.count(self.task.n_queries, started)
        return self._evaluation(self.task.weigh(solved))

    def _evaluation(self, risk: Risk) -> Evaluation:
        started = time.perf_counter()
        normal = self.features.combine(risk.gradient)
        offset = self.task.inference.scale * risk.loss
        if self.base is not None:
            offset += float(risk.gradient @ self.base)
        self.clock.products += time.perf_counter() - started
        return evaluation_of(risk.value, offset, normal)

    def largest_score(self, v: Vector) -> float:
        """max |X·v| over samples."""
        return float(np.abs(self.features.scores(v)).max(initial=0.0))

    def queries(self) -> list[tuple[float, Objective]]:
        """Every query's weight, and an objective of it alone, on the same clock."""
        if self.task.n_queries == 1:
            return [(1.0, self)]
        return [(weight, self._query(q)) for q, weight in enumerate(self.task.weights.tolist())]

    def _query(self, q: int) -> Objective:
        inference, order = self.task.inference, self.task.order
        start, stop = inference.queries.starts[q : q + 2].tolist()
        rows = slice(start, stop) if order is None else order[start:stop]
        alone = inference._replace(queries=single_query(inference.queries.truth[start:stop]), n_threads=1)
        task = Task(alone.queries.relevant, alone, None, np.ones(1))
        return Objective(self.features.rows(rows), task, None if self.base is None else self.base[rows], self.clock)
