"""Surrogates: how a ranking loss becomes trainable. A new one is one file with its class, and its name here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rankwise.surrogates.base import PerQuery, Result, Surrogate, evaluate
from rankwise.surrogates.direct import Direct
from rankwise.surrogates.error_driven import ErrorDriven, error_driven_loss
from rankwise.surrogates.hinge import Hinge, most_violating_ranking, structured_hinge
from rankwise.surrogates.ranking_loss import ranking_loss
from rankwise.surrogates.smooth import Smooth, smooth_loss

__all__ = [
    "SURROGATES", "Direct", "ErrorDriven", "Hinge", "PerQuery", "Result", "Smooth", "Surrogate",
    "error_driven_loss", "evaluate", "most_violating_ranking", "ranking_loss", "smooth_loss", "structured_hinge",
]  # fmt: skip

_ALL: tuple[type[Surrogate], ...] = (Hinge, Smooth, ErrorDriven, Direct)
SURROGATES: dict[str, type[Surrogate]] = {surrogate.name: surrogate for surrogate in _ALL}


def as_surrogate(surrogate: str | Surrogate, **parameters: Any) -> Surrogate:
    """Return a surrogate by its name, with those of the parameters that it has, or a `Surrogate` as it is."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    if surrogate in SURROGATES:
        kind: Any = SURROGATES[surrogate]
        own = {field.name for field in fields(kind)}
        made: Surrogate = kind(**{name: value for name, value in parameters.items() if name in own})
        return made
    known = ", ".join(map(repr, SURROGATES))
    raise ValueError(f"unknown surrogate {surrogate!r}; use one of {known}, or a Surrogate such as Smooth(width=0.5)")
