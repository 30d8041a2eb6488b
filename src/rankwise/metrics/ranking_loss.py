"""The loss Δ of the ranking that scores induce."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_scores, as_truth, check_empty, check_known, raise_not_finite
from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.metrics.thresholds import level_weights, levels_of, thresholds_of
from rankwise.queries import Grouping, Queries, as_queries, group, n_used

__all__ = ["ranking_loss"]


@documented
def ranking_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    qid: ArrayLike | None = None,
    ties: str = "worst",
    empty: str = "zero",
) -> float:
    """Compute the loss Δ of the ranking that the scores induce.

    Δ is, for example, 1 − AP. The structured hinge is never less than Δ (with scale=1). With grades, Δ = Σ_l α_l Δ_l is
    a weighted mean over the grades l as thresholds: graded NDCG for "ndcg", Robertson's graded AP for "ap". For
    "zero-one", Δ is the fraction of samples on the wrong side of 0.

    {arguments}

    Returns
    -------
    float
        The loss, or its mean over queries.

    Raises
    ------
    ValueError
        If a score is not finite, lengths differ, or an option is unknown.

    See Also
    --------
    structured_hinge : A convex upper bound of the loss, with a gradient.
    metrics.average_precision : The metric AP, with ties averaged.

    Examples
    --------
    >>> round(ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], "ap"), 4)
    0.1667
    """
    array, _ = as_scores(scores)
    n = array.shape[0]
    truth = as_truth(relevant, n)
    loss = as_loss(loss)
    check_empty(empty)
    check_known("ties", ties, ("worst", "best"))
    raise_not_finite(array)
    grouping = Grouping(np.zeros(1), np.array([0, n]), None) if qid is None else group(qid, n)
    array, queries = grouping.gather(array), as_queries(grouping.gather(truth), grouping.starts)
    used = n_used(queries, None if qid is None else grouping.ids, empty)
    if queries.grades is None:
        return float(_losses_of(array, queries, loss, ties).sum()) / used
    weights, starts, total = level_weights(queries, loss), levels_of(queries).starts, 0.0
    for t, which, samples, binary in thresholds_of(queries):
        own = array[samples] if samples.size else array
        total += float(weights[starts[which] + t] @ _losses_of(own, binary, loss, ties))
    return total / used


def _losses_of(scores: NDArray[np.floating], queries: Queries, loss: Loss, ties: str) -> FloatArray:
    """Return Δ of each query with binary relevance, (Q,); 0 if there is nothing to rank."""
    losses = np.zeros(queries.sizes.size)
    for q in np.flatnonzero(queries.can_rank):
        own = slice(queries.starts[q], queries.starts[q + 1])
        losses[q] = loss.of_scores(scores[own], queries.relevant[own], ties == "worst")
    return losses
