"""Exact losses and metrics of scores that are spread over several machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray

from rankwise.arguments import check_empty, check_known, raise_not_finite
from rankwise.dask.collections import as_dask_array
from rankwise.dask.holding import holding
from rankwise.dask.labelling import Known, judge, read_queries
from rankwise.dask.layout import Layout, Loaded, load
from rankwise.dask.loading import load_vectors
from rankwise.dask.objective import gradient_of, pose_parts
from rankwise.metrics.base import EMPTY, Metric, counted_as, mean_of
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss, as_metric, per_query
from rankwise.parts.exchange import Exchange, Joined
from rankwise.parts.ranks import stand
from rankwise.parts.share import Plan, Scored, share_out, totals_of
from rankwise.surrogates import Hinge

__all__ = ["DaskHingeResult", "average_precision", "structured_hinge"]


@dataclass(eq=False)
class DaskHingeResult:
    """Structured hinge of distributed scores.

    Attributes
    ----------
    value : float
        Structured hinge J, averaged over the queries.
    gradient : dask Array of shape (n_samples,)
        Gradient of the value in the scores, with their partitions.
    loss : float
        Ranking loss Δ of the most violating ranking, averaged over the queries.
    """

    value: float
    gradient: Any
    loss: float


def structured_hinge(
    scores: Any,
    relevant: Any,
    loss: LossLike = "ap",
    *,
    qid: Any = None,
    scale: float = 1.0,
    empty: str = "zero",
    client: Client | None = None,
) -> DaskHingeResult:
    """Compute the structured hinge of scores that are spread over several machines.

    The value and the gradient are those of `rankwise.structured_hinge` of all scores together. They are exact, not
    averages over workers.

    Parameters
    ----------
    scores : dask Array or Series of shape (n_samples,)
        Scores, real numbers. A higher score ranks a sample further up.
    relevant : dask Array or Series of shape (n_samples,)
        Booleans, or 0 and 1, that tell which samples are relevant. Other numbers are grades.
    loss : str or Loss, default "ap"
        Ranking loss: "ap", "ndcg", "mrr", "auc" or another name, or a `rankwise.Loss`.
    qid : dask Array or Series of shape (n_samples,), optional
        Query of each sample, in any order over any partitions. By default all samples form one query.
    scale : float, default 1.0
        Weight of the loss against the margin.
    empty : {"zero", "skip", "error"}, default "zero"
        What to do with queries that have nothing to rank: count them as 0, leave them out of the mean, or raise an
        error.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Returns
    -------
    DaskHingeResult
        Value, gradient and loss.

    Raises
    ------
    SchedulerLostError
        If the Dask scheduler can no longer be reached, or if the client is closed.
    TypeError
        If the data are not Dask collections, or not numbers.
    ValueError
        If a score is not finite, or if the partitions do not match.

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
        gradients = parts.derive(_give).states
        hold.give(gradients)
    blocks = [delayed(gradient) for gradient in gradients]
    return DaskHingeResult(value, as_dask_array(blocks, rows.tolist(), np.empty(0)), lost)


def hinge_of(exchange: Exchange, loss: Loss, hinge: Hinge, empty: str) -> tuple[Any, float, float, NDArray[np.int64]]:
    """Return parts with gradients, J, Δ and the number of rows of each part, for parts whose data are scores."""
    known, rows = judge(exchange)
    task, table = pose_parts(known, rows.size, loss, hinge, may_be_empty=True)
    if empty == "error" and not table.share.all():
        which = "the query" if table.ids.size == 1 else f"query {table.ids[int(np.argmin(table.share))]}"
        raise ValueError(f"{which} has nothing to rank; remove it, or pass empty='zero' or empty='skip'")
    factor = 1.0 if empty == "skip" else task.n_queries / max(table.ids.size, 1)
    parts, risks = task.solve(task.exchange.derive(_load, reads=True))
    parts = parts.derive(_gradient, factor, each=risks.each)
    value, lost = risks.total(*parts.ask(_sums))
    return parts, factor * value, factor * lost, rows


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
    workers.

    Parameters
    ----------
    scores : dask Array or Series of shape (n_samples,)
        Scores, real numbers. A higher score ranks a sample further up.
    relevant : dask Array or Series of shape (n_samples,)
        Booleans, or 0 and 1, that tell which samples are relevant. Grades above 0 are relevant.
    k : int, optional
        Cut-off: only the first k places count. By default all places count.
    qid : dask Array or Series of shape (n_samples,), optional
        Query of each sample, in any order over any partitions. By default all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with queries without relevant samples: leave them out of the mean, count them as 0 or as 1, or raise
        an error.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Returns
    -------
    float
        Average precision, averaged over the queries, from 0 to 1. Higher is better.

    Raises
    ------
    SchedulerLostError
        If the Dask scheduler can no longer be reached, or if the client is closed.
    TypeError
        If the data are not Dask collections, or not numbers.
    ValueError
        If a score is not finite, or if the partitions do not match.

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


def precision_of(exchange: Exchange, metric: Metric, empty: str) -> float:
    """Return the mean AP of parts whose data are scores."""
    known = judge(exchange)[0].derive(_as_binary)
    table = read_queries(known, may_be_empty=True)
    shared = table.ids[table.spans]
    values: NDArray[np.float64] = known.ask(_values, shared, metric.k, reads=True).values
    standings = stand(known.derive(_shares, shared, reads=True)) if shared.size else []
    together = [metric.of_steps(standing.steps()) for standing in standings]
    values = np.concatenate([values, *together])
    if empty == "error" and np.isnan(values).any():
        raise ValueError(
            f"a query has no relevant samples, so {metric.name} is not defined; pass empty='skip', 'zero' or 'one'"
        )
    return mean_of(metric, counted_as(values, empty), empty)


def _load(scores: NDArray[np.float64], state: Layout) -> Loaded:
    return load(state, scores)


@dataclass(frozen=True)
class _Done:
    value: float
    loss: float
    gradient: NDArray[np.float64]
    totals: list[float]


def _gradient(state: Loaded, *given: Any) -> _Done:
    *each, factor = given
    value, lost, gradient = gradient_of(state, each[0] if each else None, state.layout.surrogate)
    return _Done(value, lost, factor * gradient, totals_of(state))


def _sums(state: _Done) -> tuple[float, float, list[float]]:
    return state.value, state.loss, state.totals


def _give(state: _Done) -> NDArray[np.float64]:
    return state.gradient


def _as_binary(state: Known) -> Known:
    return Known(state.number, state.y, state.qid, state.weight, state.relevant, state.relevant)


def _values(scores: NDArray[np.float64], state: Known, shared: NDArray[Any], k: int | None) -> Joined:
    """Return the values of queries that are only in this part."""
    raise_not_finite(scores)
    ids = np.zeros(scores.size, np.int64) if state.qid is None else state.qid
    own = ~np.isin(ids, shared)
    return Joined(per_query("ap", scores[own], state.relevant[own], ids[own], k=k, empty="skip")[1])


def _shares(scores: NDArray[np.float64], state: Known, shared: NDArray[Any]) -> Scored:
    """Return a part with its shares of queries that are in several parts."""
    ids = np.zeros(scores.size, np.int64) if state.qid is None else state.qid
    plans = []
    for one in shared:
        rows = np.flatnonzero(ids == one)
        plans.append(Plan(rows, np.flatnonzero(state.relevant[rows]), 0, rows.size))
    return share_out(Scored(scores), plans)
