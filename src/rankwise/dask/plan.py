"""Who solves which query: the client decides from counts of labels, so no partition sends its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import as_truth
from rankwise.dask.exchange import Exchange, Joined
from rankwise.dask.faults import fault_of
from rankwise.dask.portions import Large, is_large
from rankwise.kernels.contract import FAST
from rankwise.linear.task import as_labels, share_of_queries
from rankwise.metrics.loss import Loss
from rankwise.metrics.thresholds import Levels, check_number, weigh_levels
from rankwise.queries import Truth, group
from rankwise.surrogates import Hinge, Surrogate

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Labelled:
    """Labels of a partition as they were given, with the query of each sample and its weight, if there are any."""

    number: int
    y: NDArray[Any]
    qid: NDArray[Any] | None = None
    weight: NDArray[Any] | None = None

    @property
    def ids(self) -> NDArray[Any]:
        """Query of each sample, (n,): all 0 if none are given."""
        return np.zeros(self.y.shape[0], np.int64) if self.qid is None else self.qid


class Counts(NamedTuple):
    """How often a label occurs in a query within a partition, (T,) each, and the number of rows of each partition.

    row: of the first such sample. weight: of the query.
    """

    ids: NDArray[Any]
    part: Ints
    label: NDArray[Any]
    size: Ints
    row: Ints
    weight: NDArray[np.float64]
    rows: Ints

    @classmethod
    def of(cls, exchange: Exchange) -> Counts:
        """Count the labels of all partitions."""
        return cls(*(joined.values for joined in exchange.ask(_count)))


def _count(state: Labelled) -> tuple[Joined, ...]:
    ids = state.ids
    grouping = group(ids, ids.size)
    code = grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(grouping.starts)))
    labels, at = np.unique(state.y, return_inverse=True)
    keys, row, count = np.unique(code * max(labels.size, 1) + at, return_index=True, return_counts=True)
    weight = np.ones(keys.size) if state.weight is None else state.weight[row].astype(np.float64)
    label = labels[keys % max(labels.size, 1)]
    found = (ids[row], np.full(keys.size, state.number), label, count, row, weight, np.array([ids.size]))
    return tuple(Joined(values) for values in found)


class Meaning(NamedTuple):
    """What labels mean: the label of relevant samples, or, for grades, the one above which samples are relevant."""

    positive: Any = 1
    least: float | None = None

    @classmethod
    def to_ranker(cls, counts: Counts, has_queries: bool) -> tuple[Meaning, NDArray[Any]]:
        """Return what labels mean to a ranker, and its two classes."""
        several = np.tile(np.unique(counts.label), 3)  # scikit-learn warns about labels that are all different
        try:
            classes, labels = as_labels(several, has_queries)
        except ValueError as error:
            fault = fault_of(error)
            if fault.row < 0:
                raise fault.kind(fault.text) from None
            where = np.flatnonzero(counts.label == several[fault.row])
            at = where[np.lexsort((counts.row[where], counts.part[where]))[0]]
            number = int(counts.part[at])
            raise fault._replace(row=int(counts.row[at])).error(number, counts.rows[:number].sum()) from None
        return cls(classes[1], None if labels.grades is None else float(labels.grades.min())), classes

    @classmethod
    def to_metric(cls, counts: Counts) -> Meaning:
        """Return what labels mean where scores are judged: grades unless all are 0 and 1."""
        labels = np.unique(counts.label)
        return cls() if as_truth(labels, labels.size).dtype == np.bool_ else cls(least=0.0)

    def truth(self, labels: NDArray[Any]) -> Truth:
        """Return booleans, or grades as float64, (n,)."""
        if self.least is None:
            return np.ascontiguousarray(labels == self.positive)
        return np.ascontiguousarray(labels, np.float64)

    def relevant(self, truth: Truth) -> NDArray[np.bool_]:
        """Return which samples are relevant, (n,)."""
        return np.asarray(truth if self.least is None else truth > self.least, np.bool_)


class Table(NamedTuple):
    """All queries, sorted by id, (Q,) each, and each count's query and grade (0 or 1 if binary), (T,) each.

    share: ω, 0 if there is nothing to rank. weight: as given. n: number of samples. spans: whether several partitions
    have some.
    """

    ids: NDArray[Any]
    share: NDArray[np.float64]
    weight: NDArray[np.float64]
    n: Ints
    spans: NDArray[np.bool_]
    code: Ints
    grade: NDArray[np.float64]


def tabulate(counts: Counts, meaning: Meaning, may_be_empty: bool = False) -> Table:
    """Return the queries. may_be_empty: accept that none has anything to rank."""
    ids, code = np.unique(counts.ids, return_inverse=True)
    weight = np.zeros(ids.size)
    weight[code] = counts.weight
    wrong = np.flatnonzero(weight[code] != counts.weight)
    if wrong.size:
        k, last = wrong[0], np.flatnonzero(code == code[wrong[0]])[-1]
        raise ValueError(
            f"query {ids[code[k]]} has query_weight {counts.weight[k]} in partition {counts.part[k]}, but "
            f"{counts.weight[last]} in partition {counts.part[last]}; give all its samples one weight"
        )
    grade = meaning.truth(counts.label).astype(np.float64)
    can_rank, spans = (_several(code, of, ids.size) for of in (grade, counts.part))
    share = np.zeros(ids.size)
    if can_rank.any() or not may_be_empty:
        share[can_rank] = share_of_queries(weight[can_rank], ids.size > 1)
    n = np.bincount(code, counts.size, ids.size).astype(np.int64)
    return Table(ids, share, weight, n, spans, code, grade)


def _several(code: Ints, values: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Return whether each query has several different values, (size,)."""
    pairs = np.unique(np.stack([code, values], 1), axis=0)
    return np.asarray(np.bincount(pairs[:, 0].astype(np.int64), minlength=size) > 1)


