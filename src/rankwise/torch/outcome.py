"""What either implementation finds for a batch of queries."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["Goal", "Outcome", "refuse_empty"]


class Goal(NamedTuple):
    """What is asked for: the hinge with this scale, or a direct-loss update with scale = ε.

    update: "" for the structured hinge, "positive" or "negative" for direct loss minimisation.
    """

    scale: float
    update: str


class Outcome(NamedTuple):
    """By query: value (Q,), and whether it has both positives and negatives (Q,). By sample: the value's gradient."""

    values: Tensor
    filled: Tensor
    gradient: Tensor


def refuse_empty(filled: Tensor, names: list[int] | None = None) -> None:
    """Raise for the first query without positives or without negatives."""
    if not bool(filled.all()):
        q = int((~filled).nonzero()[0])
        which = f"query {q}" if names is None else f"the query with qid {names[q]}"
        raise ValueError(
            f"{which} has no positives or no negatives and so no ranking loss; leave it out, or pass empty='zero' or "
            "empty='skip'"
        )
