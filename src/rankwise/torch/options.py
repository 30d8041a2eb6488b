"""What is asked of an implementation for a batch of queries, as plain data, and what it returns.

Losses go by key, because an operator that PyTorch compiles takes strings, not objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from rankwise.arguments import check_known, is_number
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.surrogates.softened import as_width
from rankwise.torch.layout import precise

UPDATES = ("positive", "negative")
# Loss objects, while they are alive. Losses given by name need no entry.
_OWN: WeakValueDictionary[str, Loss] = WeakValueDictionary()


_SOFT = ("smooth", "error-driven", "interpolated")
_SURROGATES: dict[str, Callable[[float], Surrogate]] = {
    "": Hinge,
    "positive": Direct,
    "negative": lambda epsilon: Direct(-epsilon),
    "smooth": Smooth,
    "error-driven": lambda width: ErrorDriven(width, interpolate=False),
    "interpolated": ErrorDriven,
}


def error_driven_way(interpolate: bool) -> str:
    """The update of the error-driven loss, interpolated or not."""
    return "interpolated" if ErrorDriven(interpolate=interpolate).interpolate else "error-driven"


class Goal(NamedTuple):
    """What to compute: the hinge with this scale, a direct-loss update with ε = scale, a soft loss with width = scale.

    update: "" for the structured hinge, "positive" or "negative" for direct loss minimisation; "smooth",
    "error-driven" or "interpolated", the names of `rankwise.soft_ways.WAYS`, for losses of soft counts.
    """

    scale: float
    update: str

    @property
    def takes_grades(self) -> bool:
        """Whether it also takes grades."""
        return not self.update or self.is_soft

    @property
    def name(self) -> str:
        """What an error message calls it."""
        return "the hinge" if not self.update else f"the {self.update} {'loss' if self.is_soft else 'update'}"

    @property
    def is_soft(self) -> bool:
        """Whether comparisons are softened, in which case no ranking is searched for and (C2) is not needed."""
        return self.update in _SOFT

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate that this means."""
        return _SURROGATES[self.update](self.scale)


def soft_goal(loss: LossLike, width: float, way: str) -> Goal:
    """A loss of soft counts; raises for a loss without a discount and for a width that is not positive."""
    _SURROGATES[way](as_width(width)).accepts(loss)
    return Goal(as_width(width), way)


def direct_goal(loss: LossLike, epsilon: float, update: str) -> Goal:
    """A direct-loss update; raises if the loss does not support it, and for an epsilon that is not positive."""
    if not as_loss(loss).has_grades:
        raise ValueError(
            "direct loss minimisation needs a loss of rankings, and zero-one is a loss of labels; use 'ap'"
        )
    check_known("update", update, UPDATES)
    if as_loss(loss).breaks_c1 is not None and update == "negative":
        raise ValueError(f"update='negative' is not available for {as_loss(loss).name}; use update='positive'")
    if not is_number(epsilon):
        raise TypeError(f"epsilon must be a number, got {type(epsilon).__name__}")
    if not 0.0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}; the update is divided by it")
    return Goal(float(epsilon), update)


def key_of(loss: LossLike) -> str:
    """The key of a loss: its name, or one made for the object; raises if it is not a loss."""
    if isinstance(loss, str):
        return loss
    from rankwise.torch.compiling import constant_key  # imports PyTorch's compiler, which takes seconds

    key: str = constant_key(loss)
    return key


def register(loss: LossLike) -> str:
    """Make a key for a loss object."""
    found = as_loss(loss)
    key = f"#{id(found)}"
    _OWN[key] = found
    return key


def loss_of(key: str) -> Loss:
    """The loss with that key."""
    if not key.startswith("#"):
        return as_loss(key)
    loss = _OWN.get(key)
    if loss is None:
        raise RuntimeError(
            "the loss object of this call has been deleted; keep a reference to it as long as it is used"
        )
    return loss


class Options(NamedTuple):
    """All options of a call besides its tensors, as plain data that an operator can take.

    loss: the key of the loss. update: as in `Goal`. Others: as in `functional.structured_hinge`.
    """

    ignore_index: int | None
    loss: str
    scale: float
    update: str
    empty: str
    reduction: str
    backend: str


class Outcome(NamedTuple):
    """values (Q,), in the best precision; filled (Q,), whether a query has something to rank; the gradient.

    The gradient, as the scores are laid out, is that of the sum of values.
    """

    values: Tensor
    filled: Tensor
    gradient: Tensor


def queries_counted(filled: Tensor, empty: str) -> Tensor:
    """The number of queries that a mean is taken over."""
    return filled.sum() if empty == "skip" else filled.new_full((), filled.shape[0], dtype=torch.int64)


def share_of_query(filled: Tensor, empty: str, reduction: str) -> Tensor:
    """The factor of each query's value in the sum over queries."""
    if reduction == "sum":
        return filled.new_ones((), dtype=torch.float32)
    return 1.0 / queries_counted(filled, empty).clamp(min=1).to(precise(filled.device))


def refuse_empty(filled: Tensor, names: list[int] | None = None, graded: bool = False) -> None:
    """Raise for the first query with nothing to rank."""
    if not bool(filled.all()):
        q = int((~filled).nonzero()[0])
        which = f"query {q}" if names is None else f"the query with qid {names[q]}"
        lacks = "two different grades" if graded else "positives or no negatives"
        raise ValueError(
            f"{which} has no {lacks} and so no ranking loss; remove it, or pass empty='zero' or empty='skip'"
        )
