"""The risk of a linear ranker on a cluster, and its planes, for the solvers of one machine.

A step sends the coefficients to the parts. Large queries are solved by exchange (parts/hinge.py), small queries that
several parts share are solved by the client, and all others where they are. Every part then sends one plane.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.labelling import QueryTable, read_queries
from rankwise.dask.layout import (
    Layout,
    Loaded,
    Problem,
    Roles,
    assign_roles,
    features_of,
    gathered_task,
    lay_out,
    score,
)
from rankwise.linear.features import Vector, on_grid
from rankwise.linear.objective import Clock, Evaluation, LinearRisk, evaluation_of
from rankwise.linear.task import Risk, Task
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.zero_one import weighted_hinge
from rankwise.parts.exchange import Exchange, Joined, Range
from rankwise.parts.hinge import Large, Pending, solve_hinge
from rankwise.parts.ranks import highest_f1
from rankwise.parts.share import Plan, share_out, totals_of
from rankwise.parts.smooth import solve_smooth_parts
from rankwise.surrogates import Hinge, Surrogate
from rankwise.surrogates.softened import Softened

__all__ = ["DaskObjective", "DaskTask", "pose_parts"]


def risk_by(surrogate: Surrogate, task: Task, scores: Vector) -> Risk:
    """Return the risk of queries in memory."""
    inference = task.inference
    loss = surrogate.accepts(inference.loss)
    return task.weigh(surrogate.solve(task.gather(scores), inference.queries, loss, inference.n_threads))


@dataclass(frozen=True)
class DaskTask:
    """The ranking task: the parts with their layouts, and the client's knowledge of the queries."""

    exchange: Exchange
    n_queries: int
    problems: list[Problem]
    together: Task | None
    of_part: NDArray[np.int64]
    loss: Loss
    surrogate: Surrogate

    @property
    def scale(self) -> float:
        """The weight of the loss in a structured hinge."""
        return getattr(self.surrogate, "scale", 1.0)

    def solve(self, scored: Exchange, surrogate: Surrogate | None = None) -> tuple[Exchange, Risks]:
        """Solve all queries that several parts share, and give their gradients to the parts."""
        surrogate = surrogate or self.surrogate
        value, lost, each = 0.0, 0.0, None
        if self.together is not None:
            risk = risk_by(surrogate, self.together, scored.ask(_gathered_scores).values)
            value, lost = risk.value, risk.loss
            each = np.split(risk.gradient, np.cumsum(self.of_part)[:-1])
        large = [problem.large for problem in self.problems]
        if isinstance(surrogate, Softened):
            parts, pending = solve_smooth_parts(scored, large, surrogate.accepts(self.loss), surrogate)
        else:
            parts, pending = solve_hinge(scored, large, _discounted(self.loss, large), self.scale)
        return parts, Risks(value, lost, each, pending, large)

    def threshold_ends(self, scored: Exchange) -> tuple[float, float]:
        """Return the scores above and below the cut with the highest F1 of all samples."""
        return highest_f1(scored.derive(_as_one_query))[0]


class Risks(NamedTuple):
    """The client's part of the risk; for large queries, only a sum over parts is missing.

    each: for each part, the gradient of the rows that the client solved, or None.
    """

    value: float
    loss: float
    each: list[Vector] | None
    pending: list[Pending]
    large: list[Large]

    def total(self, value: float, lost: float, totals: list[float]) -> tuple[float, float]:
        """Return the whole risk and loss, including the contributions of the parts."""
        value, lost = self.value + value, self.loss + lost
        for pending, large, total in zip(self.pending, self.large, totals, strict=True):
            solved = pending.solved(total)
            value, lost = value + large.weight * solved.value, lost + large.weight * solved.loss
        return value, lost


def pose_parts(
    known: Exchange, n_parts: int, loss: Loss, surrogate: Surrogate, may_be_empty: bool = False
) -> tuple[DaskTask, QueryTable]:
    """Return the task of ranking all samples of parts with interpreted labels, and the queries."""
    table = read_queries(known, may_be_empty)
    roles: Roles = assign_roles(table, n_parts, loss, surrogate)
    layouts = known.derive(lay_out, roles, reads=True)
    together, sizes = gathered_task(layouts, table, roles)
    n_queries = int(np.count_nonzero(table.share))
    return DaskTask(layouts, n_queries, roles.problems, together, sizes, loss, surrogate), table


