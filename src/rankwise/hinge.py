"""The structured hinge J of a ranking loss and its semi-gradient, for one query or many.

    J = max_R scale·Δ(R*, R) + F(R) − F(R*),   F(R) = (1/PN) Σ_{x ∈ P, y ∈ N} R_xy (s_x − s_y)

With r_j the interleaving rank of a negative in the maximising ranking and c_k the number of negatives above the k-th
positive, ∂J/∂s = 2(P + 1 − r_j)/(PN) for a negative and −2 c_k/(PN) for a positive. Samples of one class that tie in
score share their gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.border import give_gradient, mean_gradient, n_used, take_scores
from rankwise.grades import level_weights, levels_of, thresholds_of
from rankwise.grouping import Grouping, group
from rankwise.inputs import (
    NotFiniteError,
    as_scale,
    as_scores,
    as_threads,
    as_truth,
    check_empty,
    not_finite,
    raise_not_finite,
)
from rankwise.interleaving import Interleaving
from rankwise.losses import Loss, LossLike, as_loss
from rankwise.method import as_method
from rankwise.queries import FoundRanking, Queries, as_queries, single_query
from rankwise.solving import solve

__all__ = ["HingeResult", "PerQuery", "most_violating_ranking", "ranking_loss", "structured_hinge"]


@dataclass(frozen=True, eq=False)
class PerQuery:
    """Results of `structured_hinge` for each query, sorted by query.

    Parameters
    ----------
    qid : ndarray of shape (Q,)
        The queries.
    value : ndarray of shape (Q,)
        Structured hinge J of each query.
    loss : ndarray of shape (Q,)
        Loss Δ of the most violating ranking of each query.
    n_pos : ndarray of shape (Q,)
        Number of positives of each query.
    n_neg : ndarray of shape (Q,)
        Number of negatives of each query.

    See Also
    --------
    HingeResult : The result that holds this in `per_query`.

    Examples
    --------
    >>> import rankwise as rw
    >>> scores, relevant, qid = [2.0, 1.0, 0.5, 0.0], [False, True, True, False], [7, 7, 8, 8]
    >>> r = rw.structured_hinge(scores, relevant, qid=qid)
    >>> r.per_query.qid, r.per_query.value
    (array([7, 8]), array([2.5, 0. ]))
    """

    qid: NDArray[Any]
    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]


@dataclass(eq=False)
class HingeResult:
    """Result of `structured_hinge`.

    Parameters
    ----------
    value : float
        Structured hinge J, or its mean over queries.
    gradient : ndarray of shape (n,)
        Semi-gradient of `value` in the scores, read-only and in the dtype of the scores.
    loss : float
        Loss Δ of the most violating ranking, or its mean over queries.
    per_query : PerQuery, optional
        Results of each query. None if no `qid` was given.

    See Also
    --------
    structured_hinge : Compute this result.
    PerQuery : The results of each query.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.structured_hinge([2.0, 1.0, 0.5, 0.0], [False, True, False, True])
    >>> round(r.value, 4), r.gradient
    (2.25, array([ 1. , -0.5,  0.5, -1. ]))
    >>> r.interleaving
    Interleaving(-+-+)
    """

    value: float
    gradient: NDArray[np.floating]
    loss: float
    per_query: PerQuery | None = None
    _ranking: FoundRanking | None = field(default=None, init=False, repr=False)

    @cached_property
    def interleaving(self) -> Interleaving:
        """The most violating ranking of a single query, as an `Interleaving`.

        Raises
        ------
        ValueError
            If there are several queries, if the query is empty, or if it has grades.
        """
        if self._ranking is None:
            several = self.per_query is not None
            why = "each query has its own" if several else "the query is empty or has grades"
            raise ValueError(
                f"there is no single most violating ranking: {why}; call most_violating_ranking on one query's samples"
            )
        return self._ranking.interleaving()


def structured_hinge(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    qid: ArrayLike | None = None,
    scale: float = 1.0,
    method: str = "auto",
    cutoff: int | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> HingeResult:
    """Compute the structured hinge of a ranking loss and its gradient in the scores.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*),   F(R) = (1/PN) Σ_{x ∈ P, y ∈ N} R_xy (s_x − s_y)

    J is a convex upper bound of scale·Δ, such as 1 − AP, so it can be minimised by gradient descent or a solver. It is
    to a ranking loss what the hinge loss is to the 0-1 loss.

    R is a ranking of the P positives and N negatives of a query, with R_xy = 1 if positive x is above negative y, else
    −1. R* is the perfect ranking. F(R) is how well R agrees with the scores s. The maximum is reached by the most
    violating ranking, which has a high loss and yet agrees with the scores.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades; then J = Σ_l α_l J_l is a
        weighted mean over the grades l as thresholds, still convex and an upper bound.
    loss : str or Loss, default "ap"
        Name of a loss, "ap", "ndcg", "mrr", "auc", "f1" or "zero-one"; a loss of the first k places, such as "ndcg@10",
        "ap@100", "mrr@10" or "precision@10"; or a `Loss`, such as a `DiscountedLoss` of your own.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    scale : float, default 1.0
        Weight of the loss Δ against the scores. It may be negative only with method="dynamic" or "exhaustive".
    method : str, default "auto"
        Method that finds the most violating ranking. "auto" chooses the fastest exact one. The others are listed in
        `rankwise.inference.METHODS`; the exact ones agree in value. "dynamic", "chakrabarti" and "exhaustive" also take
        losses that are not QS-suitable.
    cutoff : int, optional
        Only for method="chakrabarti": the discount counts as 0 from this place on.
    n_threads : int, default 1
        Number of threads; −1 uses all processors. Results do not depend on it.
    empty : {"zero", "skip", "error"}, default "zero"
        What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "zero" counts
        it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.

    Returns
    -------
    HingeResult
        `value` (J, or its mean over queries), `gradient` of shape (n,), `loss` (Δ of the most violating ranking), and
        `per_query` if `qid` is given. For a single query, `interleaving` is the most violating ranking.

    Raises
    ------
    ValueError
        If a score is not finite, lengths differ, or an option is unknown.
    NotQSSuitableError
        If the loss is not QS-suitable and the method needs it to be.

    See Also
    --------
    most_violating_ranking : Return only the ranking.
    smooth_loss : A tighter loss that is not convex.
    ranking_loss : The loss Δ itself.

    Notes
    -----
    J is piecewise linear. Where it has a kink, `gradient` is the gradient of one of the pieces (a semi-gradient, or
    subgradient). A negative of interleaving rank r_j (one plus the number of positives above it in the most violating
    ranking) has ∂J/∂s = 2(P + 1 − r_j)/(PN), and the k-th positive with c_k negatives above it has −2 c_k/(PN). Samples
    of one class with equal scores share their gradient.

    Examples
    --------
    >>> r = structured_hinge([2.0, 1.0, 0.5, 0.0], [False, True, False, True], loss="ap")
    >>> round(r.value, 4), round(r.loss, 4), r.interleaving.pattern()
    (2.25, 0.5, '-+-+')
    >>> r.gradient
    array([ 1. , -0.5,  0.5, -1. ])
    """
    array, dtype = take_scores(scores)
    truth = as_truth(relevant, array.shape[0])
    loss = as_loss(loss)
    check_empty(empty)
    how = as_method(method, loss, cutoff)
    scale, n_threads = as_scale(scale, method), as_threads(n_threads)
    if qid is None:
        queries = single_query(truth)
        solved = solve(array, queries, loss, scale, how, n_threads)
        if solved.ranking is None:
            n_used(queries, None, empty)
        gradient = give_gradient(solved.gradient, dtype)
        result = HingeResult(float(solved.value[0]), gradient, float(solved.loss[0]))
        result._ranking = solved.ranking
        return result
    grouping = group(qid, array.shape[0])
    queries = as_queries(grouping.gather(truth), grouping.starts)
    try:
        solved = solve(grouping.gather(array), queries, loss, scale, how, n_threads)
    except NotFiniteError as error:
        raise not_finite(array) or error from None  # name its place in the input
    used = n_used(queries, grouping.ids, empty)
    gradient = mean_gradient(solved.gradient, used, grouping, dtype)
    per_query = PerQuery(grouping.ids, solved.value, solved.loss, solved.n_pos, solved.n_neg)
    return HingeResult(float(solved.value.sum()) / used, gradient, float(solved.loss.sum()) / used, per_query)


def most_violating_ranking(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    scale: float = 1.0,
    method: str = "auto",
    cutoff: int | None = None,
    n_threads: int = 1,
) -> Interleaving:
    """Find the ranking that maximises the loss plus the agreement with the scores.

        R = argmax_R scale·Δ(R*, R) + F(R)

    This is loss-augmented inference, the inner problem of a structured SVM. See `structured_hinge` for Δ and F.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or 0 and 1. There must be positives and negatives. Grades are not
        supported.
    loss : str or Loss, default "ap"
        Name of a loss, "ap", "ndcg", "mrr", "auc", "f1" or "zero-one"; a loss of the first k places, such as "ndcg@10",
        "ap@100", "mrr@10" or "precision@10"; or a `Loss`, such as a `DiscountedLoss` of your own.
    scale : float, default 1.0
        Weight of the loss Δ against the scores. It may be negative only with method="dynamic" or "exhaustive".
    method : str, default "auto"
        Method that finds the most violating ranking. "auto" chooses the fastest exact one. The others are listed in
        `rankwise.inference.METHODS`; the exact ones agree in value. "dynamic", "chakrabarti" and "exhaustive" also take
        losses that are not QS-suitable.
    cutoff : int, optional
        Only for method="chakrabarti": the discount counts as 0 from this place on.
    n_threads : int, default 1
        Number of threads; −1 uses all processors. Results do not depend on it.

    Returns
    -------
    Interleaving
        The ranking.

    Raises
    ------
    ValueError
        If a score is not finite, lengths differ, an option is unknown, or there are no positives or no negatives.
    NotQSSuitableError
        If the loss is not QS-suitable and the method needs it to be.

    See Also
    --------
    structured_hinge : The value of the maximum, and its gradient.
    Interleaving : The ranking as ranks, order, pattern or matrix.

    Examples
    --------
    >>> most_violating_ranking([1.2, 1.0, 0.9, -9.0], [True, True, False, False], "ap").pattern()
    '-++-'
    """
    return structured_hinge(
        scores, relevant, loss, scale=scale, method=method, cutoff=cutoff, n_threads=n_threads, empty="error"
    ).interleaving


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

    Δ is, for example, 1 − AP. The structured hinge is never less than Δ (with scale=1).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades; then Δ = Σ_l α_l Δ_l is a
        weighted mean over the grades l as thresholds. This is graded NDCG for "ndcg" and Robertson's graded AP for
        "ap".
    loss : str or Loss, default "ap"
        Name of a loss, "ap", "ndcg", "mrr", "auc", "f1" or "zero-one"; a loss of the first k places, such as "ndcg@10",
        "ap@100", "mrr@10" or "precision@10"; or a `Loss`, such as a `DiscountedLoss` of your own.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    ties : {"worst", "best"}, default "worst"
        Whether a positive and a negative with equal scores count as misranked ("worst") or not ("best"). With grades,
        the lower grade comes first or last.
    empty : {"zero", "skip", "error"}, default "zero"
        What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "zero" counts
        it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.

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

    Notes
    -----
    For the loss "zero-one", Δ is the fraction of samples on the wrong side of 0.

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
    if ties not in ("worst", "best"):
        raise ValueError(f"unknown ties={ties!r}; use 'worst' or 'best'")
    raise_not_finite(array)
    grouping = Grouping(np.zeros(1), np.array([0, n]), None) if qid is None else group(qid, n)
    array, queries = grouping.gather(array), as_queries(grouping.gather(truth), grouping.starts)
    used = n_used(queries, None if qid is None else grouping.ids, empty)
    if queries.grades is None:
        return float(_losses_of(array, queries, loss, ties).sum()) / used
    weights, starts, total = level_weights(queries, loss), levels_of(queries).starts, 0.0
    for t, which, samples, binary in thresholds_of(queries):
        part = array[samples] if samples.size else array
        total += float(weights[starts[which] + t] @ _losses_of(part, binary, loss, ties))
    return total / used


def _losses_of(scores: NDArray[np.floating], queries: Queries, loss: Loss, ties: str) -> NDArray[np.float64]:
    """Return Δ of each query with binary relevance, (Q,); 0 if there is nothing to rank."""
    losses = np.zeros(queries.sizes.size)
    for q in np.flatnonzero(queries.can_rank):
        part = slice(queries.starts[q], queries.starts[q + 1])
        losses[q] = loss.of_scores(scores[part], queries.relevant[part], ties == "worst")
    return losses
