"""J(scores), the structured hinge of a rank loss, and its semi-gradient: one query or many.

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
    """One entry a query, sorted by qid: J, Δ of its most violating ranking, its positives and negatives."""

    qid: NDArray[Any]
    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]


@dataclass(eq=False)
class HingeResult:
    """The structured hinge of a loss.

    value: J, or its mean over queries. gradient: (n,) its semi-gradient in the scores; read-only. loss: Δ of the most
    violating ranking, or its mean. per_query: one entry a query, or None where there is but one.
    """

    value: float
    gradient: NDArray[np.floating]
    loss: float
    per_query: PerQuery | None = None
    _ranking: FoundRanking | None = field(default=None, repr=False)

    @cached_property
    def interleaving(self) -> Interleaving:
        """The most violating ranking of a single query."""
        if self._ranking is None:
            several = self.per_query is not None
            why = "there is one for each of several queries" if several else "the query is empty, or has grades"
            raise ValueError(
                f"no single most violating ranking: {why}; call most_violating_ranking on one query's samples"
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
    """J = max_R scale·Δ(R*, R) + F(R) − F(R*) and its semi-gradient in the scores; with qid, the mean over queries.

    scores: (n,) real numbers. relevant: (n,) booleans, or 0 and 1; other numbers are grades, for which J = Σ_l α_l J_l
    over thresholds l, convex and an upper bound (see rankwise.grades). loss: a name or a `Loss`. qid: (n,) integers or
    strings, in any order. scale: the weight of the loss against F; below 0 only with method="dynamic" or "exhaustive",
    which also take losses without (C2). method: "auto", or a name in rankwise.inference.METHODS; all exact ones agree.
    cutoff: only with method="chakrabarti". n_threads: queries in parallel, or one large query; −1 for all processors.
    empty: a query without positives or without negatives, or of one grade only, counts as 0 ("zero"), is left out of
    the mean ("skip") or refused ("error").

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
        return HingeResult(float(solved.value[0]), gradient, float(solved.loss[0]), None, solved.ranking)
    grouping = group(qid, array.shape[0])
    queries = as_queries(grouping.gather(truth), grouping.starts)
    try:
        solved = solve(grouping.gather(array), queries, loss, scale, how, n_threads)
    except NotFiniteError as error:
        raise not_finite(array) or error from None  # by its place as it was given
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
    """The ranking R that maximises scale·Δ(R*, R) + F(R), for one query with positives and negatives; no grades.

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
    """Δ of the ranking that the scores induce; the mean over queries if qid is given. J is never less.

    relevant: (n,) booleans, 0 and 1, or grades, for which Δ = Σ_l α_l Δ_l: graded NDCG, Robertson's graded AP, …
    A positive and a negative of equal score are misranked (ties="worst"), or not (ties="best"); of samples with grades,
    the lower grade comes first, or last. For the 0-1 loss, Δ is the fraction of samples on the wrong side of 0.

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
    """Δ of each query with binary relevance, (Q,); 0 where there is nothing to rank."""
    losses = np.zeros(queries.sizes.size)
    for q in np.flatnonzero(queries.can_rank):
        part = slice(queries.starts[q], queries.starts[q + 1])
        losses[q] = loss.of_scores(scores[part], queries.relevant[part], ties == "worst")
    return losses
