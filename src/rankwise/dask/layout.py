"""Who solves which query: a part solves its own, the client small shared ones, all parts together the large ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import not_finite
from rankwise.dask.faults import fault_of
from rankwise.dask.labelling import Known, QueryTable
from rankwise.linear.features import INTERCEPT, Features, Vector, as_features, is_whole_numbers
from rankwise.linear.standardising import Scaled
from rankwise.linear.task import Inference, Task, rankable
from rankwise.metrics.loss import Loss
from rankwise.metrics.thresholds import Levels, check_number, weigh_levels
from rankwise.parts.exchange import Exchange, Joined
from rankwise.parts.hinge import Large, is_large
from rankwise.parts.share import Plan, Scored, Share
from rankwise.queries import as_queries, group, single_query
from rankwise.surrogates import Hinge, Surrogate

__all__ = ["Layout", "Loaded", "Problem", "Roles", "Scaling", "assign_roles", "lay_out", "score"]

Ints = NDArray[np.int64]


class Problem(NamedTuple):
    """One threshold of a large query: its id, the grade, ω·α; firsts: (parts,) its samples in the parts before."""

    id: Any
    bar: float
    weight: float
    n: int
    n_pos: int
    firsts: Ints

    @property
    def large(self) -> Large:
        """The problem in the form in which parts solve it together."""
        return Large(self.n, self.n_pos, self.weight)


class Roles(NamedTuple):
    """Roles that every part receives. gathered: ids of queries that the client solves. problems: those of all parts.

    by_row: ids of queries whose loss is a sum over samples; row_weights: weight of each sample. share_per_weight:
    ω/weight.
    """

    inference: dict[str, Any]
    loss: Loss
    gathered: NDArray[Any]
    problems: list[Problem]
    by_row: NDArray[Any]
    row_weights: Vector
    left_out: NDArray[Any]
    share_per_weight: float


class Scaling(NamedTuple):
    """Scaling of each feature: (x − centre)·rate."""

    centre: Vector
    rate: Vector


@dataclass(frozen=True)
class Layout:
    """The queries of a part: its own as a task, rows that the client solves, and its shares of large queries.

    rows, weights: of samples whose loss is a sum over samples. is_whole: whether features are whole numbers.
    base: scores at v = 0, or None. scaling: of the features, or None.
    """

    truth_of: Known
    own: Task | None
    gathered: Ints
    plans: list[Plan]
    rows: Ints
    weights: Vector
    surrogate: Surrogate
    is_whole: bool
    base: Vector | None = None
    scaling: Any = None

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which samples are relevant, (n,)."""
        return self.truth_of.relevant


@dataclass(frozen=True)
class Loaded(Scored):
    """A part whose samples have scores, with its layout and its shares of large queries."""

    scores: Vector
    shares: list[Share] = field(default_factory=list)
    layout: Any = None


def _is_shared(surrogate: Surrogate) -> bool:
    """Whether parts can solve one query together by this surrogate."""
    return isinstance(surrogate, Hinge) and surrogate.method in ("auto", "bucketed")


def assign_roles(table: QueryTable, n_parts: int, loss: Loss, surrogate: Surrogate) -> Roles:
    """Decide who solves which query."""
    spans, ids = table.spans & (table.share > 0.0), table.ids
    nobody, problems = ids[:0], []
    by_row, row_weights, gathered = nobody, np.empty(0), np.flatnonzero(spans)
    if not loss.has_grades:
        if (table.grade > 1.0).any() or np.unique(table.grade).size > 2:
            raise ValueError(f"{loss.name} takes binary labels, not grades; pass relevant > 0, or use another loss")
        by_row, row_weights, gathered = ids[gathered], (table.share / table.n)[gathered], gathered[:0]
    elif loss.has_discount and _is_shared(surrogate) and loss.k is None:
        together = {int(q): found for q in gathered if (found := _problems(table, int(q), n_parts, loss))}
        problems = [problem for found in together.values() for problem in found]
        gathered = np.array([q for q in gathered if int(q) not in together], np.int64)
    raw, used = np.zeros(ids.size), table.share > 0.0
    raw[table.code] = table.weight
    inference = {"surrogate": surrogate}
    per_weight = float(table.share[used][0] / raw[used][0]) if used.any() else 0.0
    left_out = ids[table.spans]
    return Roles(inference, loss, ids[gathered], problems, by_row, row_weights, left_out, per_weight)


