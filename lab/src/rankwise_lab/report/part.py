"""What an experiment hands over to be read: its document, tables, figures and conclusions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankwise_lab.report.blocks import Block, Checks, Heading, Items, Paragraph, Tiles, small
from rankwise_lab.report.figure import Drawing, Drawn, Gallery
from rankwise_lab.report.table import Table

__all__ = ["Part"]

_VERSIONS = ("rankwise", "python", "numpy", "numba", "torch", "cpu", "cores", "threads", "torch_threads")
_MARKS = {True: "ok    ", False: "FAILED"}


@dataclass(frozen=True)
class Part:
    """An experiment that is done.

    about: what it is, in a paragraph. found: the document, plain data. lines: conclusions, a sentence each. body: what
    a page shows of it, all tables and figures. facts: how it was done, a line each. csv: its numbers. tiles: numbers to
    be seen first, each with what it is. checks: what must hold, and whether it does. pictures: further files by name.
    command: what its name follows in the command that makes it.
    """

    name: str
    title: str
    about: str
    found: dict[str, Any]
    lines: list[str]
    body: list[Block]
    facts: list[str]
    csv: str = ""
    tiles: list[tuple[str, str]] = field(default_factory=list)
    checks: Mapping[str, bool] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    command: str = "rankwise reproduce"

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [block for block in self.body if isinstance(block, Table)]

    @property
    def figures(self) -> dict[str, Drawing]:
        """All drawn figures, by name."""
        pieces = [piece for block in self.body for piece in (block.pieces if isinstance(block, Gallery) else [block])]
        return {piece.name: piece.drawing for piece in pieces if isinstance(piece, Drawn)}

    def as_blocks(self) -> list[Block]:
        """The part as it is shown in a page."""
        blocks: list[Block] = [Paragraph(self.about)]
        blocks += [Tiles(self.tiles)] if self.tiles else []
        blocks += [Items(self.lines), *self.body]
        blocks += [Heading("Checks"), Checks(self.checks)] if self.checks else []
        return [*blocks, Heading("How it was done"), Items(self.facts), small(self.made_by())]

    def as_lines(self, width: int | None = None) -> list[str]:
        """The part as it is shown in a terminal; width: at which sentences go on in the next line."""
        said = [*self.facts, *self.lines]
        if width is not None:
            said = [line for text in said for line in textwrap.wrap(text, width)]
        lines = [line for table in self.tables for line in (*table.as_lines(), "")]
        checks = [f"  {_MARKS[holds]}  {check}" for check, holds in self.checks.items()]
        return [*lines, *said, *(["", "Checks", *checks] if checks else [])]

    def made_by(self) -> str:
        """The command, the machine and the versions, in a line."""
        machine = self.found["machine"]
        known = [f"{key.replace('_', ' ')} {machine[key]}" for key in _VERSIONS if machine.get(key) is not None]
        command = f"{self.command} {self.name}"
        return f"Made by “{command}”. {'; '.join(known)}. Times depend on the machine and its load."
