"""The risk of a linear ranker on a cluster, and its planes, for the solvers of one machine.

A part solves queries that no other part has. All parts together solve large ones (rankwise.distributed), and the client
solves the other queries that several parts share. States of a part: Labelled → Layout → Loaded. A step sends the
coefficients to the parts and gets a plane from every part.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import not_finite
from rankwise.dask.faults import fault_of
from rankwise.dask.labels import Labelled, QueryTable, read_queries
from rankwise.distributed.exchange import Each, Exchange, Joined, Range
from rankwise.distributed.hinge import solve_hinge
from rankwise.distributed.part import Large, Members, Part, divide, is_large, totals_of
from rankwise.distributed.smooth import solve_smooth
from rankwise.distributed.standings import highest_f1
from rankwise.linear.features import INTERCEPT, Features, Vector, as_features, is_whole_numbers, on_grid
from rankwise.linear.objective import Clock, Evaluation, LinearRisk, evaluation_of
from rankwise.linear.standardising import Scaled
from rankwise.linear.task import Inference, Risk, Task, rankable
from rankwise.metrics.loss import Loss
from rankwise.metrics.thresholds import Levels, check_number, weigh_levels
from rankwise.queries import as_queries, group, single_query
from rankwise.surrogates import Hinge, Surrogate
from rankwise.surrogates.softened import Softened

__all__ = [
    "DaskObjective",
    "DaskTask",
    "Layout",
    "Loaded",
    "Scaling",
    "features_of",
    "gradient_of",
    "load",
    "pose_parts",
    "score",
]

Ints = NDArray[np.int64]


class Problem(NamedTuple):
    """One threshold of a large query: its id, the grade, and its size; firsts: (parts,) its samples in parts before."""

    id: Any
    grade: float
    large: Large
    firsts: Ints


class Roles(NamedTuple):
    """Roles that every part receives. gathered: ids of queries that the client solves. problems: those of all parts.

    shared: ids of queries that are in several parts. share_per_weight: ω/weight.
    """

    loss: Loss
    surrogate: Surrogate
    gathered: NDArray[Any]
    problems: list[Problem]
    shared: NDArray[Any]
    share_per_weight: float


class Scaling(NamedTuple):
    """Scaling of each feature: (x − centre)·rate."""

    centre: Vector
    rate: Vector


@dataclass(frozen=True)
class Layout:
    """The queries of a part: its own as a task, rows that the client solves, and its members of large queries.

    is_whole: whether features are whole numbers. base: scores at v = 0, or None. scaling: of the features, or None.
    """

    labels: Labelled
    own: Task | None
    gathered: Ints
    members: list[Members]
    is_whole: bool
    base: Vector | None = None
    scaling: Scaling | None = None


@dataclass(frozen=True)
class Loaded(Part):
    """A part whose samples have scores, with its layout and its portions of large queries."""

    layout: Any = None


@dataclass(frozen=True)
class DaskTask:
    """The ranking task: the parts with their layouts, and the client's knowledge of the queries.

    gathered: the task of queries that the client solves, or None. n_gathered: (parts,) number of their samples.
    """

    exchange: Exchange
    n_queries: int
    problems: list[Problem]
    gathered: Task | None
    n_gathered: Ints
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
        if self.gathered is not None:
            risk = _risk_by(surrogate, self.gathered, scored.ask(_gathered_scores).values)
            value, lost = risk.value, risk.loss
            each = Each(np.split(risk.gradient, np.cumsum(self.n_gathered)[:-1]))
        large = [problem.large for problem in self.problems]
        loss: Any = surrogate.accepts(self.loss)
        if isinstance(surrogate, Softened):
            parts, found = solve_smooth(scored, large, loss, surrogate)
        else:
            parts, found = solve_hinge(scored, large, loss, self.scale)
        return parts, Risks(value, lost, each, [(one.weight, *two) for one, two in zip(large, found, strict=True)])

    def threshold_ends(self, scored: Exchange) -> tuple[float, float]:
        """Return the scores above and below the cut with the highest F1 of all samples."""
        return highest_f1(scored.derive(_as_one_query))[0]


class Risks(NamedTuple):
    """The client's part of the risk. each: for each part, the gradient of the rows that the client solved, or None.

    large: weight of each large query, with its J, of which the sum over parts is missing, and Δ.
    """

    value: float
    loss: float
    each: Each | None
    large: list[tuple[float, float, float]]

    def total(self, value: float, lost: float, totals: list[float]) -> tuple[float, float]:
        """Return the whole risk and loss, including the contributions of the parts."""
        value, lost = self.value + value, self.loss + lost
        for (weight, of_query, loss), total in zip(self.large, totals, strict=True):
            value, lost = value + weight * (of_query + total), lost + weight * loss
        return value, lost


def pose_parts(
    labels: Exchange, n_parts: int, loss: Loss, surrogate: Surrogate, may_be_empty: bool = False
) -> tuple[DaskTask, QueryTable]:
    """Return the task of ranking all samples of parts with interpreted labels, and the queries."""
    table = read_queries(labels, may_be_empty)
    roles = _assign_roles(table, n_parts, loss, surrogate)
    layouts = labels.derive(_lay_out, roles, reads=True)
    gathered, sizes = _gathered_task(layouts, table, roles)
    n_queries = int(np.count_nonzero(table.share))
    return DaskTask(layouts, n_queries, roles.problems, gathered, sizes, loss, surrogate), table


def _assign_roles(table: QueryTable, n_parts: int, loss: Loss, surrogate: Surrogate) -> Roles:
    """Decide who solves which query."""
    if not loss.has_discount and ((table.grade > 1.0).any() or np.unique(table.grade).size > 2):
        raise ValueError(f"{loss.name} takes binary labels, not grades; pass relevant > 0, or use another loss")
    by_buckets = isinstance(surrogate, Hinge) and surrogate.method in ("auto", "bucketed")
    together = by_buckets and loss.has_discount and loss.k is None
    problems, gathered = [], []
    for q in np.flatnonzero(table.spans & (table.share > 0.0)).tolist():
        found = _problems(table, q, n_parts, loss) if together else []
        problems += found
        gathered += [] if found else [q]
    raw, used = np.zeros(table.ids.size), table.share > 0.0
    raw[table.code] = table.weight
    per_weight = float(table.share[used][0] / raw[used][0]) if used.any() else 0.0
    ids = table.ids
    return Roles(loss, surrogate, ids[np.array(gathered, np.int64)], problems, ids[table.spans], per_weight)


def _problems(table: QueryTable, q: int, n_parts: int, loss: Loss) -> list[Problem]:
    """Return the thresholds of a query that all parts solve together; none if one of them is not large."""
    own = table.code == q
    grades, at = np.unique(table.grade[own], return_inverse=True)
    count = np.bincount(at, table.members[own]).astype(np.int64)
    members, n = np.cumsum(count[::-1])[::-1], int(table.n[q])
    if not all(is_large(n, int(m)) for m in members[1:]):
        return []
    check_number(grades.size)
    alpha = np.ones(2)
    if not np.array_equal(grades, [0.0, 1.0]):
        alpha = weigh_levels(Levels(np.array([0, grades.size]), grades, members), np.array([n]), loss)
    of_part = np.bincount(table.part[own], table.members[own], n_parts).astype(np.int64)
    firsts, weight = np.cumsum(of_part) - of_part, table.share[q] * alpha
    return [
        Problem(table.ids[q], float(grades[t]), Large(n, int(members[t]), float(weight[t])), firsts)
        for t in range(1, grades.size)
    ]


def _lay_out(X: Any, state: Labelled, roles: Roles) -> Layout:
    """Return the layout of a part."""
    truth, ids, own = state.truth, state.qid, None
    if ids is not None or not roles.shared.size:
        rows = np.flatnonzero(~np.isin(state.ids, roles.shared))
        order, queries, weights = rankable(truth, ids, state.weight, rows)
        if queries.sizes.size:
            inference = Inference(queries, roles.loss, roles.surrogate)
            own = Task(single_query(truth).relevant, inference, order, weights * roles.share_per_weight)
    members = []
    for problem in roles.problems:
        of_query = None if ids is None else np.flatnonzero(ids == problem.id)
        where = np.flatnonzero((truth if of_query is None else truth[of_query]) >= problem.grade)
        members.append(Members(of_query, where, int(problem.firsts[state.number]), problem.large.n))
    gathered = np.flatnonzero(np.isin(state.ids, roles.gathered))
    return Layout(state, own, gathered, members, is_whole_numbers(X))


def _gathered_task(exchange: Exchange, table: QueryTable, roles: Roles) -> tuple[Task | None, Ints]:
    """Return the task of queries that the client solves, in the order of parts, and its rows per part."""
    if not roles.gathered.size:
        return None, np.empty(0, np.int64)
    truth, ids, sizes = (joined.values for joined in exchange.ask(_gathered))
    grouping = group(ids, ids.size)
    queries = as_queries(grouping.gather(truth), grouping.starts)
    weights = table.share[np.searchsorted(table.ids, grouping.ids)]
    inference = Inference(queries, roles.loss, roles.surrogate)
    return Task(single_query(truth).relevant, inference, grouping.order, weights), sizes


def _gathered(state: Layout) -> tuple[Joined, Joined, Joined]:
    labels, rows = state.labels, state.gathered
    return Joined(labels.truth[rows]), Joined(labels.ids[rows]), Joined(np.array([rows.size]))


def features_of(X: Any, state: Layout, intercept: bool) -> Features:
    """Return the features of a part."""
    features = as_features(X, INTERCEPT if intercept else 0.0, state.is_whole)
    return features if state.scaling is None else Scaled(features, *state.scaling)


def load(state: Layout, scores: Vector) -> Loaded:
    """Return a part with scores and its portions of large queries."""
    error = not_finite(scores)
    if error is not None:
        raise fault_of(error).error(state.labels.number)
    return divide(Loaded(scores, layout=state), state.members)


@dataclass(eq=False)
class DaskObjective:
    """The risk of a task over the features of all parts. intercept: whether it has a column."""

    task: DaskTask
    n_coefs: int
    intercept: bool = False
    clock: Clock = field(default_factory=Clock)

    def with_base(self, coef: Vector, intercept: float) -> DaskObjective:
        """Return the objective with the scores of a model that is refined."""
        exchange = self.task.exchange.derive(_with_base, coef, intercept, reads=True)
        return DaskObjective(replace(self.task, exchange=exchange), self.n_coefs, self.intercept)

    def score(self, v: Vector) -> Exchange:
        """Return the parts with their scores at v."""
        scored: Exchange = self.task.exchange.derive(score, v, self.intercept, reads=True)
        return scored

    def evaluate(self, v: Vector) -> Evaluation:
        """Return the risk at v, and its plane there."""
        started = time.perf_counter()
        parts, risks = self.task.solve(self.score(v))
        value, lost, normal, at_base, totals = parts.ask(
            _plane_of, risks.each, self.intercept, self.task.surrogate, reads=True
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


def gradient_of(state: Loaded, gathered: Vector | None, surrogate: Surrogate) -> tuple[float, float, Vector]:
    """Return risk and loss of a part's own queries, and the gradient by sample of all queries."""
    layout: Layout = state.layout
    value = lost = 0.0
    gradient = np.zeros(state.scores.size)
    if layout.own is not None:
        value, lost, own = _risk_by(surrogate, layout.own, state.scores)
        gradient += own
    if gathered is not None:
        gradient[layout.gathered] = gathered
    for portion in state.portions:
        gradient[slice(None) if portion.members.rows is None else portion.members.rows] += portion.gradient
    return value, lost, gradient


