"""Labels and queries, found from distinct values and counts: no part sends its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import as_truth
from rankwise.dask.faults import Fault, fault_of
from rankwise.distributed.exchange import Exchange, Joined
from rankwise.linear.labels import as_labels
from rankwise.linear.task import share_of_queries
from rankwise.queries import group

__all__ = ["Labelled", "QueryTable", "judge", "label", "read_queries"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Labelled:
    """The labels of a part, with the query and the query's weight of each sample, if there are any.

    truth: the labels as given; `label` and `judge` make booleans or grades of them. least: the grade above which
    samples are relevant.
    """

    number: int
    truth: NDArray[Any]
    qid: NDArray[Any] | None = None
    weight: NDArray[Any] | None = None
    least: float = 0.0

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which samples are relevant, (n,)."""
        return self.truth if self.truth.dtype == np.bool_ else self.truth > self.least

    @property
    def ids(self) -> NDArray[Any]:
        """Query of each sample, (n,): all 0 if none are given."""
        return np.zeros(self.truth.shape[0], np.int64) if self.qid is None else self.qid


class Distinct:
    """Distinct values, sorted."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = np.unique(values)

    def __add__(self, other: Distinct) -> Distinct:
        if not other.values.size or not self.values.size:
            return self if self.values.size else other
        return Distinct(np.concatenate([self.values, other.values]))


class QueryTable(NamedTuple):
    """All queries, sorted by id. share: (Q,) ω, 0 if there is nothing to rank. n: (Q,) number of samples.

    code, part, grade, members, weight: (T,) how many samples of a query have a grade (0 or 1 if binary) in a part, and
    the weight of the query.
    """

    ids: NDArray[Any]
    share: NDArray[np.float64]
    n: Ints
    code: Ints
    part: Ints
    grade: NDArray[np.float64]
    members: Ints
    weight: NDArray[np.float64]

    @property
    def spans(self) -> NDArray[np.bool_]:
        """Whether the samples of a query are in several parts, (Q,)."""
        pairs = np.unique(np.stack([self.code, self.part], 1), axis=0)
        return np.asarray(np.bincount(pairs[:, 0], minlength=self.ids.size) > 1)


def label(exchange: Exchange, has_queries: bool) -> tuple[Any, NDArray[Any], Ints]:
    """Return parts with booleans or grades, the two classes, and the rows of each part."""
    distinct, rows = exchange.ask(_distinct)
    several = np.tile(distinct.values, 3)  # scikit-learn warns about labels that are all different
    try:
        classes, labels = as_labels(several, has_queries)
    except ValueError as error:
        raise _located(fault_of(error), exchange, several, rows.values) from None
    least = None if labels.grades is None else float(labels.grades.min())
    return exchange.derive(_interpret, classes[1], least), classes, rows.values


def _located(fault: Fault, exchange: Exchange, values: NDArray[Any], rows: Ints) -> Exception:
    """Return the error about one of these values with the place of the first sample that has it."""
    if fault.row < 0:
        return fault.kind(fault.text)
    number, row = (int(joined.values[0]) for joined in exchange.ask(_first_with, values[fault.row]))
    return fault._replace(row=row).error(number, rows[:number].sum())


def judge(exchange: Exchange) -> tuple[Any, Ints]:
    """Return parts with relevance or grades, of which those above 0 are relevant, and the rows of each part."""
    distinct, rows = exchange.ask(_distinct)
    truth = as_truth(distinct.values, distinct.values.size, "np.unique(relevant)")
    return exchange.derive(_interpret, 1, None if truth.dtype == np.bool_ else 0.0), rows.values


def read_queries(exchange: Exchange, may_be_empty: bool = False) -> QueryTable:
    """Return the queries of parts with booleans or grades. may_be_empty: accept that none has anything to rank."""
    of_rows, part, grade, count, weight = (joined.values for joined in exchange.ask(_count))
    ids, code = np.unique(of_rows, return_inverse=True)
    n = np.bincount(code, count, ids.size).astype(np.int64)
    first = np.zeros(ids.size)
    first[code] = weight
    wrong = np.flatnonzero(first[code] != weight)
    if wrong.size:
        k, last = wrong[0], np.flatnonzero(code == code[wrong[0]])[-1]
        raise ValueError(
            f"query {ids[code[k]]} has query_weight {weight[k]} in partition {part[k]}, but {weight[last]} in "
            f"partition {part[last]}; give all its samples one weight"
        )
    levels = np.unique(np.stack([code.astype(np.float64), grade], 1), axis=0)[:, 0].astype(np.int64)
    can_rank = np.bincount(levels, minlength=ids.size) > 1
    share = np.zeros(ids.size)
    if can_rank.any() or not may_be_empty:
        share[can_rank] = share_of_queries(first[can_rank], ids.size > 1)
    return QueryTable(ids, share, n, code, part, grade, count, weight)


def _distinct(state: Labelled) -> tuple[Distinct, Joined]:
    return Distinct(state.truth), Joined(np.array([state.truth.shape[0]]))


def _first_with(state: Labelled, value: Any) -> tuple[Joined, Joined]:
    """Return the number of the part and the first row that has this label, or nothing."""
    row = np.flatnonzero(state.truth == value)[:1]
    return Joined(np.full(row.size, state.number)), Joined(row)


def _interpret(state: Labelled, positive: Any, least: float | None) -> Labelled:
    """Return a part with booleans, true for the positive label, or with grades if `least` is given."""
    if least is None:
        return replace(state, truth=np.ascontiguousarray(state.truth == positive))
    return replace(state, truth=np.ascontiguousarray(state.truth, np.float64), least=least)


def _count(state: Labelled) -> tuple[Joined, ...]:
    """Return id, part, grade, count and weight of the query, for each query and grade of a part."""
    ids = state.ids
    grouping = group(ids, ids.size)
    codes = grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(grouping.starts)))
    grades, at = np.unique(state.truth.astype(np.float64), return_inverse=True)
    keys, first, count = np.unique(codes * max(grades.size, 1) + at, return_index=True, return_counts=True)
    weight = np.ones(keys.size) if state.weight is None else state.weight[first].astype(np.float64)
    part = np.full(keys.size, state.number)
    grade = grades[keys % max(grades.size, 1)]
    return tuple(Joined(c) for c in (ids[first], part, grade, count, weight))
