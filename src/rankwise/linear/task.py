"""The ranking task that solvers see: which samples form which query, with which weight, and what is minimised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, first_true
from rankwise.linear.features import Vector
from rankwise.metrics.loss import Loss
from rankwise.queries import Queries, Solved, Truth, as_queries, group
from rankwise.surrogates import Hinge, Surrogate


class Inference(NamedTuple):
    """Queries, loss and surrogate: all that a value needs except the scores."""

    queries: Queries
    loss: Loss
    surrogate: Surrogate = Hinge()
    n_threads: int = 1

    def solve(self, scores: NDArray[np.floating]) -> Solved:
        """Solve scores, query after query."""
        return self.surrogate.solve(scores, self.queries, self.loss, self.n_threads)


class Risk(NamedTuple):
    """The sums Σ ω J and Σ ω Δ over queries, and the gradient by sample, (n,)."""

    value: float
    loss: float
    gradient: Vector


@dataclass(frozen=True, eq=False)
class Task:
    """Queries that have something to rank, among n_samples samples, and what counts.

    order: rows of the samples, query after query; None if all samples are in this order already. weights: (Q,) weight ω
    of each query; they add up to 1.
    """

    n_samples: int
    inference: Inference
    order: NDArray[np.int64] | None
    weights: Vector

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.weights.size

    @property
    def lowest_grade(self) -> float:
        """The lowest grade of queries whose weight is not 0."""
        queries = self.inference.queries
        return float(queries.truth[np.repeat(self.weights > 0.0, queries.sizes)].min())

    @cached_property
    def _weight_of_sample(self) -> Vector:
        return np.repeat(self.weights, self.inference.queries.sizes)

    def by(self, loss: Loss | None = None, surrogate: Surrogate | None = None) -> Task:
        """Return the same task for another loss or surrogate."""
        surrogate = surrogate or self.inference.surrogate
        accepted = surrogate.accepts(loss or self.inference.loss)
        return replace(self, inference=self.inference._replace(loss=accepted, surrogate=surrogate))

    def gather(self, scores: Vector) -> Vector:
        """Return the scores of the samples in the task, query after query."""
        return scores if self.order is None else scores[self.order]

    def weigh(self, solved: Solved) -> Risk:
        """Sum up values, losses and gradients by the weights of their queries; the gradient by sample, (n,)."""
        if self.n_queries == 1 and self.weights[0] == 1.0:
            value, lost = float(solved.value[0]), float(solved.loss[0])
            gradient = solved.gradient.astype(np.float64, copy=False)
        else:
            value, lost = float(self.weights @ solved.value), float(self.weights @ solved.loss)
            gradient = solved.gradient * self._weight_of_sample
        if self.order is None:
            return Risk(value, lost, gradient)
        scattered = np.zeros(self.n_samples)  # samples outside the task have gradient 0
        scattered[self.order] = gradient
        return Risk(value, lost, scattered)


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
        Booleans (which samples are relevant), or grades as float64.
    loss : Loss
        Ranking loss, such as `rankwise.AveragePrecision()`.
    qid : array-like of shape (n_samples,), optional
        Query of each sample, in any order. By default all samples form one query.
    query_weight : array-like of shape (n_samples,), optional
        Weight of each sample's query, the same for all samples of a query. By default all weights are equal.
    rows : ndarray of int, optional
        Rows of the samples to rank, such as those of a fold. The default is all samples.
    surrogate : Surrogate, default Hinge()
        What is minimised in place of the loss.
    n_threads : int, default 1
        Number of threads.

    Returns
    -------
    Task
        The ranking task, for `Objective`.

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
    return Task(truth.size, Inference(queries, loss, surrogate, n_threads), order, weights)


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
