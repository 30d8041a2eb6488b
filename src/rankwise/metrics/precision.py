"""Precision and recall of the first k places: w_k = 1, D(m) = 1 for m ≤ k. As losses they are one and the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, over
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.ranked import Ties


@documented
class PrecisionAt(DiscountedLoss):
    """Loss 1 − precision of the first k places, relative to the best possible. Its name is "precision@k".

        Δ = 1 − #{i : i + c_i ≤ k} / min(P, k)

    The i-th of P positives is at place i + c_i. A perfect ranking has loss 0, even with fewer than k positives.

    Parameters
    ----------
    k : int
        Last place that counts.

    See Also
    --------
    metrics.precision_at : The metric.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], rw.PrecisionAt(2))
    0.5
    """

    name = "precision"
    cut = "always"
    k: int

    def __init__(self, k: int) -> None:
        super().__init__(k=k)

    def discount(self, m: Any) -> Any:
        return np.ones_like(m)

    def slope(self, m: Any) -> Any:
        return np.zeros(np.shape(m))

    def of_ties(self, ties: Ties) -> FloatArray:
        # The number of positives among the first k, over k.
        found = ties.total(ties.gain * ties.share(self.k))
        return np.where(ties.total(ties.gain) > 0.0, found / self.k, np.nan)


class RecallAt(PrecisionAt):
    """Loss 1 − recall of the first k places, relative to the best possible: that of `PrecisionAt`, judged by recall."""

    name = "recall"

    def of_ties(self, ties: Ties) -> FloatArray:
        # The number of positives among the first k, over n_pos.
        return over(ties.total(ties.gain * ties.share(self.k)), ties.total(ties.gain))


@documented
def precision_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the fraction of positives among the first k places.

    Their number is divided by k even if a query has fewer samples, as in TREC and LETOR. If samples have equal scores,
    the result is the expectation over their orders.

    {judging}

    Examples
    --------
    >>> precision_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.75
    """
    return PrecisionAt(k)(scores, relevant, qid=qid, empty=empty)


@documented
def recall_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the fraction of all positives that are among the first k places.

    If samples have equal scores, it is the expectation over their orders.

    {judging}

    Examples
    --------
    >>> recall_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.5
    """
    return RecallAt(k)(scores, relevant, qid=qid, empty=empty)
