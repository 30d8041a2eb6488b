"""Exact losses and metrics of scores that are spread over several machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray

from rankwise.arguments import check_empty, check_known, raise_not_finite
from rankwise.dask.cluster import holding
from rankwise.dask.collections import as_dask_array
from rankwise.dask.loading import load_vectors
from rankwise.dask.partition import Scored, gradient_of, score
from rankwise.dask.plan import Counts, Labelled, Meaning, tabulate
from rankwise.dask.task import pose
from rankwise.distributed.exchange import Exchange, Joined
from rankwise.distributed.part import Members, Part, divide
from rankwise.distributed.standings import stand
from rankwise.documenting import documented
from rankwise.metrics.base import EMPTY, Metric, counted_as, mean_of
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss, as_metric, per_query
from rankwise.surrogates import Hinge
from rankwise.surrogates.base import Result


@documented
def structured_hinge(
    scores: Any,
    relevant: Any,
    loss: LossLike = "ap",
    *,
    qid: Any = None,
    scale: float = 1.0,
    empty: str = "zero",
    client: Client | None = None,
) -> Result:
    """Compute the structured hinge of scores that are spread over several machines.

    The value and the gradient are those of `rankwise.structured_hinge` of all scores together. They are exact, not
    averages over workers. A `SchedulerLostError` says that the scheduler cannot be reached, and other errors in which
    partition and row of all something is wrong.

    Parameters
    ----------
    scores, relevant : dask Array or Series of shape (n_samples,)
        As for `rankwise.structured_hinge`.
    {loss}
    qid : dask Array or Series of shape (n_samples,), optional
        Query of each sample, in any order over any partitions. By default all samples form one query.
    {scale}
    {empty}
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Returns
    -------
    Result
        `value`, `gradient` (a Dask array with the partitions of the scores) and `loss`.

    See Also
    --------
    rankwise.structured_hinge : The same for arrays in memory.
    average_precision : Average precision of distributed scores.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> scores, relevant = da.from_array([2.0, 1.0, 0.5, 0.0], chunks=2), da.from_array([0, 1, 0, 1], chunks=2)
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster):
    ...     found = structured_hinge(scores, relevant)
    ...     found.value, found.gradient.compute()
    (2.25, array([ 1. , -0.5,  0.5, -1. ]))
    """
    loss, hinge = as_loss(loss), Hinge(scale)
    check_empty(empty)
    with holding(client) as hold:
        parts, value, lost, rows = hinge_of(load_vectors(hold, scores, relevant, qid), loss, hinge, empty)
        gradients = parts.derive(getattr, "gradient").states
        hold.give(gradients)
    blocks = [delayed(gradient) for gradient in gradients]
    return Result(value, as_dask_array(blocks, rows.tolist(), np.empty(0)), lost)


def hinge_of(labels: Exchange, loss: Loss, hinge: Hinge, empty: str) -> tuple[Any, float, float, NDArray[np.int64]]:
    """Return partitions with gradients, J, Δ and the number of rows of each, for partitions whose data are scores."""
    counts = Counts.of(labels)
    task, table = pose(labels, counts, Meaning.to_metric(counts), loss, hinge, may_be_empty=True)
    if empty == "error" and not table.share.all():
        which = "the query" if table.ids.size == 1 else f"query {table.ids[int(np.argmin(table.share))]}"
        raise ValueError(f"{which} has nothing to rank; remove it, or pass empty='zero' or empty='skip'")
    factor = 1.0 if empty == "skip" else task.n_queries / max(table.ids.size, 1)
    parts, value, lost, each = task.solve(task.exchange.derive(score, reads=True))
    parts = parts.derive(_gradient, each, factor)
    of_parts, lost_in_parts = parts.ask(getattr, "sums")
    return parts, factor * (value + of_parts), factor * (lost + lost_in_parts), counts.rows


@documented
def average_precision(
    scores: Any,
    relevant: Any,
    *,
    k: int | None = None,
    qid: Any = None,
    empty: str = "skip",
    client: Client | None = None,
) -> float:
    """Compute the average precision of scores that are spread over several machines.

    The value is that of `rankwise.metrics.average_precision` of all scores together. It is exact, not an average over
    workers. Errors are those of `structured_hinge`.

    Parameters
    ----------
    scores, relevant : dask Array or Series of shape (n_samples,)
        As for `rankwise.metrics.average_precision`.
    {k}
    qid : dask Array or Series of shape (n_samples,), optional
        Query of each sample, in any order over any partitions. By default all samples form one query.
    {empty_metric}
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Returns
    -------
    float
        Average precision, averaged over the queries, from 0 to 1. Higher is better.

    See Also
    --------
    rankwise.metrics.average_precision : The same for arrays in memory.
    structured_hinge : Structured hinge of distributed scores.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> scores, relevant = da.from_array([0.9, 0.8, 0.7, 0.1], chunks=3), da.from_array([1, 0, 1, 0], chunks=3)
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster):
    ...     average_precision(scores, relevant)
    0.8333333333333333
    """
    metric = as_metric("ap", k)
    check_known("empty", empty, EMPTY)
    with holding(client) as hold:
        return precision_of(load_vectors(hold, scores, relevant, qid), metric, empty)


def precision_of(labels: Exchange, metric: Metric, empty: str) -> float:
    """Return the mean AP of partitions whose data are scores."""
    counts = Counts.of(labels)
    table = tabulate(counts, Meaning.to_metric(counts), may_be_empty=True)
    shared = table.ids[table.spans]
    values: NDArray[np.float64] = labels.ask(_values, shared, metric.k, reads=True).values
    standings = stand(labels.derive(_divide, shared, reads=True)) if shared.size else []
    values = np.concatenate([values, *(metric.of_ties(standing.ties()) for standing in standings)])
    if empty == "error" and np.isnan(values).any():
        raise ValueError(
            f"a query has no relevant samples, so {metric.name} is not defined; pass empty='skip', 'zero' or 'one'"
        )
    return mean_of(metric, counted_as(values, empty), empty)


@dataclass(frozen=True)
class _Done:
    """A partition with its gradient. sums: its contributions to risk and loss."""

    sums: tuple[float, float]
    gradient: NDArray[np.float64]


def _gradient(state: Scored, of_client: NDArray[np.float64] | None, factor: float) -> _Done:
    value, lost, gradient = gradient_of(state, of_client)
    return _Done((value, lost), factor * gradient)


def _values(scores: NDArray[np.float64], state: Labelled, shared: NDArray[Any], k: int | None) -> Joined:
    """Return the values of queries that are only in this partition."""
    raise_not_finite(scores)
    own = ~np.isin(state.ids, shared)
    return Joined(per_query("ap", scores[own], state.y[own] > 0, state.ids[own], k=k, empty="skip")[1])


def _divide(scores: NDArray[np.float64], state: Labelled, shared: NDArray[Any]) -> Part:
    """Return a partition with its portions of queries that are in several partitions."""
    rows = [np.flatnonzero(state.ids == one) for one in shared]
    return divide(Part(scores), [Members(own, np.flatnonzero(state.y[own] > 0), 0, own.size) for own in rows])
