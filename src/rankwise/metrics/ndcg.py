"""Normalised discounted cumulative gain: w_k = 1, D(m) = 1/log2(1 + m), gain 2^y − 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.kernels.contract import Tail
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.gains import Gain


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
    {k}
    gain : {"exp2", "linear"} or callable, default "exp2"
        Worth G(y) of a grade y: 2^y − 1, y itself, or a non-decreasing function with G(0) = 0.
    slope : callable, optional
        Derivative of your own `discount` function, see `DiscountedLoss`.

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount.
    metrics.ndcg : The metric.

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
        self.closed_form = Tail.LOG2 if discount == "log2" else Tail.NONE
        super().__init__(None, own[0], slope=own[1], k=k, gain=gain)
        usual = {"discount": "log2", "k": None, "gain": "exp2", "slope": None}
        given = {"discount": discount, "k": self.k, "gain": gain, "slope": slope}
        self._options = {key: value for key, value in given.items() if value != usual[key]}


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

    G is 2^grade − 1 by default, as in LETOR and LightGBM. Samples with equal scores share the mean of their gains, even
    if k cuts through them, as in scikit-learn: this is the expectation over their orders.

    {judging}

    Examples
    --------
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3), 4)
    0.692
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3, gain="linear"), 4)
    0.735
    """
    return NDCG(k=k, gain=gain)(scores, grades, qid=qid, empty=empty)