def _problems(table: QueryTable, q: int, n_parts: int, loss: Loss) -> list[Problem]:
    """Return the thresholds of a query that all parts solve together; none if one of them is not large."""
    own = table.code == q
    grades, at = np.unique(table.grade[own], return_inverse=True)
    count = np.bincount(at, table.members[own]).astype(np.int64)
    members, n = np.cumsum(count[::-1])[::-1], int(table.n[q])
    if not all(is_large(n, int(m)) for m in members[1:]):
        return []
    check_number(grades.size)
    binary = np.array_equal(grades, [0.0, 1.0])
    levels = Levels(np.array([0, grades.size]), grades, members)
    alpha = np.ones(2) if binary else weigh_levels(levels, np.array([n]), loss)
    of_part = np.bincount(table.part[own], table.members[own], n_parts).astype(np.int64)
    firsts = np.cumsum(of_part) - of_part
    return [
        Problem(table.ids[q], float(grades[t]), float(table.share[q] * alpha[t]), n, int(members[t]), firsts)
        for t in range(1, grades.size)
    ]


def lay_out(X: Any, state: Known, roles: Roles) -> Layout:
    """Return the layout of a part."""
    n, ids = state.truth.size, state.qid
    own_rows = np.arange(n) if ids is None else np.flatnonzero(~np.isin(ids, roles.left_out))
    own = None
    if ids is not None or not roles.left_out.size:
        order, queries, weights = rankable(state.truth, ids, state.weight, own_rows)
        weights = weights * roles.share_per_weight
        if queries.sizes.size:
            inference = Inference(queries, roles.loss, **roles.inference)
            own = Task(single_query(state.truth).relevant, inference, order, weights)
    gathered = _rows_of(ids, roles.gathered, n)
    plans = []
    for problem in roles.problems:
        rows = None if ids is None else _rows_of(ids, np.array([problem.id]), n)
        truth = state.truth if rows is None else state.truth[rows]
        where = np.flatnonzero(truth >= problem.bar)
        plans.append(Plan(rows, where, int(problem.firsts[state.number]), problem.n))
    rows = _rows_of(ids, roles.by_row, n)
    weights = np.empty(0)
    if rows.size:
        at = np.zeros(rows.size, np.int64) if ids is None else np.searchsorted(roles.by_row, ids[rows])
        weights = roles.row_weights[at]
    return Layout(state, own, gathered, plans, rows, weights, roles.inference["surrogate"], is_whole_numbers(X))


def _rows_of(ids: NDArray[Any] | None, wanted: NDArray[Any], n: int) -> Ints:
    if not wanted.size:
        return np.empty(0, np.int64)
    return np.arange(n) if ids is None else np.flatnonzero(np.isin(ids, wanted))


def gathered_task(exchange: Exchange, table: QueryTable, roles: Roles) -> tuple[Task | None, Ints]:
    """Return the task of queries that the client solves, in the order of parts, and its rows per part."""
    if not roles.gathered.size:
        return None, np.empty(0, np.int64)
    truth, ids, sizes = (joined.values for joined in exchange.ask(_gathered))
    grouping = group(ids, ids.size)
    queries = as_queries(grouping.gather(truth), grouping.starts)
    weights = table.share[np.searchsorted(table.ids, grouping.ids)]
    inference = Inference(queries, roles.loss, **roles.inference)
    return Task(single_query(truth).relevant, inference, grouping.order, weights), sizes


def _gathered(state: Layout) -> tuple[Joined, Joined, Joined]:
    known, rows = state.truth_of, state.gathered
    ids = np.zeros(rows.size, np.int64) if known.qid is None else known.qid[rows]
    return Joined(known.truth[rows]), Joined(ids), Joined(np.array([rows.size]))


def features_of(X: Any, state: Layout, intercept: bool) -> Features:
    """Return the features of a part."""
    features = as_features(X, INTERCEPT if intercept else 0.0, state.is_whole)
    return features if state.scaling is None else Scaled(features, *state.scaling)


def with_base(X: Any, state: Layout, coef: Vector, intercept: float) -> Layout:
    """Return the layout with the scores of a model that is refined."""
    return replace(state, base=features_of(X, state, False).scores(coef) + intercept)


def score(X: Any, state: Layout, v: Vector, intercept: bool) -> Loaded:
    """Return a part with scores base + X·v and its shares of large queries."""
    scores = features_of(X, state, intercept).scores(v)
    return load(state, scores if state.base is None else state.base + scores)


def load(state: Layout, scores: Vector) -> Loaded:
    """Return a part with scores."""
    error = not_finite(scores)
    if error is not None:
        raise fault_of(error).error(state.truth_of.number)
    shares = [Share(one, scores if one.rows is None else scores[one.rows]) for one in state.plans]
    return Loaded(scores, shares, state)
