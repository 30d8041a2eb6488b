"""Normalised discounted cumulative gain: w_k = 1, D(m) = 1/log2(1 + m), gain 2^y − 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray
from rankwise.metrics.discounted import DiscountedLoss, over
from rankwise.metrics.gains import Gain
from rankwise.metrics.loss import Tail
from rankwise.metrics.ranked import Steps

__all__ = ["NDCG", "ndcg"]


def _log2_discount(m: Any) -> Any:
    return 1.0 / np.log2(1.0 + m)


def _log2_slope(m: Any) -> Any:
    return -math.log(2.0) / ((1.0 + m) * np.square(np.log1p(m)))


def _chakrabarti_discount(m: Any) -> Any:
    return 1.0 / np.log2(np.maximum(m, 2.0))


def _chakrabarti_slope(m: Any) -> Any:
    return np.where(np.less(m, 2.0), 0.0, _log2_slope(np.maximum(m, 2.0) - 1.0))


_DISCOUNTS = {"log2": (_log2_discount, _log2_slope), "chakrabarti": (_chakrabarti_discount, _chakrabarti_slope)}


@documented
class NDCG(DiscountedLoss):
    """Loss 1 − NDCG, one minus the normalised discounted cumulative gain. Its name is "ndcg".

        Δ = 1 − Σ_i D(i + c_i) / Σ_i D(i)                  relevance is binary
        Δ = 1 − Σ_d G(grade_d)·D(place_d) / ideal          relevance is graded

    The i-th positive is at place i + c_i. `ideal` is the sum for the ranking by grade.

    Parameters
    ----------
    discount : {"log2", "chakrabarti"} or callable, default "log2"
        D: "log2" is D(m) = 1/log2(1 + m). "chakrabarti" is D(1) = D(2) = 1 and D(m) = 1/log2(m); it is not convex, so
        the loss is not QS-suitable. Or a function of the place m = 1, 2, ….
    k : int, optional
        Last place that counts. The loss "ndcg@10" has k = 10. By default all places count.
    gain : {"exp2", "linear"} or callable, default "exp2"
        Worth G(y) of a grade y: 2^y − 1, y itself, or a non-decreasing function with G(0) = 0.
    slope : callable, optional
        Derivative of your own `discount` function, see `DiscountedLoss`.

    Attributes
    ----------
    discount_name : str
        Name of the discount.

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount.
    metrics.ndcg : The metric that this loss optimises.

    Examples
    --------
    >>> import rankwise as rw
    >>> scores, grades = [0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1]
    >>> round(rw.ranking_loss(scores, grades, rw.NDCG()), 4)
    0.2621
    >>> round(rw.ranking_loss(scores, grades, rw.NDCG(k=3, gain="linear")), 4)
    0.265
    """

    name = "ndcg"
    cut = "optionally"
    graded = True

    def __init__(
        self,
        discount: str | Callable[[Any], Any] = "log2",
        *,
        k: int | None = None,
        gain: Gain = "exp2",
        slope: Callable[[Any], Any] | None = None,
    ) -> None:
        if not callable(discount) and discount not in _DISCOUNTS:
            raise ValueError(f"unknown discount {discount!r}; use 'log2', 'chakrabarti' or a function of the place m")
        if slope is not None and not callable(discount):
            raise ValueError(f"slope= needs a discount= function; the slope of {discount!r} is built in")
        own = (discount, slope) if callable(discount) else _DISCOUNTS[discount]
        self.discount_name = discount if isinstance(discount, str) else getattr(discount, "__name__", "custom")
        self.closed_form = Tail.LOG2 if discount == "log2" else Tail.NONE
        if discount == "chakrabarti":
            self._suitable = False
        super().__init__(None, own[0], slope=own[1], k=k, gain=gain)
        given = {"discount": discount, "k": self.k, "gain": gain, "slope": slope}
        usual = {"discount": "log2", "k": None, "gain": "exp2", "slope": None}
        self._options = {key: value for key, value in given.items() if value != usual[key]}

    def of_steps(self, steps: Steps) -> FloatArray:
        """Compute DCG divided by that of the ranking by gains; equal scores share the discounts of their places.

        Parameters
        ----------
        steps : Steps
            Rankings in which samples with equal scores form one step.

        Returns
        -------
        ndarray of shape (q,)
            Value of each query; NaN for empty queries.
        """
        assert steps.ideal is not None
        return over(self._dcg(steps), self._dcg(steps.ideal))

    def _dcg(self, steps: Steps) -> FloatArray:
        sizes = steps.total(steps.size).astype(np.int64)
        begins, most = np.cumsum(sizes) - sizes, int(sizes.max())
        discounts = np.asarray(self.discount(np.arange(1.0, most + 1.0)))
        if self.k is not None:
            discounts[self.k :] = 0.0
        # One per place, and a 0 at the end, where a last step without samples may begin.
        by_place = np.append(discounts[np.arange(int(sizes.sum())) - np.repeat(begins, sizes)], 0.0)
        by_step = np.add.reduceat(by_place, (np.cumsum(steps.size) - steps.size).astype(np.int64))
        return steps.total(steps.gain / np.maximum(steps.size, 1.0) * by_step)


@documented
def ndcg(
    scores: ArrayLike,
    grades: ArrayLike,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """Compute the normalised discounted cumulative gain.

        NDCG = DCG / (DCG of the ranking by grades),   DCG = Σ_{places m ≤ k} G(grade)/log2(1 + m)

    Samples with equal scores share the mean of their gains, even if k cuts through them. This is the expectation over
    their orders and agrees with scikit-learn's `ndcg_score`.

    Parameters
    ----------
    {scores}
    {grades}
    {k}
    gain : {"exp2", "linear"} or callable, default "exp2"
        Worth G of a grade: 2^grade − 1, as in LETOR and LightGBM; the grade itself; or a function of an array of grades
        that does not fall and is 0 for grade 0.
    {qid}
    {empty_grades}

    Returns
    -------
    {value_returned}

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, 2^grade is beyond float64, or a query
        is empty with empty="error".

    See Also
    --------
    expected_reciprocal_rank : Another metric for graded relevance.
    rankwise.NDCG : The loss 1 − NDCG.

    Examples
    --------
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3), 4)
    0.692
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3, gain="linear"), 4)
    0.735
    """
    return NDCG(k=k, gain=gain)(scores, grades, qid=qid, empty=empty)
