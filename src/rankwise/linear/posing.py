"""From what users pass to `fit` to the task that solvers see: which samples form which query, and of what weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.grouping import group
from rankwise.inputs import as_array, first_true
from rankwise.linear.objective import Inference, Task
from rankwise.losses import Loss
from rankwise.queries import Queries, Truth, as_queries, single_query


class Rankable(NamedTuple):
    """Queries with something to rank. order: where their samples are, None if all are in place. weights: (Q,)."""

    order: NDArray[np.int64] | None
    queries: Queries
    weights: NDArray[np.float64]


def rankable(
    truth: Truth,
    qid: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    rows: NDArray[np.int64] | None = None,
) -> Rankable:
    """The queries of some of the samples that have something to rank, with their weights as they were given."""
    n = truth.size
    if qid is None:
        order, starts = rows, np.array([0, n if rows is None else rows.size])
    else:
        ids = as_array(qid, "qid")
        if ids.shape != (n,):
            raise ValueError(f"qid has shape {ids.shape}; pass the query of every sample, ({n},)")
        grouping = group(ids if rows is None else ids[rows], n if rows is None else rows.size)
        order, starts = grouping.order, grouping.starts
        if rows is not None:
            order = rows if order is None else rows[order]
    queries = as_queries(truth if order is None else truth[order], starts)
    can_rank, sizes = queries.can_rank, queries.sizes
    weights = _weights(query_weight, n, order, starts)[can_rank]
    if not can_rank.all():
        members = np.repeat(can_rank, sizes)
        order = np.flatnonzero(members) if order is None else order[members]
        starts = np.concatenate([[0], np.cumsum(sizes[can_rank])])
        queries = as_queries(truth[order], starts)
    return Rankable(order, queries, weights)


def pose(
    truth: Truth,
    loss: Loss,
    qid: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    rows: NDArray[np.int64] | None = None,
    **inference: Any,
) -> Task:
    """The task of ranking `rows` (default: all) of the samples; queries with nothing to rank are left out.

    truth: (n,) which samples are relevant, or their grades. qid, query_weight: (n,) by sample; a weight is that of its
    query, equal for all its samples. inference: scale, method and n_threads, as `solve` takes them.
    """
    order, queries, weights = rankable(truth, qid, query_weight, rows)
    weights = share_of_queries(weights, qid is not None)
    return Task(single_query(truth).relevant, Inference(queries, loss, **inference), order, weights)


def share_of_queries(weights: NDArray[np.float64], are_several: bool) -> NDArray[np.float64]:
    """ω of all queries that can be ranked, which adds up to 1, from their weights; refuses where there is none."""
    if not weights.size:
        what = "every query has" if are_several else "the samples have"
        raise ValueError(f"{what} one class only, so there is nothing to rank; pass positives and negatives together")
    if not weights.max() > 0:
        raise ValueError("query_weight is 0 for every query that has both classes")
    weights = weights / weights.max()  # the sum of large ones would overflow
    return np.asarray(weights / weights.sum())


def _weights(
    query_weight: ArrayLike | None, n: int, order: NDArray[np.int64] | None, starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    if query_weight is None:
        return np.ones(starts.size - 1)
    array = as_array(query_weight, "query_weight")
    if array.shape != (n,):
        raise ValueError(f"query_weight has shape {array.shape}; pass the weight of every sample's query, ({n},)")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"query_weight must be numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if (k := first_true(~(np.isfinite(array) & (array >= 0)))) is not None:
        raise ValueError(f"query_weight[{k}] is {array[k]}; weights must be finite and at least 0")
    grouped = array if order is None else array[order]
    first = grouped[starts[:-1]]
    if (k := first_true(grouped != np.repeat(first, np.diff(starts)))) is not None:
        k = k if order is None else int(order[k])
        raise ValueError(f"query_weight[{k}] differs from that of other samples of its query; weigh whole queries")
    return first
