"""What is minimised: AP, NDCG, reciprocal rank, precision, AUC, F₁, 0-1, by name; for your own see loss_forms.py."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.discounted_loss import TABLE_SIZE, DiscountedLoss
from rankwise.f_measure import FMeasure
from rankwise.gains import Gain
from rankwise.inputs import as_cutoff, is_whole
from rankwise.loss_forms import FloatArray, Form, Loss, LossTables, NotQSSuitableError, Tail
from rankwise.step_loss import StepLoss

__all__ = [
    "AUC",
    "NDCG",
    "AveragePrecision",
    "DiscountedLoss",
    "FMeasure",
    "Form",
    "Loss",
    "LossLike",
    "LossTables",
    "NotQSSuitableError",
    "PrecisionAt",
    "ReciprocalRank",
    "StepLoss",
    "Tail",
    "ZeroOne",
    "as_loss",
    "check_qs_suitable",
]


def _reciprocal_slope(m: Any) -> Any:
    return -1.0 / np.square(m)


class AveragePrecision(DiscountedLoss):
    """One minus average precision: Δ = 1 − (1/P) Σ_i i / (i + c_i).

    With k, positives beyond the first k places count for nothing, and min(P, k) takes the place of P.
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
    """One minus the reciprocal rank of the first positive: Δ = 1 − 1 / (1 + c_1); 1 if that is beyond place k."""

    name = "mrr"
    _tail = Tail.RECIPROCAL

    def __init__(self, k: int | None = None) -> None:
        super().__init__(_first, np.reciprocal, _cut_name("mrr", k), _reciprocal_slope, k=k)

    def __repr__(self) -> str:
        return _called("ReciprocalRank", k=self.k)


def _no_slope(m: Any) -> Any:
    return np.zeros(np.shape(m))


class PrecisionAt(DiscountedLoss):
    """One minus the precision of the first k places, against the best: Δ = 1 − #{i : i + c_i ≤ k} / min(P, k).

    A perfect ranking has loss 0, also of fewer than k positives.
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
    """One minus the area under the ROC curve: Δ = Σ_k c_k / (PN), the fraction of misordered pairs."""

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
    """One minus the normalised discounted cumulative gain: Δ = 1 − Σ_i D(i + c_i) / Σ_i D(i).

    With grades, Δ = 1 − Σ_d G(grade_d)·D(place_d) / ideal. gain: "exp2", G(y) = 2^y − 1; "linear", G(y) = y; or a
    function of the grade with G(0) = 0 that does not fall. k: the last place that counts, None for all of them.

    discount: "log2", D(m) = 1/log2(1 + m); "chakrabarti", D(1) = D(2) = 1 and D(m) = 1/log2(m), which is not convex
    and so not QS-suitable; or a function of m. slope: the derivative of that function, see `DiscountedLoss`.
    tabulate=False evaluates the logarithms of "log2" at every use, as the baselines were published: for comparison, not
    for speed.
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
            raise ValueError(f"slope goes with a function of your own; that of {discount!r} is known")
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
    """How a loss is made, by the arguments that say something."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items() if value is not None)})"


class ZeroOne(Loss):
    """The decomposable 0-1 loss the paper compares with: Δ = the fraction of samples with the wrong label.

    Its output is a labelling, not a ranking: J = (1/n) Σ max(0, scale − y·s) with y = ±1. As an interleaving it reads,
    from the top: negatives called positive, positives called positive, negatives called negative, the other positives.
    """

    name = "zero-one"
    form = Form.LABELS
    learns_intercept = True

    @property
    def qs_suitable(self) -> bool:
        """It breaks (C1)."""
        return False

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        raise self._refusal()

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        raise self._refusal()

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        raise self._refusal()

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """The fraction of samples on the wrong side of 0, those at 0 being wrong if worst."""
        y = np.where(relevant, 1.0, -1.0)
        return float(np.mean(y * scores <= 0.0 if worst else y * scores < 0.0))

    def _refusal(self) -> NotQSSuitableError:
        return NotQSSuitableError(
            "zero-one breaks (C1): it depends on each sample's label, not on how positives and negatives interleave; "
            "it decomposes over samples and needs no ranking method, use method='auto'"
        )


LossLike = Loss | str
_NAMES: dict[str, Loss] = {
    loss.name: loss for loss in (AveragePrecision(), NDCG(), ReciprocalRank(), AUC(), FMeasure(), ZeroOne())
}
# Those of the first k places, as in "ndcg@10".
_CUT: dict[str, Callable[[int], Loss]] = {
    "ap": AveragePrecision,
    "ndcg": lambda k: NDCG(k=k),
    "mrr": ReciprocalRank,
    "precision": PrecisionAt,
}


@cache
def _cut(name: str, k: int) -> Loss:
    return _CUT[name](k)


def as_loss(loss: LossLike) -> Loss:
    """The loss of that name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss in _NAMES:
            return _NAMES[loss]
        if match := re.fullmatch(rf"({'|'.join(_CUT)})@(\d{{1,12}})", loss):
            return _cut(match[1], int(match[2]))
        names = ", ".join([*map(repr, _NAMES), *(repr(f"{name}@10") for name in _CUT)])
        raise ValueError(f"unknown loss {loss!r}; use one of {names} for any number of places, or a Loss object")
    raise TypeError(f"loss must be a name or a Loss, got {type(loss).__name__}; see rankwise.DiscountedLoss")


def check_qs_suitable(loss: LossLike, n_pos: int, n_neg: int) -> None:
    """Return if the loss is QS-suitable for these counts, else raise `NotQSSuitableError` naming where (C2) breaks.

    (C2): δ_{j+1}(i+1) − δ_{j+1}(i) ≥ δ_j(i+1) − δ_j(i) for 1 ≤ j < n_neg, 1 ≤ i ≤ n_pos.

    >>> check_qs_suitable("ndcg", n_pos=3, n_neg=5)
    >>> check_qs_suitable(NDCG(discount="chakrabarti"), n_pos=3, n_neg=5)
    Traceback (most recent call last):
    rankwise.loss_forms.NotQSSuitableError: ndcg breaks (C2) at (i, j) = (1, 1): step_2(1) = -0.140281 < step_1(1)...
    """
    for name, value in (("n_pos", n_pos), ("n_neg", n_neg)):
        if not is_whole(value):
            raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    as_loss(loss).check(int(n_pos), int(n_neg))