class Plan(NamedTuple):
    """What every partition is told. A query that is in one partition only is solved there.

    shared: ids of the other queries. large: thresholds of those that partitions solve together. gathered: ids of those
    that the client solves. share_per_weight: ω/weight.
    """

    loss: Loss
    surrogate: Surrogate
    meaning: Meaning
    shared: NDArray[Any]
    large: list[Large]
    gathered: NDArray[Any]
    share_per_weight: float


def make_plan(table: Table, counts: Counts, meaning: Meaning, loss: Loss, surrogate: Surrogate) -> Plan:
    """Decide who solves which query."""
    if meaning.least is not None and loss.judges_labels:
        raise ValueError(f"{loss.name} takes binary labels, not grades; pass relevant > 0, or use another loss")
    by_buckets = isinstance(surrogate, Hinge) and surrogate.method in FAST
    together = by_buckets and not loss.judges_labels and loss.k is None
    large: list[Large] = []
    gathered: list[int] = []
    for q in np.flatnonzero(table.spans & (table.share > 0.0)).tolist():
        found = _thresholds(table, counts, q, loss) if together else []
        large += found
        gathered += [] if found else [q]
    used = np.argmax(table.share > 0.0) if table.share.any() else None
    per_weight = 0.0 if used is None else float(table.share[used] / table.weight[used])
    ids = table.ids
    return Plan(loss, surrogate, meaning, ids[table.spans], large, ids[np.array(gathered, np.int64)], per_weight)


def _thresholds(table: Table, counts: Counts, q: int, loss: Loss) -> list[Large]:
    """Return the thresholds of a query that all partitions solve together; none if one of them is not large."""
    own = table.code == q
    grades, at = np.unique(table.grade[own], return_inverse=True)
    count = np.bincount(at, counts.size[own]).astype(np.int64)
    members, n = np.cumsum(count[::-1])[::-1], int(table.n[q])
    if not all(is_large(n, int(m)) for m in members[1:]):
        return []
    check_number(grades.size)
    alpha = np.ones(2)
    if not np.array_equal(grades, [0.0, 1.0]):
        alpha = weigh_levels(Levels(np.array([0, grades.size]), grades, members), np.array([n]), loss)
    of_part = np.bincount(counts.part[own], counts.size[own], counts.rows.size).astype(np.int64)
    firsts, weight = np.cumsum(of_part) - of_part, table.share[q] * alpha
    return [
        Large(table.ids[q], float(grades[t]), n, int(members[t]), float(weight[t]), firsts)
        for t in range(1, grades.size)
    ]
