"""What an experiment hands over to be read: its document, tables, figures and conclusions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankwise_lab.reproduce.drawing import Drawing
from rankwise_lab.reproduce.page import Table

__all__ = ["NAMES", "Part", "made_by"]

# In the order of the report.
NAMES = ("timing", "scaling", "action", "detection", "cifar")
_VERSIONS = ("rankwise", "python", "numpy", "numba", "torch", "cpu", "cores", "threads", "torch_threads")


@dataclass(frozen=True)
class Part:
    """An experiment that is done.

    about: what it is, in a paragraph. found: the document, plain data. csv: its numbers. lines: conclusions, a sentence
    each. tables: all of them, for a terminal. body: pieces of HTML, headings of level 3 and below. facts: how it was
    done, a line each. figures: by name. tiles: numbers to be seen first, each with what it is. pictures: further files
    by name.
    """

    name: str
    title: str
    about: str
    found: dict[str, Any]
    csv: str
    lines: list[str]
    tables: list[Table]
    body: list[str]
    facts: list[str]
    figures: dict[str, Drawing] = field(default_factory=dict)
    tiles: list[tuple[str, str]] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)


def made_by(name: str, machine: Mapping[str, Any]) -> str:
    """The command, the machine and the versions, in a line."""
    known = [f"{key.replace('_', ' ')} {machine[key]}" for key in _VERSIONS if machine.get(key) is not None]
    return f"Made by “rankwise reproduce {name}”. {'; '.join(known)}. Times depend on the machine and its load."
