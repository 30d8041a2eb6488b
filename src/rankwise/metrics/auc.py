"""Area under the ROC curve: w_k = 1, D(m) = −m, C = PN."""

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
class AUC(DiscountedLoss):
    """Loss 1 − AUC, the fraction of misordered pairs of a positive and a negative. Its name is "auc".

        Δ = Σ_k c_k / (PN)

    c_k is the number of negatives above the k-th of P positives.

    See Also
    --------
    metrics.auc : The metric.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], rw.AUC())
    0.25
    """

    name = "auc"
    closed_form = Tail.LINEAR

    def __init__(self) -> None:
        super().__init__()

    def discount(self, m: Any) -> Any:
        return np.negative(m)

    def slope(self, m: Any) -> Any:
        return np.full(np.shape(m), -1.0)

    def of_ties(self, ties: Ties) -> FloatArray:
        # Σ_ties (t − p)(P + p/2), over n_pos·n_neg.
        n_pos, n_neg = ties.total(ties.gain), ties.total(ties.size - ties.gain)
        in_order = (ties.size - ties.gain) * (ties.above(ties.gain) + 0.5 * ties.gain)
        return over(ties.total(in_order), n_pos * n_neg)


@documented
def auc(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """Compute the area under the ROC curve.

    It is the fraction of pairs of a positive and a negative that are in order, with a tie counted as half, as in
    scikit-learn.

    {judging}

    Examples
    --------
    >>> auc([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.75
    """
    return AUC()(scores, relevant, qid=qid, empty=empty)
