"""What a benchmark found: rows of measured numbers beside their targets, and files written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankwise.io import write_bytes

__all__ = ["Row", "at_least", "at_most", "write_bytes", "write_json"]


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


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain data to `path`, atomically."""
    write_bytes(path, (json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode())
