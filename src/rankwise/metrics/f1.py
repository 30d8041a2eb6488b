"""The F-measure at the best threshold. It is not a sum over negatives, so it brings its own exact structured hinge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, IntArray
from rankwise.metrics.loss import Loss, SoftCounts
from rankwise.metrics.ranked import Ties
from rankwise.queries import Queries, Solved

__all__ = ["FMeasure", "f_measure"]


@documented
class FMeasure(Loss):
    """Loss 1 − F₁ at the best threshold. Its name is "f1".

        Δ = 1 − max_k 2k/(k + c_k + P)

    With the threshold at the k-th positive, the k positives and c_k negatives down to it are called positive. Their
    precision is k/(k + c_k) and their recall is k/P. Only the threshold with the highest F₁ counts.

    See Also
    --------
    metrics.f_measure : The metric that this loss optimises.
    AveragePrecision : A loss over all thresholds.

    Notes
    -----
    Because only the best k counts, Δ is not a sum over negatives. So it is not QS-suitable (it breaks (C1)), but it has
    an exact method, which method="auto" selects.

    Examples
    --------
    >>> import rankwise as rw
    >>> round(rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], "f1"), 4)
    0.2
    """

    name = "f1"
    has_soft_counts = True
    breaks_c1: str | None = (
        "its best threshold depends on all negatives together, so it is not a sum over them; use method='auto', which "
        "is exact, or method='exhaustive'"
    )

    def __init__(self) -> None:
        super().__init__()

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        counts: IntArray = np.asarray(above)
        n_pos = counts.shape[-1]
        k = np.arange(1, n_pos + 1)
        return np.asarray(((counts + (n_pos - k)) / (counts + (n_pos + k))).min(axis=-1))

    def of_ties(self, ties: Ties) -> FloatArray:
        # The highest 2(P + p)/(T + t + n_pos) of all ties: thresholds lie only between different scores.
        n_pos = ties.total(ties.gain)
        found, seen = ties.above(ties.gain) + ties.gain, ties.above(ties.size) + ties.size
        whole = np.maximum(seen + np.repeat(n_pos, np.diff(ties.first, append=seen.size)), 1.0)
        return np.where(n_pos > 0.0, np.maximum.reduceat(2.0 * found / whole, ties.first), np.nan)

    def of_soft_counts(self, counts: SoftCounts) -> tuple[FloatArray, FloatArray]:
        """Compute Δ = min_k (c_k + P − k)/(c_k + P + k), which the first k that reaches it has; ∂Δ/∂c_k is 2k/(…)².

        {soft_counts}
        """
        n_pos = np.repeat(counts.n_pos, counts.n_pos)
        whole = counts.above + n_pos + counts.place
        each = (counts.above + (n_pos - counts.place)) / whole
        some = counts.n_pos[counts.n_pos > 0]
        first = np.cumsum(some) - some
        is_least = each == np.repeat(np.minimum.reduceat(each, first), some)
        chosen = np.maximum.reduceat(np.where(is_least, np.arange(each.size), -1), first)  # places are in falling order
        value, slope = np.zeros_like(each), np.zeros_like(each)
        value[chosen], slope[chosen] = each[chosen], 2.0 * counts.place[chosen] / np.square(whole[chosen])
        return value, slope

    def solve_hinge(
        self, scores: NDArray[np.floating], queries: Queries, scale: float, exhaustive: bool, n_threads: int
    ) -> Solved:
        """Solve the structured hinge exactly.

        {own_hinge}
        """
        from rankwise.kernels import engine, published
        from rankwise.kernels.contract import Method

        if exhaustive:
            return published.solve(scores, queries, self, scale, Method("exhaustive"))
        return engine.solve(scores, queries, self, scale, n_threads)


@documented
def f_measure(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """Compute F₁ at the best threshold.

    It is the highest 2(P + p)/(T + t + n_pos) of all thresholds, where P + p of the T + t samples above are positive.
    Thresholds lie between different scores, as in scikit-learn's `precision_recall_curve`.

    {judging}

    Examples
    --------
    >>> f_measure([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8
    """
    return FMeasure()(scores, relevant, qid=qid, empty=empty)
