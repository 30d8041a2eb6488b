"""The risk of a linear ranker on a cluster, and its planes, for the solver of one machine.

The client holds the coefficients and, with their labels, the queries that it solves itself: small ones that several
partitions share. Partitions hold all else, see `partition`. A step sends the coefficients to the partitions, solves
large queries with them (`large_hinge`), and gets a plane from each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.exchange import Each, Exchange, Joined, Range, Tally
from rankwise.dask.large_hinge import solve_hinge
from rankwise.dask.partition import furthest, labels_of, plane, score, take
from rankwise.dask.plan import Counts, Meaning, Table, make_plan, tabulate
from rankwise.dask.portions import Large, Scored
from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, Evaluation, evaluation_of
from rankwise.linear.task import Inference, Task
from rankwise.metrics.loss import Loss
from rankwise.queries import as_queries, group
from rankwise.surrogates import Hinge, Surrogate


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

    def solve(self, scored: Exchange) -> tuple[Exchange, float, float, Each | None]:
        """Solve all queries that several partitions share.

        Return the partitions with their portions solved, the client's contributions to risk and loss, and for each
        partition the gradient of the samples that the client solved, or None.
        """
        value, lost, each = 0.0, 0.0, None
        if self.gathered is not None:
            scores = self.gathered.gather(scored.ask(_scores_for_client).values)
            value, lost, gradient = self.gathered.weigh(self.gathered.inference.solve(scores))
            each = Each(np.split(gradient, np.cumsum(self.n_gathered)[:-1]))
        exchange, of_large, lost_in_large = solve_hinge(scored, self.large, self.loss, self.scale)
        return exchange, value + of_large, lost + lost_in_large, each


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
    return DaskTask(parts, n_queries, plan.large, gathered, sizes, loss, surrogate), table


def _scores_for_client(state: Scored) -> Joined:
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
        """Return the scores just above and just below the cut with the highest F1; −∞ if none is below."""
        scored = self.score(v)
        pos: Tally = scored.ask(_positives)
        n_pos = np.cumsum(pos.counts[::-1])
        n_neg = np.cumsum(scored.ask(_between, pos.values)[::-1])[1::2]
        f1 = 2.0 * n_pos / (n_pos + n_neg + n_pos[-1])
        cut = float(pos.values[::-1][np.argmax(f1)])  # F1 can be highest only directly after a positive
        below: Range = scored.ask(_below, cut)
        return cut, below.most


def _positives(state: Scored) -> Tally:
    return Tally.of(state.scores[state.work.relevant])


def _between(state: Scored, level: Vector) -> NDArray[np.int64]:
    """Return the number of negatives below the first of m scores, equal to it, …, above the last, (2m + 1,)."""
    negatives = state.scores[~state.work.relevant]
    at = np.searchsorted(level, negatives, side="left") + np.searchsorted(level, negatives, side="right")
    return np.bincount(at, minlength=2 * level.size + 1)


def _below(state: Scored, cut: float) -> Range:
    return Range.of(state.scores[state.scores < cut])
