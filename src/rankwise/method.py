"""The methods by name, as users choose them, and the record that represents a chosen method."""

from __future__ import annotations

from typing import NamedTuple

from rankwise.inputs import is_whole
from rankwise.loss_forms import Form, Loss

# For packages that extend rankwise.
__all__ = ["AUTO", "as_method"]

METHODS = (
    "auto", "bucketed", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti", "exhaustive",
)  # fmt: skip
# Methods that choose the fastest way themselves, and methods that do not need (C2).
_FAST, _WITHOUT_C2 = METHODS[:2], METHODS[-3:]


class Method(NamedTuple):
    """How most violating rankings are found. cutoff: for Chakrabarti's method, D(m) = 0 from this place on; or None."""

    name: str = "auto"
    cutoff: int | None = None

    @property
    def needs_c2(self) -> bool:
        """Whether the method is correct only for losses with (C2)."""
        return self.name not in _WITHOUT_C2

    @property
    def is_fast(self) -> bool:
        """Whether the method chooses the fastest way itself."""
        return self.name in _FAST


AUTO = Method()


def as_method(name: str, loss: Loss, cutoff: int | None = None) -> Method:
    """Return the method of that name; refuse unknown names and names that do not match the loss or the cut-off."""
    if name == "auto" and cutoff is None:
        return AUTO
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; use one of {', '.join(map(repr, METHODS))}")
    if loss.form in (Form.LABELS, Form.THRESHOLD) and name not in ("auto", "exhaustive"):
        loss.check(1, 1)
    if cutoff is not None:
        if name != "chakrabarti":
            raise ValueError(f"cutoff={cutoff} works only with method='chakrabarti', not {name!r}")
        if not is_whole(cutoff) or cutoff < 1:
            raise ValueError(f"cutoff must be a whole number of places, at least 1, got {cutoff!r}")
    return Method(name, cutoff)
