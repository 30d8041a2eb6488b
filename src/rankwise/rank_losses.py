"""The built-in losses that have a weight and a discount: AP, reciprocal rank, precision, AUC and NDCG."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise.discounted_loss import DiscountedLoss
from rankwise.gains import Gain
from rankwise.inputs import as_cutoff
from rankwise.loss_forms import Tail
from rankwise.weighted_places import TABLE_SIZE

__all__ = ["AUC", "NDCG", "AveragePrecision", "PrecisionAt", "ReciprocalRank"]


def _reciprocal_slope(m: Any) -> Any:
    return -1.0 / np.square(m)


class AveragePrecision(DiscountedLoss):
    """Loss 1 − AP, one minus the average precision. Its name is "ap".

        Δ = 1 − (1/P) Σ_i i / (i + c_i)

    The i-th of P positives has c_i negatives above it, so i / (i + c_i) is the precision at its place.

    Parameters
    ----------
    k : int, optional
        Last place that counts. Positives beyond place k count as 0, and the sum is divided by min(P, k) instead of P.
        The loss "ap@100" has k = 100. By default all places count.

    See Also
    --------
    NDCG : A loss for graded relevance.
    metrics.average_precision : The metric that this loss optimises.
    structured_hinge : A convex upper bound of the loss, with a gradient.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.AveragePrecision()
    >>> round(rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], loss), 4)
    0.1667
    """

    name = "ap"
    _tail = Tail.RECIPROCAL

    def __init__(self, k: int | None = None) -> None:
        super().__init__(np.positive, np.reciprocal, _cut_name("ap", k), _reciprocal_slope, k=k)

    def __repr__(self) -> str:
        return _called("AveragePrecision", k=self.k)


def _first(k: Any) -> Any:
    return np.equal(k, 1)


class ReciprocalRank(DiscountedLoss):
    """Loss 1 − 1/(place of the first positive). Its name is "mrr".

        Δ = 1 − 1 / (1 + c_1)

    c_1 is the number of negatives above the first positive.

    Parameters
    ----------
    k : int, optional
        Last place that counts. Δ is 1 if the first positive is beyond place k. The loss "mrr@10" has k = 10. By default
        all places count.

    See Also
    --------
    AveragePrecision : A loss over all positives.
    metrics.reciprocal_rank : The metric that this loss optimises.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7], [False, True, False], rw.ReciprocalRank())
    0.5
    """

    name = "mrr"
    _tail = Tail.RECIPROCAL

    def __init__(self, k: int | None = None) -> None:
        super().__init__(_first, np.reciprocal, _cut_name("mrr", k), _reciprocal_slope, k=k)

    def __repr__(self) -> str:
        return _called("ReciprocalRank", k=self.k)


def _no_slope(m: Any) -> Any:
    return np.zeros(np.shape(m))


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
    NDCG : A loss that can be cut at k and takes the order within the first k places into account.
    metrics.precision_at : The metric.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], rw.PrecisionAt(2))
    0.5
    """

    name = "precision"
    _suitable = False

    def __init__(self, k: int) -> None:
        super().__init__(None, np.ones_like, _cut_name("precision", as_cutoff(k)), _no_slope, k=k)

    def __repr__(self) -> str:
        return _called("PrecisionAt", k=self.k)


def _minus_one(m: Any) -> Any:
    return np.full(np.shape(m), -1.0)


class AUC(DiscountedLoss):
    """Loss 1 − AUC, the fraction of misordered pairs of a positive and a negative. Its name is "auc".

        Δ = Σ_k c_k / (PN)

    AUC is the area under the ROC curve. c_k is the number of negatives above the k-th of P positives.

    See Also
    --------
    AveragePrecision : A loss that puts more weight on the top of the ranking.
    metrics.auc : The metric that this loss optimises.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], rw.AUC())
    0.25
    """

    name = "auc"
    _tail = Tail.LINEAR
    _per_pair = True

    def __init__(self) -> None:
        super().__init__(None, np.negative, slope=_minus_one)


def _log2_discount(m: Any) -> Any:
    return 1.0 / np.log2(1.0 + m)


def _log2_slope(m: Any) -> Any:
    return -math.log(2.0) / ((1.0 + m) * np.square(np.log1p(m)))


def _chakrabarti_discount(m: Any) -> Any:
    return 1.0 / np.log2(np.maximum(m, 2.0))


def _chakrabarti_slope(m: Any) -> Any:
    return np.where(np.less(m, 2.0), 0.0, _log2_slope(np.maximum(m, 2.0) - 1.0))


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
    tabulate : bool, default True
        Whether to tabulate the discount "log2". With False, its logarithms are computed at every use, as in the
        published baselines. This is for comparison and slower.
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

    def __init__(
        self,
        discount: str | Callable[[Any], Any] = "log2",
        tabulate: bool = True,
        *,
        k: int | None = None,
        gain: Gain = "exp2",
        slope: Callable[[Any], Any] | None = None,
    ) -> None:
        known = {"log2": (_log2_discount, _log2_slope), "chakrabarti": (_chakrabarti_discount, _chakrabarti_slope)}
        if not callable(discount) and discount not in known:
            raise ValueError(f"unknown discount {discount!r}; use 'log2', 'chakrabarti' or a function of the place m")
        self.discount_name = discount if isinstance(discount, str) else getattr(discount, "__name__", "custom")
        if discount == "log2" and slope is None:
            self._tail = Tail.LOG2
            self._table_size = TABLE_SIZE if tabulate else 0
        elif slope is not None and not callable(discount):
            raise ValueError(f"slope= needs a discount= function; the slope of {discount!r} is built in")
        chosen = (discount, slope) if callable(discount) else known[discount]
        if discount == "chakrabarti":
            self._suitable = False
        super().__init__(None, chosen[0], _cut_name("ndcg", k), chosen[1], k=k, gain=gain)

    def __repr__(self) -> str:
        gain = None if self.gain == "exp2" else self.gain
        return _called("NDCG", discount=self.discount_name, k=self.k, gain=gain)


def _cut_name(name: str, k: int | None) -> str:
    return name if k is None else f"{name}@{k}"


def _called(name: str, **given: Any) -> str:
    """Return the call that makes a loss, without the arguments that are None."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items() if value is not None)})"
