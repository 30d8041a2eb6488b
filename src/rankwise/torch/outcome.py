"""What is asked of an implementation for a batch of queries, and what it returns."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.losses import LossLike
from rankwise.smooth import as_smooth, as_width
from rankwise.soft_ways import WAYS
from rankwise.torch.layout import precise


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
        return self.update in WAYS


def soft_goal(loss: LossLike, width: float, way: str) -> Goal:
    """A loss of soft counts; raises for a loss without a discount and for a width that is not positive."""
    as_smooth(loss, way)
    return Goal(as_width(width), way)


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
