"""The structured hinge of scores that are spread over several machines."""

from __future__ import annotations

from operator import getitem
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray

from rankwise.arguments import check_empty
from rankwise.dask.cluster import holding
from rankwise.dask.collections import as_dask_array
from rankwise.dask.exchange import Exchange
from rankwise.dask.loading import load_vectors
from rankwise.dask.partition import gradient_of, score
from rankwise.dask.plan import Counts, Meaning
from rankwise.dask.portions import Scored
from rankwise.dask.task import pose
from rankwise.documenting import documented
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
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

    Value and gradient are exactly those of `rankwise.structured_hinge` of all scores together.

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
    DaskRankSVM : Ranker that minimises it.

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
        gradients = parts.derive(getitem, 1).states
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
    of_parts, lost_in_parts = parts.ask(getitem, 0)
    return parts, factor * (value + of_parts), factor * (lost + lost_in_parts), counts.rows


def _gradient(state: Scored, of_client: NDArray[np.float64] | None, factor: float) -> tuple[Any, NDArray[np.float64]]:
    """Return the partition's contributions to risk and loss, and its gradient."""
    value, lost, gradient = gradient_of(state, of_client)
    return (value, lost), factor * gradient
