"""The risk of a linear ranker on a cluster, and its planes, for the solver of one machine.

The client holds the coefficients and, with their labels, the queries that it solves itself: small ones that several
partitions share. Partitions hold all else, see `partition`. A step sends the coefficients to the partitions, solves
large queries with them (`rankwise.distributed`), and gets a plane from each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.partition import all_as_one_query, furthest, labels_of, plane, score, take
from rankwise.dask.plan import Counts, Meaning, Table, make_plan, tabulate
from rankwise.distributed.exchange import Each, Exchange, Joined, Range
from rankwise.distributed.hinge import solve_hinge
from rankwise.distributed.part import Large
from rankwise.distributed.standings import highest_f1
from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, Evaluation, evaluation_of
from rankwise.linear.task import Inference, Task
from rankwise.metrics.loss import Loss
from rankwise.queries import as_queries, group
from rankwise.surrogates import Hinge, Surrogate


class Solved(NamedTuple):
    """Partitions with solved portions of large queries, and the client's contributions to risk and loss.

    each: for each partition, the gradient of the samples that the client solved, or None.
    """

    exchange: Exchange
    value: float
    loss: float
    each: Each | None


@dataclass(frozen=True)
class DaskTask:
    """The ranking task. gathered: the queries that the client solves, or None; n_gathered: (parts,) their samples."""

    exchange: Exchange
    n_queries: int
    large: list[Large]
    gathered: Task | None
    n_gathered: NDArray[np.int64]
    loss: Any
    surrogate: Surrogate

    @property
    def scale(self) -> float:
        """The weight of the loss in a structured hinge."""
        return getattr(self.surrogate, "scale", 1.0)

    def solve(self, scored: Exchange) -> Solved:
        """Solve all queries that several partitions share."""
        value, lost, each = 0.0, 0.0, None
        if self.gathered is not None:
            scores = self.gathered.gather(scored.ask(_scores_for_client).values)
            value, lost, gradient = self.gathered.weigh(self.gathered.inference.solve(scores))
            each = Each(np.split(gradient, np.cumsum(self.n_gathered)[:-1]))
        exchange, found = solve_hinge(scored, self.large, self.loss, self.scale)
        for query, one in zip(self.large, found, strict=True):
            value, lost = value + query.weight * one.value, lost + query.weight * one.loss
        return Solved(exchange, value, lost, each)


def pose(
    labels: Exchange, counts: Counts, meaning: Meaning, loss: Loss, surrogate: Surrogate, may_be_empty: bool = False
) -> tuple[DaskTask, Table]:
    """Return the task of ranking all samples, and the queries."""
    table = tabulate(counts, meaning, may_be_empty)
    plan = make_plan(table, counts, meaning, loss, surrogate)
    gathered, sizes = None, np.empty(0, np.int64)
    if plan.gathered.size:
        truth, ids, sizes = (joined.values for joined in labels.ask(labels_of, plan))
        grouping = group(ids, ids.size)
        inference = Inference(as_queries(grouping.gather(truth), grouping.starts), loss, surrogate)
        weights = table.share[np.searchsorted(table.ids, grouping.ids)]
        gathered = Task(truth.size, inference, grouping.order, weights)
    parts, n_queries = labels.derive(take, plan, reads=True), int(np.count_nonzero(table.share))
    return DaskTask(parts, n_queries, [one.large for one in plan.large], gathered, sizes, loss, surrogate), table


def _scores_for_client(state: Any) -> Joined:
    return Joined(state.scores[state.work.gathered])


@dataclass(eq=False)
class DaskObjective:
    """The risk of a task over the features of all partitions. intercept: whether it has a column."""

    task: DaskTask
    n_coefs: int
    intercept: bool = False
    clock: Clock = field(default_factory=Clock)

    def score(self, v: Vector) -> Exchange:
        """Return the partitions with their scores at v."""
        scored: Exchange = self.task.exchange.derive(score, v, self.intercept, reads=True)
        return scored

    def evaluate(self, v: Vector) -> Evaluation:
        """Return the risk at v, and its plane there."""
        started = time.perf_counter()
        parts, value, lost, each = self.task.solve(self.score(v))
        of_parts, lost_in_parts, normals = parts.ask(plane, each, self.intercept, reads=True)
        value, lost, normal = value + of_parts, lost + lost_in_parts, normals[0] + normals[1]
        self.clock.count(self.task.n_queries, started)
        is_hinge = isinstance(self.task.surrogate, Hinge)
        return evaluation_of(value, self.task.scale * lost if is_hinge else value - float(normal @ v), normal)

    def largest_score(self, v: Vector) -> float:
        """Return max |X·v| over all samples."""
        ends: Range = self.task.exchange.ask(furthest, v, self.intercept, reads=True)
        return max(-ends.least, ends.most, 0.0)

    def threshold_ends(self, v: Vector) -> tuple[float, float]:
        """Return the scores above and below the cut with the highest F1 of all samples."""
        return highest_f1(self.score(v).derive(all_as_one_query))[0]
