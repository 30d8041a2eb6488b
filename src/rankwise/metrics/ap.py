"""Average precision: w_k = k, D(m) = 1/m."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.kernels.contract import Tail
from rankwise.metrics.base import FloatArray, over
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.ranked import Ties


@documented
class AveragePrecision(DiscountedLoss):
    """Loss 1 − AP, one minus the average precision. Its name is "ap".

        Δ = 1 − (1/P) Σ_i i / (i + c_i)

    The i-th of P positives has c_i negatives above it, so i / (i + c_i) is the precision at its place. With k,
    positives beyond place k count as 0, and the sum is divided by min(P, k).

    Parameters
    ----------
    {k}

    See Also
    --------
    metrics.average_precision : The metric.

    Examples
    --------
    >>> import rankwise as rw
    >>> round(rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], rw.AveragePrecision()), 4)
    0.1667
    """

    name = "ap"
    cut = "optionally"
    closed_form = Tail.RECIPROCAL

    def __init__(self, k: int | None = None) -> None:
        super().__init__(k=k)

    def weight(self, k: Any) -> Any:
        return np.positive(k)

    def discount(self, m: Any) -> Any:
        return np.reciprocal(m)

    def slope(self, m: Any) -> Any:
        return -1.0 / np.square(m)

    def of_ties(self, ties: Ties) -> FloatArray:
        # Σ_ties p (P + p)/(T + t), over n_pos; at k, a tie across the cut has its share, over min(n_pos, k).
        gain, size, best = ties.gain, ties.size, ties.total(ties.gain)
        if self.k is not None:
            gain, size, best = gain * ties.share(self.k), size * ties.share(self.k), np.minimum(best, self.k)
        found = ties.above(gain) + gain
        seen = np.maximum(ties.above(size) + size, 1.0)
        return over(ties.total(gain * found / seen), best)


@documented
def average_precision(
    scores: ArrayLike, relevant: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the average precision, the mean precision at the places of the positives.

        AP = (1/n_pos) Σ_ties p (P + p)/(T + t)

    Samples with equal scores form one tie of t samples, p of them positive, below T samples and P positives, as in
    scikit-learn. With k, the sum ends there and is divided by min(n_pos, k); a tie that is cut counts with its share.

    {judging}

    Examples
    --------
    >>> average_precision([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    return AveragePrecision(k)(scores, relevant, qid=qid, empty=empty)
