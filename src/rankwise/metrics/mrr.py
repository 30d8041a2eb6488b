"""Reciprocal rank: w_1 = 1 and 0 for the other positives, D(m) = 1/m."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.kernels.contract import Tail
from rankwise.metrics.base import FloatArray
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.ranked import Ties


@documented
class ReciprocalRank(DiscountedLoss):
    """Loss 1 − 1/(place of the first positive). Its name is "mrr".

        Δ = 1 − 1 / (1 + c_1)

    c_1 is the number of negatives above the first positive. With k, Δ is 1 if that is beyond place k.

    Parameters
    ----------
    {k}

    See Also
    --------
    metrics.reciprocal_rank : The metric.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7], [False, True, False], rw.ReciprocalRank())
    0.5
    """

    name = "mrr"
    cut = "optionally"
    closed_form = Tail.RECIPROCAL

    def __init__(self, k: int | None = None) -> None:
        super().__init__(k=k)

    def weight(self, k: Any) -> Any:
        return np.equal(k, 1)

    def discount(self, m: Any) -> Any:
        return np.reciprocal(m)

    def slope(self, m: Any) -> Any:
        return -1.0 / np.square(m)

    def of_ties(self, ties: Ties) -> FloatArray:
        # 1/(place of the first positive), 0 beyond k, expected over the orders of equal scores.
        values = np.full(ties.first.size, np.nan)
        lead = np.flatnonzero((ties.gain > 0.0) & (ties.above(ties.gain) == 0.0))  # one per query, if not empty
        cases = np.stack([ties.above(ties.size)[lead], ties.size[lead], ties.gain[lead]], axis=1)
        distinct, which = np.unique(cases.astype(np.int64), axis=0, return_inverse=True)
        expected = np.array([_expected(above, size, n_pos, self.k) for above, size, n_pos in distinct.tolist()])
        values[ties.total(ties.gain) > 0.0] = expected[which.reshape(-1)]
        return values


def _expected(above: int, size: int, n_pos: int, k: int | None) -> float:
    """E 1/(above + r + 1), with r negatives before the first of n_pos positives in a random order of size samples."""
    if size == n_pos:
        return 1.0 / (above + 1) if k is None or above < k else 0.0
    r = np.arange(size - n_pos + 1 if k is None else min(size - n_pos + 1, max(k - above, 0)))
    hit = n_pos / (size - r)
    missed = np.cumprod(np.concatenate([[1.0], 1.0 - hit[:-1]]))[: r.size]
    return float(np.sum(missed * hit / (above + 1 + r)))


@documented
def reciprocal_rank(
    scores: ArrayLike, relevant: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the reciprocal of the place of the first positive.

    Its mean over queries is the mean reciprocal rank, MRR. If samples have equal scores, it is the expectation over
    their orders.

    {judging}

    Examples
    --------
    >>> reciprocal_rank([0.9, 0.8, 0.8, 0.1], [False, True, False, True])  # half of 1/2 and of 1/3
    0.41666666666666663
    """
    return ReciprocalRank(k)(scores, relevant, qid=qid, empty=empty)
