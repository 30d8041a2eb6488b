"""From the arguments of `fit` to the task that solvers see: which samples form which query, with which weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, first_true
from rankwise.linear.objective import Inference, Task
from rankwise.metrics.loss import Loss
from rankwise.queries import Queries, Truth, as_queries, group, single_query
from rankwise.surrogates import Hinge, Surrogate


class Rankable(NamedTuple):
    """Queries with something to rank. order: rows of their samples, None if already in order. weights: (Q,)."""

    order: NDArray[np.int64] | None
    queries: Queries
    weights: NDArray[np.float64]


def rankable(
    truth: Truth,
    qid: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    rows: NDArray[np.int64] | None = None,
) -> Rankable:
    """Return the queries of some samples that have something to rank, with their weights as given."""
    n = truth.size
    if qid is None:
        order, starts = rows, np.array([0, n if rows is None else rows.size])
    else:
        ids = as_array(qid, "qid")
        if ids.shape != (n,):
            raise ValueError(f"qid has shape {ids.shape}; pass one query per sample, ({n},)")
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
    *,
    surrogate: Surrogate = Hinge(),  # noqa: B008
    n_threads: int = 1,
) -> Task:
    """Build a ranking task from labels and queries.

    Queries that have nothing to rank, because all samples are of one class or grade, are left out.

    Parameters
    ----------
    truth : ndarray of shape (n_samples,)
        Booleans that tell which samples are relevant, or grades as float64.
    loss : Loss
        Ranking loss, such as `rankwise.AveragePrecision()`.
    qid : array-like of shape (n_samples,), optional
        Query of each sample, in any order. By default all samples form one query.
    query_weight : array-like of shape (n_samples,), optional
        Weight of each sample's query. It must be the same for all samples of a query. By default all queries have the
        same weight.
    rows : ndarray of int, optional
        Rows of the samples to rank, such as the training samples of a fold. The default is all samples.
    surrogate : Surrogate, default Hinge()
        What is minimised in place of the loss.
    n_threads : int, default 1
        Number of threads.

    Returns
    -------
    Task
        The ranking task.

    Raises
    ------
    ValueError
        If there is nothing to rank, or if qid or query_weight are invalid.

    See Also
    --------
    Objective : Regularised risk of a task over features.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import pose
    >>> pose(np.array([True, False, False, True, True]), AveragePrecision(), qid=[7, 7, 8, 8, 9]).n_queries
    2
    """
    order, queries, weights = rankable(truth, qid, query_weight, rows)
    weights = share_of_queries(weights, qid is not None)
    return Task(single_query(truth).relevant, Inference(queries, loss, surrogate, n_threads), order, weights)


def lowest_ranked(
    grades: NDArray[np.float64],
    qid: NDArray[Any] | None,
    query_weight: NDArray[Any] | None,
    rows: NDArray[np.int64] | None = None,
) -> float:
    """Return the lowest grade of some samples' queries that count: something to rank, a weight above 0."""
    _, queries, weights = rankable(grades, qid, query_weight, rows)
    counts = share_of_queries(weights, qid is not None) > 0.0
    assert queries.grades is not None
    return float(queries.grades[np.repeat(counts, queries.sizes)].min())


def share_of_queries(weights: NDArray[np.float64], are_several: bool) -> NDArray[np.float64]:
    """Return weights ω that add up to 1, for all queries that can be ranked; raise if there are none."""
    if not weights.size:
        what = "every query has" if are_several else "the samples have"
        raise ValueError(f"{what} only one class, so there is nothing to rank; pass positives and negatives together")
    if not weights.max() > 0:
        raise ValueError(
            "query_weight is 0 for every query that has both classes; give at least one of them a positive weight"
        )
    weights = weights / weights.max()  # the sum of large ones would overflow
    return np.asarray(weights / weights.sum())


def _weights(
    query_weight: ArrayLike | None, n: int, order: NDArray[np.int64] | None, starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    if query_weight is None:
        return np.ones(starts.size - 1)
    array = as_array(query_weight, "query_weight")
    if array.shape != (n,):
        raise ValueError(f"query_weight has shape {array.shape}; pass one weight per sample, that of its query, ({n},)")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"query_weight must be numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if (k := first_true(~(np.isfinite(array) & (array >= 0)))) is not None:
        raise ValueError(f"query_weight[{k}] is {array[k]}; weights must be finite and at least 0")
    grouped = array if order is None else array[order]
    first = grouped[starts[:-1]]
    if (k := first_true(grouped != np.repeat(first, np.diff(starts)))) is not None:
        k = k if order is None else int(order[k])
        raise ValueError(
            f"query_weight[{k}] differs from that of other samples of its query; give all samples of a query one weight"
        )
    return first
