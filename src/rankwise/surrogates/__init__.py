"""Surrogates: how a ranking loss becomes trainable. A new one is one file with its class, and one line here."""

from __future__ import annotations

from rankwise.surrogates.base import PerQuery, Result, Surrogate, evaluate
from rankwise.surrogates.direct import Direct
from rankwise.surrogates.error_driven import ErrorDriven, error_driven_loss
from rankwise.surrogates.hinge import Hinge, most_violating_ranking, structured_hinge
from rankwise.surrogates.smooth import Smooth, smooth_loss

__all__ = [
    "SURROGATES",
    "Direct",
    "ErrorDriven",
    "Hinge",
    "PerQuery",
    "Result",
    "Smooth",
    "Surrogate",
    "as_surrogate",
    "error_driven_loss",
    "evaluate",
    "most_violating_ranking",
    "smooth_loss",
    "structured_hinge",
]

_ALL: tuple[type[Surrogate], ...] = (Hinge, Smooth, ErrorDriven, Direct)
SURROGATES: dict[str, type[Surrogate]] = {surrogate.name: surrogate for surrogate in _ALL}


def as_surrogate(surrogate: str | Surrogate) -> Surrogate:
    """Get a surrogate by name, with its default parameters.

    Parameters
    ----------
    surrogate : str or Surrogate
        Name of a surrogate, "hinge", "smooth", "error-driven" or "direct", or a `Surrogate`.

    Returns
    -------
    Surrogate
        The surrogate.

    Raises
    ------
    ValueError
        If the name is unknown.

    See Also
    --------
    Surrogate : The class of surrogates.

    Examples
    --------
    >>> as_surrogate("smooth")
    Smooth(width=1.0, soft_ranks=True)
    """
    if isinstance(surrogate, Surrogate):
        return surrogate
    if surrogate in SURROGATES:
        return SURROGATES[surrogate]()
    known = ", ".join(map(repr, SURROGATES))
    raise ValueError(f"unknown surrogate {surrogate!r}; use one of {known}, or a Surrogate such as Smooth(width=0.5)")
