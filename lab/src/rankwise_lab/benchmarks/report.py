"""What a benchmark found: rows of measured numbers beside their targets, and tables with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankwise_lab.report.table import Table

__all__ = ["Row", "as_text", "at_least", "at_most", "interval_cells"]


@dataclass(frozen=True)
class Target:
    """A bound on what is measured; sense is "<=" or ">="."""

    sense: str
    bound: float

    def met(self, measured: float) -> bool:
        """Whether `measured` keeps the bound."""
        return measured <= self.bound if self.sense == "<=" else measured >= self.bound


def at_most(bound: float) -> Target:
    """The target: measured ≤ bound."""
    return Target("<=", bound)


def at_least(bound: float) -> Target:
    """The target: measured ≥ bound."""
    return Target(">=", bound)


@dataclass(frozen=True)
class Row:
    """One measured number. `measured` is None where this machine cannot measure it; `parts` is what it came from."""

    what: str
    measured: float | None
    unit: str = "x"
    target: Target | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a measurement."""
        if self.target is None or self.measured is None:
            return None
        return self.target.met(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        target = None if self.target is None else {"sense": self.target.sense, "bound": self.target.bound}
        return {
            "what": self.what,
            "measured": self.measured,
            "unit": self.unit,
            "target": target,
            "met": self.met,
            "parts": dict(self.parts),
        }


def interval_cells(interval: Mapping[str, float | None] | None, digits: int = 4) -> list[str]:
    """A mean and the ends of its interval, in two cells; empty where they are None."""
    if interval is None:
        return ["", ""]
    low, high = interval["low"], interval["high"]
    ends = "" if low is None or high is None else f"[{low:+.{digits}f}, {high:+.{digits}f}]"
    return [f"{interval['mean']:+.{digits}f}", ends]


def as_text(tables: Iterable[Table]) -> str:
    """Tables as text, one below the other."""
    return "\n\n".join("\n".join(table.as_lines()) for table in tables)
