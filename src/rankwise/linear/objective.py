"""The regularised risk of a linear ranker, and the planes that bound it from below.

    F(v) = ½‖v‖² + C·risk(v),   risk(v) = Σ_q ω_q J_q(b + X v),   Σ_q ω_q = 1

J_q is the structured hinge of query q, ω its weight, b the scores at v = 0 (0, or those of a model that is refined).
A most violating ranking, kept fixed, gives a plane under the convex risk: risk(v) ≥ offset + normal·v, a `Cut`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.hinge import structured_hinge
from rankwise.linear.features import Features, Vector
from rankwise.losses import Loss

__all__ = ["Clock", "Cut", "Evaluation", "Objective", "Risk", "Task"]

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


@dataclass
class Clock:
    """Where the time of a fit goes, in seconds, and how often inference was called."""

    inference: float = 0.0
    products: float = 0.0
    calls: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What is ranked: relevance by sample, and the loss that inference is augmented with.

    queries: sample ranges, query q is order[starts[q]:starts[q+1]] (order None: in place), weights ω by query.
    """

    relevant: NDArray[np.bool_]
    loss: Loss
    starts: NDArray[np.int64]
    order: NDArray[np.int64] | None
    weights: Vector
    scale: float = 1.0
    method: str = "auto"
    n_threads: int = 1

    @property
    def n_queries(self) -> int:
        """Queries, with positives and negatives each."""
        return self.weights.size


@dataclass(eq=False)
class Risk:
    """The risk of scores by sample, with its time accounted for."""

    task: Task
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        sizes = np.diff(self.task.starts)
        self._code = np.repeat(np.arange(sizes.size), sizes) if sizes.size > 1 else None
        order = self.task.order
        self._truth = self.task.relevant if order is None else self.task.relevant[order]

    def __call__(self, scores: Vector) -> tuple[float, float, Vector]:
        """Σ ω J, Σ ω Δ and the gradient by sample."""
        task, started = self.task, time.perf_counter()
        order = task.order
        result = structured_hinge(
            scores if order is None else scores[order],
            self._truth,
            task.loss,
            qid=self._code,
            scale=task.scale,
            method=task.method,
            n_threads=task.n_threads,
        )
        self.clock.inference += time.perf_counter() - started
        self.clock.calls += task.n_queries
        if result.per_query is None:
            risk, lost, gradient = result.value, result.loss, np.asarray(result.gradient, np.float64)
        else:
            risk, lost = float(task.weights @ result.per_query.value), float(task.weights @ result.per_query.loss)
            gradient = result.gradient * (task.n_queries * task.weights)[self._code]
        if order is None:
            return risk, lost, gradient
        scattered = np.zeros(scores.size)  # samples of empty queries are in no query
        scattered[order] = gradient
        return risk, lost, scattered


@dataclass(eq=False)
class Objective:
    """The risk of a task over features, with its time accounted for; base: scores at v = 0, or None for none."""

    features: Features
    task: Task
    base: Vector | None = None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.risk = Risk(self.task, self.clock)

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
        risk, lost, gradient = self.risk(scores)
        started = time.perf_counter()
        normal = self.features.combine(gradient)
        offset = self.task.scale * lost
        if self.base is not None:
            offset += float(gradient @ self.base)
        self.clock.products += time.perf_counter() - started
        if not np.abs(normal).max(initial=0.0) <= _LARGEST:
            raise ValueError(f"features are beyond {_LARGEST:g}, too large to be squared; scale them first")
        return Evaluation(risk, Cut(offset, normal))

    def queries(self) -> list[Objective]:
        """One objective a query, of weight 1, on the same clock."""
        if self.task.n_queries == 1:
            return [self]
        return [self._query(q) for q in range(self.task.n_queries)]

    def _query(self, q: int) -> Objective:
        start, stop = int(self.task.starts[q]), int(self.task.starts[q + 1])
        rows = slice(start, stop) if self.task.order is None else self.task.order[start:stop]
        task = Task(
            self.task.relevant[rows],
            self.task.loss,
            np.array([0, stop - start]),
            None,
            np.ones(1),
            self.task.scale,
            self.task.method,
        )
        return Objective(self.features.rows(rows), task, None if self.base is None else self.base[rows], self.clock)