@dataclass(eq=False)
class DaskObjective:
    """The risk of a task over the features of all parts. intercept: whether it has a column."""

    task: DaskTask
    n_coefs: int
    intercept: bool = False
    has_base: bool = False
    clock: Clock = field(default_factory=Clock)

    def score(self, v: Vector) -> Exchange:
        """Return the parts with their scores at v."""
        scored: Exchange = self.task.exchange.derive(score, v, self.intercept, reads=True)
        return scored

    def evaluate(self, v: Vector) -> Evaluation:
        """Return the risk at v, and its plane there."""
        started = time.perf_counter()
        parts, risks = self.task.solve(self.score(v))
        value, lost, normal, at_base, totals = parts.ask(
            plane_of, self.intercept, self.task.surrogate, reads=True, each=risks.each
        )
        value, lost = risks.total(value, lost, totals)
        self.clock.count(self.task.n_queries, started)
        normal = normal[0] + normal[1]
        is_hinge = isinstance(self.task.surrogate, Hinge)
        offset = self.task.scale * lost + at_base if is_hinge else value - float(normal @ v)
        return evaluation_of(value, offset, normal)

    def largest_score(self, v: Vector) -> float:
        """Return max |X·v| over all samples."""
        ends: Range = self.task.exchange.ask(_ends, v, self.intercept, reads=True)
        return max(-ends.least, ends.most, 0.0)

    def queries(self) -> Sequence[tuple[float, LinearRisk]]:
        """Return one objective per query; only a single query is supported."""
        if self.task.n_queries > 1:
            raise ValueError("solver='frank-wolfe' supports only a single query on Dask; use solver='cutting-plane'")
        return [(1.0, self)]


def gradient_of(state: Loaded, given: Vector | None, surrogate: Surrogate) -> tuple[float, float, Vector]:
    """Return risk and loss of a part's own queries, and the gradient by sample of all queries."""
    layout: Layout = state.layout
    value = lost = 0.0
    gradient = np.zeros(state.scores.size)
    if layout.own is not None:
        value, lost, own = risk_by(surrogate, layout.own, state.scores)
        gradient += own
    if given is not None:
        gradient[layout.gathered] = given
    for share in state.shares:
        gradient[slice(None) if share.plan.rows is None else share.plan.rows] += share.gradient
    if layout.rows.size:
        rows = layout.rows
        found = weighted_hinge(
            state.scores[rows], layout.relevant[rows], layout.weights, getattr(layout.surrogate, "scale", 1.0)
        )
        value, lost, gradient[rows] = value + found[0], lost + found[1], found[2]
    return value, lost, gradient


def plane_of(X: Any, state: Loaded, *given: Any) -> tuple[float, float, Vector, float, list[float]]:
    """Return a part's contributions to risk, loss, normal of the plane, gradient·base and sums of large queries."""
    *each, intercept, surrogate = given
    value, lost, gradient = gradient_of(state, each[0] if each else None, surrogate)
    features = features_of(X, replace(state.layout, is_whole=False), intercept)
    even, rest = on_grid(gradient) if state.layout.is_whole else (gradient, None)
    normal = np.zeros((2, features.n_coefs))  # exact sums, as on one machine, and the remainder
    normal[0] = features.combine(even)
    if rest is not None:
        normal[1] = features.combine(rest)
    base = state.layout.base
    return value, lost, normal, 0.0 if base is None else float(gradient @ base), totals_of(state)


def _gathered_scores(state: Loaded) -> Joined:
    return Joined(state.scores[state.layout.gathered])


def _ends(X: Any, state: Layout, v: Vector, intercept: bool) -> Range:
    return Range.of(features_of(X, state, intercept).scores(v))


def _as_one_query(state: Loaded) -> Loaded:
    relevant = state.layout.relevant
    return share_out(state, [Plan(None, np.flatnonzero(relevant), 0, relevant.size)])


def _discounted(loss: Loss, large: list[Large]) -> DiscountedLoss:
    assert not large or isinstance(loss, DiscountedLoss)
    return loss  # type: ignore[return-value]
