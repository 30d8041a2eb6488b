"""Data sets: the arguments of a call in any of their forms, and rows by query, prepared once and recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, as_grades, as_truth, check_length, first_true
from rankwise.queries import Grouping, Queries, as_queries, group
from rankwise.surrogates.base import take_scores

QidLike = ArrayLike | Sequence[ArrayLike]

# Number of data sets that are kept, because cross-validation uses its folds in turn.
_KEPT = 16


class Rows(NamedTuple):
    """Rows of a data set: scores (n,), labels (n,), and weights and sizes of groups if they are given.

    in_pairs: whether the caller expects a metric as a pair of name and value, as XGBoost does.
    """

    scores: NDArray[np.floating]
    labels: NDArray[Any]
    weight: NDArray[Any] | None
    group: NDArray[Any] | None
    in_pairs: bool

    def are(self, others: Rows) -> bool:
        """Return whether these are the same rows; scores may differ."""
        return all(_equal(a, b) for a, b in zip(self[1:4], others[1:4], strict=True))


def read(first: Any, second: Any, weight: Any, group: Any) -> Rows:
    """Read (predictions, data set), the native form, or (labels, predictions, weight, group), that of scikit-learn.

    A data set is recognised by its methods, so neither library is imported: both have get_label, get_weight and
    get_group, and only XGBoost's DMatrix has num_row.
    """
    labels, scores, in_pairs = first, second, False
    if hasattr(second, "get_label"):
        labels, scores, in_pairs = second.get_label(), first, hasattr(second, "num_row")
        weight, group = second.get_weight(), second.get_group()
    if labels is None:
        raise ValueError("the data set has no labels; pass grades, or 0 and 1, as label=")
    values = np.asarray(scores)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"predictions have shape {values.shape}; a ranking needs one score per row, so do not set num_class"
        )
    return Rows(take_scores(values)[0], np.asarray(labels), _given(weight), _given(group), in_pairs)


def _given(values: Any) -> NDArray[Any] | None:
    """Return an array or None. XGBoost passes an empty array for None."""
    array = None if values is None else np.asarray(values)
    return None if array is None or array.size == 0 else array


@dataclass(frozen=True, eq=False)
class DataSet:
    """A known data set: rows as given; the grouping, grades query after query, and the weight of each query, (Q,)."""

    rows: Rows
    grouping: Grouping
    grades: NDArray[np.float64]
    query_weight: NDArray[np.float64] | None

    @cached_property
    def queries(self) -> Queries:
        """Queries, as losses take them."""
        truth = as_truth(self.rows.labels, self.rows.labels.size)
        return as_queries(np.ascontiguousarray(self.grouping.gather(truth)), self.grouping.starts)

    @cached_property
    def query(self) -> NDArray[np.int64]:
        """Number of each row's query, query after query."""
        return np.repeat(np.arange(self.queries.sizes.size), self.queries.sizes)


class DataSets:
    """The data sets seen last. They are compared by content, not by identity, because memory may be reused.

    qid: the query of each row, in any order; or several such arrays of different lengths, one per data set. None if
    the data sets have groups.
    """

    def __init__(self, qid: QidLike | None) -> None:
        self._groupings = {} if qid is None else _groupings(qid)
        self._kept: list[DataSet] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data sets out of copies, which LightGBM makes of its parameters."""
        return self.__dict__ | {"_kept": []}

    def find(self, rows: Rows) -> DataSet:
        """Return the data set of these rows; prepare it if it is new."""
        data = next((one for one in self._kept if one.rows.are(rows)), None) or self._prepared(rows)
        others = [one for one in self._kept if one is not data]
        self._kept = [data, *others[: _KEPT - 1]]
        return data

    def _prepared(self, rows: Rows) -> DataSet:
        grades = as_grades(rows.labels, rows.scores.size, "label", "predictions")
        grouping = self._grouping(rows.group, rows.scores.size)
        labels, weight, group = (None if array is None else array.copy() for array in rows[1:4])
        kept = Rows(np.empty(0), np.asarray(labels), weight, group, rows.in_pairs)
        return DataSet(kept, grouping, grouping.gather(grades), _query_weight(rows, grouping))

    def _grouping(self, sizes: NDArray[Any] | None, n: int) -> Grouping:
        if self._groupings:
            if sizes is not None:
                raise ValueError("queries are given twice, by qid= and by group of the data set; pass only one of them")
            if n not in self._groupings:
                known = ", ".join(map(str, self._groupings))
                raise ValueError(f"qid= has {known} rows, but this data set has {n}; pass qid=[…], one array for each")
            return self._groupings[n]
        if sizes is None:
            raise ValueError(
                "the data set has no queries; give it group= (sizes of consecutive queries), or pass qid= (the query "
                "of each row, in any order) to rankwise; for a single query use group=[n]"
            )
        if sizes.ndim != 1 or sizes.min() < 1 or sizes.sum() != n:
            raise ValueError(
                f"group must be sizes of at least 1 that add up to the {n} rows, got a sum of {sizes.sum()}"
            )
        return Grouping(np.arange(sizes.size), np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), None)


def _equal(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _groupings(qid: QidLike) -> dict[int, Grouping]:
    parts: list[Any] = list(qid) if isinstance(qid, list | tuple) and all(np.ndim(one) == 1 for one in qid) else [qid]
    arrays = [as_array(one, "qid") for one in parts]
    found = {array.size: group(array, array.size) for array in arrays}
    if len(found) < len(arrays):
        raise ValueError(
            "two of the arrays in qid= have equal length, so their data sets cannot be told apart; pass group= to "
            "the data sets instead, or use one metric per data set"
        )
    return found


def _query_weight(rows: Rows, grouping: Grouping) -> NDArray[np.float64] | None:
    """Return weights (Q,) from weights by group, or by row if these are equal within each query."""
    if rows.weight is None:
        return None
    weight = rows.weight.astype(np.float64)
    if (k := first_true(~((weight >= 0.0) & (weight < np.inf)))) is not None:
        raise ValueError(f"weight[{k}] is {weight[k]}; weights must be finite and at least 0")
    if rows.group is not None and weight.shape == rows.group.shape:
        return weight
    check_length(weight, "weight", rows.scores.size, "predictions")
    weight = grouping.gather(weight)
    found = weight[grouping.starts[:-1]]
    query = np.repeat(np.arange(found.size), np.diff(grouping.starts))
    if (k := first_true(weight != found[query])) is not None:
        raise ValueError(
            f"query {grouping.ids[query[k]]} has rows with weights {found[query[k]]:g} and {weight[k]:g}; a ranking "
            "loss weights queries, not rows, so give all rows of a query the same weight"
        )
    return found
