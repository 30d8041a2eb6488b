"""The built-in losses by name: AP, NDCG, reciprocal rank, precision, AUC, F₁ and 0-1."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from rankwise.discounted_loss import DiscountedLoss
from rankwise.f_measure import FMeasure
from rankwise.inputs import is_whole
from rankwise.loss_forms import Form, Loss, LossTables, NotQSSuitableError, Tail
from rankwise.rank_losses import AUC, NDCG, AveragePrecision, PrecisionAt, ReciprocalRank
from rankwise.step_loss import StepLoss
from rankwise.zero_one_loss import ZeroOne

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


LossLike = Loss | str
_NAMES: dict[str, Loss] = {
    loss.name: loss for loss in (AveragePrecision(), NDCG(), ReciprocalRank(), AUC(), FMeasure(), ZeroOne())
}
# Losses that can be cut at k, as in "ndcg@10".
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
    """Return the loss of that name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss in _NAMES:
            return _NAMES[loss]
        if match := re.fullmatch(rf"({'|'.join(_CUT)})@(\d{{1,12}})", loss):
            return _cut(match[1], int(match[2]))
        names = ", ".join([*map(repr, _NAMES), *(repr(f"{name}@10") for name in _CUT)])
        raise ValueError(f"unknown loss {loss!r}; use one of {names} (any number after @), or a Loss object")
    raise TypeError(f"loss must be a name or a Loss, got {type(loss).__name__}; see rankwise.DiscountedLoss")


def check_qs_suitable(loss: LossLike, n_pos: int, n_neg: int) -> None:
    """Check that a loss works with the fast methods for a query of this size.

    A loss is QS-suitable if it is a sum over negatives, Δ = Σ_j δ_j(r_j), and its steps do not fall from one negative
    to the next:

        (C2):  δ_{j+1}(i+1) − δ_{j+1}(i) ≥ δ_j(i+1) − δ_j(i)   for 1 ≤ j < n_neg, 1 ≤ i ≤ n_pos

    Here r_j is the interleaving rank of the j-th negative: one plus the number of positives above it. The function
    returns None if this holds.

    Parameters
    ----------
    loss : str or Loss
        Name of a loss, such as "ap" or "ndcg@10", or a `Loss`.
    n_pos : int
        Number of positives, at least 1.
    n_neg : int
        Number of negatives, at least 1.

    Raises
    ------
    NotQSSuitableError
        If the loss is not QS-suitable. The error names the first place (i, j) where (C2) breaks.

    See Also
    --------
    DiscountedLoss : A loss that is QS-suitable if its discount is convex.
    StepLoss : A loss given by its steps.

    Examples
    --------
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