def _risk_by(surrogate: Surrogate, task: Task, scores: Vector) -> Risk:
    """Return the risk of queries in memory."""
    inference = task.inference
    loss = surrogate.accepts(inference.loss)
    return task.weigh(surrogate.solve(task.gather(scores), inference.queries, loss, inference.n_threads))


def _plane_of(
    X: Any, state: Loaded, gathered: Vector | None, intercept: bool, surrogate: Surrogate
) -> tuple[float, float, Vector, float, list[float]]:
    """Return a part's contributions to risk, loss, normal of the plane, gradient·base and sums of large queries."""
    value, lost, gradient = gradient_of(state, gathered, surrogate)
    features = features_of(X, replace(state.layout, is_whole=False), intercept)
    even, rest = on_grid(gradient) if state.layout.is_whole else (gradient, None)
    normal = np.zeros((2, features.n_coefs))  # exact sums, as on one machine, and the remainder
    normal[0] = features.combine(even)
    if rest is not None:
        normal[1] = features.combine(rest)
    base = state.layout.base
    return value, lost, normal, 0.0 if base is None else float(gradient @ base), totals_of(state)


def score(X: Any, state: Layout, v: Vector, intercept: bool) -> Loaded:
    """Return a part with scores base + X·v."""
    scores = features_of(X, state, intercept).scores(v)
    return load(state, scores if state.base is None else state.base + scores)


def _with_base(X: Any, state: Layout, coef: Vector, intercept: float) -> Layout:
    return replace(state, base=features_of(X, state, False).scores(coef) + intercept)


def _gathered_scores(state: Loaded) -> Joined:
    return Joined(state.scores[state.layout.gathered])


def _ends(X: Any, state: Layout, v: Vector, intercept: bool) -> Range:
    return Range.of(features_of(X, state, intercept).scores(v))


def _as_one_query(state: Loaded) -> Loaded:
    relevant = state.layout.labels.relevant
    return divide(state, [Members(None, np.flatnonzero(relevant), 0, relevant.size)])
