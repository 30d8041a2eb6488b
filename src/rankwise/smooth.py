"""Tight losses of scores at the cost of a sort: the smooth loss with its true gradient, and the error-driven loss.

A comparison is softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). The number of negatives above the k-th positive
becomes c_k = Σ_j H(s_j − s_k), and the loss is evaluated at these soft counts:

    smooth:        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k))
                   a_k = −(w_k/C)·D′(k + c_k);  ∂Δ/∂s_k = −a_k·#{j : |s_j − s_k| < width}/(2·width);
                   ∂Δ/∂s_j = Σ {a_k : |s_j − s_k| < width}/(2·width)
    error-driven:  p_k = ½ + Σ_i H(s_i − s_k) over positives, a soft place; e_k = (w(p_k)/C) (D(p_k) − D(p_k + c_k));
                   update −e_k of a positive, Σ_k e_k·H(s_j − s_k)/c_k of a negative

Both are bounded. The smooth loss has no gradient for positives that lie far below the negatives; the error-driven loss
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.border import give_gradient, mean_gradient, n_used, take_scores
from rankwise.discounted_loss import DiscountedLoss
from rankwise.grades import sum_over_levels, sums_of
from rankwise.grouping import group
from rankwise.inputs import (
    NotFiniteError,
    as_threads,
    as_truth,
    check_empty,
    is_number,
    not_finite,
)
from rankwise.loss_forms import Form, Loss
from rankwise.losses import LossLike, as_loss
from rankwise.queries import Queries, as_queries, single_query
from rankwise.soft_ranks import by_worth, solve_ranked
from rankwise.soft_ways import errors_of, soft_kernels

__all__ = [
    "SmoothPerQuery",
    "SmoothResult",
    "SolvedSmooth",
    "as_smooth",
    "as_width",
    "error_driven_loss",
    "error_driven_way",
    "smooth_loss",
    "solve_smooth",
]

# Halves and squares of a width must not overflow or underflow.
_LEAST, _MOST = 1e-150, 1e150
# The ways whose gradient is the derivative of the value.
_TRUE = ("smooth", "by threshold")


@dataclass(frozen=True, eq=False)
class SmoothPerQuery:
    """Results of `smooth_loss` or `error_driven_loss` for each query, sorted by query.

    Parameters
    ----------
    qid : ndarray of shape (Q,)
        The queries.
    value : ndarray of shape (Q,)
        Loss of each query.
    n_pos : ndarray of shape (Q,)
        Number of positives of each query.
    n_neg : ndarray of shape (Q,)
        Number of negatives of each query.

    See Also
    --------
    SmoothResult : The result that holds this in `per_query`.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.smooth_loss([2.0, 1.0, 0.5, 0.0], [False, True, True, False], width=0.25, qid=[7, 7, 8, 8])
    >>> r.per_query.qid, r.per_query.value
    (array([7, 8]), array([0.5, 0. ]))
    """

    qid: NDArray[Any]
    value: NDArray[np.float64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]


@dataclass(eq=False)
class SmoothResult:
    """Result of `smooth_loss` or `error_driven_loss`.

    Parameters
    ----------
    value : float
        Loss, or its mean over queries. It is in [0, 1] for the built-in losses.
    gradient : ndarray of shape (n,)
        Gradient of `value` in the scores, or the error-driven update. It is read-only.
    per_query : SmoothPerQuery, optional
        Results of each query. None if no `qid` was given.

    See Also
    --------
    smooth_loss : A loss with its gradient.
    error_driven_loss : A loss with an error-driven update.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.smooth_loss([1.0, 0.0], [False, True], "auc", width=2.0)
    >>> r.value, r.gradient
    (0.75, array([ 0.25, -0.25]))
    """

    value: float
    gradient: NDArray[np.floating]
    per_query: SmoothPerQuery | None = None


class SolvedSmooth(NamedTuple):
    """Loss of each query, and the gradient of their sum for each sample, in the dtype of the scores."""

    value: NDArray[np.float64]
    gradient: NDArray[np.floating]

    @property
    def loss(self) -> NDArray[np.float64]:
        """The value again: the loss itself is minimised."""
        return self.value


def smooth_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    qid: ArrayLike | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> SmoothResult:
    """Compute a ranking loss with softened comparisons, and its gradient.

        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),   c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1)

    The loss, such as 1 − AP, depends on how many negatives j are above each positive k. Here each comparison of two
    scores is softened by a ramp, so the count c_k changes continuously and the loss has a gradient. The result is
    bounded and not convex. As the width falls to 0 it becomes the loss itself, with a tie counted as half an error. It
    takes about as long as sorting the scores.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades, see Notes.
    loss : str, DiscountedLoss or FMeasure, default "ap"
        Name of a loss, "ap", "ndcg", "mrr", "auc" or "f1"; a loss of the first k places, such as "ndcg@10", "ap@100",
        "mrr@10" or "precision@10"; or a `DiscountedLoss` of your own. It need not be QS-suitable.
    width : float, default 1.0
        Half the width of the ramp, in units of the scores. Pairs whose scores differ by less have a gradient.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    n_threads : int, default 1
        Number of threads; −1 uses all processors. Results do not depend on it.
    empty : {"zero", "skip", "error"}, default "zero"
        What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "zero" counts
        it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.

    Returns
    -------
    SmoothResult
        `value` (the loss, or its mean over queries), `gradient` of shape (n,), and `per_query` if `qid` is given.

    Raises
    ------
    ValueError
        If a score is not finite, lengths differ, the width is not positive, or the loss cannot be smoothed.

    See Also
    --------
    error_driven_loss : An update that does not vanish for positives far below.
    structured_hinge : A convex upper bound of the loss.

    Notes
    -----
    A query with grade 0 and one other grade is binary and has the formula above. In a query with more grades, ranks are
    softened among all samples: r_d = 1 + Σ_{e≠d} H(s_e − s_d), where H is the ramp. NDCG is then
    1 − Σ_d G_d·D(r_d)/ideal for any number of grades, and AP is Robertson's graded AP at soft places. So the loss of a
    query depends on that query alone, not on the grades of the others.

    For "f1" the loss is 1 − max_k 2k/(k + c_k + P). Its gradient is that of the first k that reaches the maximum. With
    grades, it is a weighted mean over thresholds.

    Positives with equal scores share their gradient.

    Examples
    --------
    >>> r = smooth_loss([2.0, 1.0, 0.5, 0.0], [False, True, False, True], loss="ap", width=0.75)
    >>> round(r.value, 4)
    0.5084
    >>> r.gradient.round(4).tolist()
    [0.0, -0.071, 0.1164, -0.0454]
    """
    return _evaluate("smooth", scores, relevant, loss, width, qid, n_threads, empty)


def error_driven_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    qid: ArrayLike | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> SmoothResult:
    """Compute the error-driven ranking loss and its update for each sample.

    With loss="ap" this is AP-loss (Chen et al., 2019). Each positive passes its error to the negatives above it, in
    proportion to how far above they are. The `gradient` is this update, not the derivative of the value. It is bounded
    by the positive's share of the loss, and it does not vanish while a positive is misranked, however far below it is.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades; the result is then a weighted
        mean over the grades as thresholds.
    loss : str or DiscountedLoss, default "ap"
        Name of a loss: "ap" is as published, and "ndcg", "mrr", "auc" and losses such as "ndcg@10" follow the same
        rule. Or a `DiscountedLoss` of your own.
    width : float, default 1.0
        Half the width of the ramp by which scores are compared, in units of the scores. It also applies to pairs of
        positives.
    interpolate : bool, default True
        Whether the precision D(p + c)/D(p) of a positive is replaced by the highest among the positives that score no
        higher. It has no effect for a loss whose discount is not positive, such as "auc".
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    n_threads : int, default 1
        Number of threads; −1 uses all processors. Results do not depend on it.
    empty : {"zero", "skip", "error"}, default "zero"
        What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "zero" counts
        it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.

    Returns
    -------
    SmoothResult
        `value` (the loss, or its mean over queries), `gradient` (the update, of shape (n,)), and `per_query` if `qid`
        is given.

    Raises
    ------
    ValueError
        If a score is not finite, lengths differ, the width is not positive, or the loss has no discount.

    See Also
    --------
    smooth_loss : A softened loss with its true gradient.
    structured_hinge : A convex upper bound of the loss.

    Examples
    --------
    >>> r = error_driven_loss([2.0, 1.0, 0.5, 0.0], [False, True, False, True], width=0.5)
    >>> round(r.value, 4), r.gradient.round(4).tolist()
    (0.5, [0.375, -0.25, 0.125, -0.25])
    """
    return _evaluate(error_driven_way(interpolate), scores, relevant, loss, width, qid, n_threads, empty)


def solve_smooth(
    scores: NDArray[np.floating],
    queries: Queries,
    loss: Loss,
    width: float = 1.0,
    n_threads: int = 1,
    way: str = "smooth",
) -> SolvedSmooth:
    """Return the loss of each query and the gradient of their sum.

    Everything except the scores was checked. way: one of `WAYS`. With grades, "smooth" uses soft ranks for a loss with
    a discount (soft_ranks.py), except in queries with one grade beside 0, which are binary. Everything else is the
    weighted sum over thresholds (grades.py). "by threshold" differs from "smooth" for grades only, and is always that
    sum. So the loss of a query depends on that query alone.
    """
    try:
        if queries.grades is None:
            return _solve_binary(scores, queries, loss, width, n_threads, way)
        if way == "smooth" and loss.form is Form.DISCOUNT:
            return _solve_by_worth(scores, queries, cast(DiscountedLoss, loss), width, n_threads)
        total = sum_over_levels(scores, queries, loss, lambda s, q: _solve_binary(s, q, loss, width, n_threads, way))
        return SolvedSmooth(total.value, total.gradient)
    except NotFiniteError:
        changed = RuntimeError("the scores changed while they were read; do not write to them from another thread")
        raise not_finite(scores) or changed from None


def _solve_by_worth(
    scores: NDArray[np.floating], queries: Queries, loss: DiscountedLoss, width: float, n_threads: int
) -> SolvedSmooth:
    """Solve queries with several grades of worth by soft ranks, and the others as binary ones."""

    def solve(s: NDArray[np.floating], q: Queries) -> SolvedSmooth:
        if q.grades is None:
            return _solve_binary(s, q, loss, width, n_threads, "smooth")
        return SolvedSmooth(*solve_ranked(s, q, loss, width, n_threads))

    kinds = by_worth(queries, loss)
    if len(kinds) < 2:
        return solve(scores, kinds[0].queries if kinds else queries)
    value, gradient = np.empty(queries.sizes.size), np.empty_like(scores)
    for which, samples, part in kinds:
        value[which], gradient[samples] = solve(scores[samples], part)
    return SolvedSmooth(value, gradient)


def _solve_binary(
    scores: NDArray[np.floating], queries: Queries, loss: Loss, width: float, n_threads: int, way: str
) -> SolvedSmooth:
    n_pos, n_neg = queries.counts
    soft = soft_kernels().soften(scores, queries, width, n_threads)
    both = (n_pos > 0) & (n_neg > 0)
    value = np.zeros(n_pos.size)
    if not both.any():
        return SolvedSmooth(value, np.zeros_like(scores))
    errors = errors_of(soft, n_pos, n_neg, loss, way, n_threads)
    value[both] = sums_of(errors.part, n_pos)[both]
    weight, own = np.ascontiguousarray(errors.weight), np.ascontiguousarray(errors.own)
    return SolvedSmooth(value, soft_kernels().spread(scores, queries, soft, weight, own, errors.ramp, n_threads))


def error_driven_way(interpolate: bool) -> str:
    """Return the way of the error-driven loss, interpolated or not."""
    if not isinstance(interpolate, bool | np.bool_):
        raise TypeError(f"interpolate must be True or False, got {interpolate!r}")
    return "interpolated" if interpolate else "error-driven"


def as_smooth(loss: LossLike, way: str = "smooth") -> Loss:
    """Return the loss of that name, or the loss itself, if it can be smoothed in this way."""
    found, known = as_loss(loss), "'ap', 'ndcg', 'mrr', 'auc' or a DiscountedLoss"
    if found.form is Form.THRESHOLD and way not in _TRUE:
        raise ValueError(f"{found.name} has no discount, so it has no error-driven loss; use {known}, or smooth_loss")
    if found.form not in (Form.DISCOUNT, Form.THRESHOLD):
        raise ValueError(f"{found.name} has no discount, so it cannot be smoothed; use {known}")
    return found


def as_width(width: float) -> float:
    """Return the width if it is a positive number."""
    if not is_number(width) or not _LEAST <= width <= _MOST:
        raise ValueError(f"width must be a positive number, from {_LEAST:g} to {_MOST:g}, got {width!r}")
    return float(width)


def _evaluate(
    way: str,
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike,
    width: float,
    qid: ArrayLike | None,
    n_threads: int,
    empty: str,
) -> SmoothResult:
    array, dtype = take_scores(scores)
    truth = as_truth(relevant, array.shape[0])
    loss, width, n_threads = as_smooth(loss, way), as_width(width), as_threads(n_threads)
    check_empty(empty)
    if qid is None:
        queries = single_query(truth)
        solved = solve_smooth(array, queries, loss, width, n_threads, way)
        n_used(queries, None, empty)
        return SmoothResult(float(solved.value[0]), give_gradient(solved.gradient, dtype))
    grouping = group(qid, array.shape[0])
    queries = as_queries(grouping.gather(truth), grouping.starts)
    try:
        solved = solve_smooth(grouping.gather(array), queries, loss, width, n_threads, way)
    except NotFiniteError as error:
        raise not_finite(array) or error from None  # name its place in the input
    used = n_used(queries, grouping.ids, empty)
    gradient = mean_gradient(solved.gradient, used, grouping, dtype)
    per_query = SmoothPerQuery(grouping.ids, solved.value, *queries.counts)
    return SmoothResult(float(solved.value.sum()) / used, gradient, per_query)
