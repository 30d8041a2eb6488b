"""Tight losses of scores, at the cost of a sort: the smooth loss with its true gradient, and the error-driven loss.

A comparison is softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). The negatives above the k-th positive become
c_k = Σ_j H(s_j − s_k), and the loss itself is taken at these soft counts:

    smooth:        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k))
                   a_k = −(w_k/C)·D′(k + c_k);  ∂Δ/∂s_k = −a_k·#{j : |s_j − s_k| < width}/(2·width);
                   ∂Δ/∂s_j = Σ {a_k : |s_j − s_k| < width}/(2·width)
    error-driven:  p_k = ½ + Σ_i H(s_i − s_k) over positives, a soft place; e_k = (w(p_k)/C) (D(p_k) − D(p_k + c_k));
                   update −e_k of a positive, Σ_k e_k·H(s_j − s_k)/c_k of a negative

Both are bounded. The smooth loss gives up on positives that lie far below; the error-driven one does not.
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
from rankwise.soft_ranks import solve_ranked
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

# Halves and squares of a width must be numbers.
_LEAST, _MOST = 1e-150, 1e150
# The ways whose gradient is that of the value.
_TRUE = ("smooth", "by threshold")


@dataclass(frozen=True, eq=False)
class SmoothPerQuery:
    """One entry a query, sorted by qid: its loss, its positives and negatives."""

    qid: NDArray[Any]
    value: NDArray[np.float64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]


@dataclass(eq=False)
class SmoothResult:
    """A smooth or error-driven loss of scores.

    Attributes
    ----------
    value : float
        The loss, or its mean over queries; in [0, 1] for the built-in losses.
    gradient : ndarray of shape (n,)
        Its gradient in the scores, or the error-driven update; read-only.
    per_query : SmoothPerQuery or None
        One entry a query; None where no qid was given.
    """

    value: float
    gradient: NDArray[np.floating]
    per_query: SmoothPerQuery | None = None


class SolvedSmooth(NamedTuple):
    """The loss of each query, and the gradient of their sum by sample, in the type of the scores."""

    value: NDArray[np.float64]
    gradient: NDArray[np.floating]

    @property
    def loss(self) -> NDArray[np.float64]:
        """The value again: what is minimised is the loss itself."""
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
    """The loss with every comparison of a positive and a negative softened over a width, and its true gradient.

    Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)) with c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1). It is continuous,
    bounded, not convex, and as the width falls it becomes the loss itself, a tie counting as half an error. It costs
    about as much as sorting the scores. Positives that tie share their gradient.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Real numbers: the higher, the earlier in the ranking.
    relevant : array-like of shape (n,)
        Booleans, or 0 and 1; other numbers are grades. Ranks are then softened among all samples: with soft ranks
        r_d = 1 + Σ_{e≠d} H(s_e − s_d), NDCG is 1 − Σ_d G_d·D(r_d)/ideal, for any number of grades; AP is Robertson's
        graded AP at soft places.
    loss : str, DiscountedLoss or FMeasure
        "ap", "ndcg", "mrr", "auc", one of the first k places as "ndcg@10", "ap@100", "precision@10", "mrr@10", or a
        `DiscountedLoss` of your own; or "f1", 1 − max_k 2k/(k + c_k + P), whose gradient is that of the k which has the
        maximum, of several the first, and which sums over thresholds for grades. (C2) is not needed.
    width : float
        Half the width of the ramp, in units of the scores.
    qid : array-like of shape (n,), optional
        The query of each sample, integers or strings in any order; the value is then the mean over queries.
    n_threads : int
        Threads for many queries, or for one large query; −1 for all processors. Results do not depend on it.
    empty : {"zero", "skip", "error"}
        A query without positives or without negatives, or of one grade only, counts as 0, is left out of the mean, or
        is refused.

    Returns
    -------
    SmoothResult
        value, gradient, per_query.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, the width is not positive, or the loss has no discount.

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
    """The error-driven loss, AP-loss of Chen et al. (2019) for loss="ap": its value, and an update by sample.

    Each positive's error is handed on to the negatives above it, in proportion to how far above they are. The
    `gradient` is this update, not the derivative of the value: it is bounded, a positive's by its share of the loss,
    and does not vanish while a positive is misranked, however far below it lies. With grades, it is the weighted sum
    of that of every threshold.

    Parameters
    ----------
    scores, relevant, qid, n_threads, empty
        As in `smooth_loss`.
    loss : str or DiscountedLoss
        "ap", as published; "ndcg", "mrr", "auc" or a `DiscountedLoss` of your own by the same rule.
    width : float
        Half the width of the ramp by which scores are compared, positives among themselves, too.
    interpolate : bool
        Whether a positive's precision D(p + c)/D(p) counts as the highest among those that score no higher. A loss
        whose discount is not positive, such as "auc", has no precision, and is not interpolated.

    Returns
    -------
    SmoothResult
        value, the update as `gradient`, per_query.

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
    """The loss of each query, and the gradient of their sum; all but the scores was checked. way: one of `WAYS`.

    With grades, "smooth" of a loss with a discount is by soft ranks (soft_ranks.py), all else is the weighted sum of
    that of every threshold (grades.py). "by threshold" differs from "smooth" for grades only, and is that sum.
    """
    try:
        if queries.grades is None:
            return _solve_binary(scores, queries, loss, width, n_threads, way)
        if way == "smooth" and loss.form is Form.DISCOUNT:
            return SolvedSmooth(*solve_ranked(scores, queries, cast(DiscountedLoss, loss), width, n_threads))
        total = sum_over_levels(scores, queries, loss, lambda s, q: _solve_binary(s, q, loss, width, n_threads, way))
        return SolvedSmooth(total.value, total.gradient)
    except NotFiniteError:
        changed = RuntimeError("scores changed while they were read; do not write to them from another thread")
        raise not_finite(scores) or changed from None


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
    """The way of the error-driven loss, interpolated or not."""
    if not isinstance(interpolate, bool | np.bool_):
        raise TypeError(f"interpolate must be True or False, got {interpolate!r}")
    return "interpolated" if interpolate else "error-driven"


def as_smooth(loss: LossLike, way: str = "smooth") -> Loss:
    """The loss of that name, or the loss itself, if it can be smoothed in this way."""
    found, known = as_loss(loss), "'ap', 'ndcg', 'mrr', 'auc' or a DiscountedLoss"
    if found.form is Form.THRESHOLD and way not in _TRUE:
        raise ValueError(f"{found.name} has no discount, and no error-driven loss; use {known}, or its smooth loss")
    if found.form not in (Form.DISCOUNT, Form.THRESHOLD):
        raise ValueError(f"{found.name} has no discount, so it cannot be smoothed; use {known}")
    return found


def as_width(width: float) -> float:
    """A width, if it is a positive number."""
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
        raise not_finite(array) or error from None  # by its place as it was given
    used = n_used(queries, grouping.ids, empty)
    gradient = mean_gradient(solved.gradient, used, grouping, dtype)
    per_query = SmoothPerQuery(grouping.ids, solved.value, *queries.counts)
    return SmoothResult(float(solved.value.sum()) / used, gradient, per_query)
