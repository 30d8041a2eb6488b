"""What an experiment hands over to be read: its document, tables, figures, conclusions and verdicts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankwise_lab.report.blocks import Block, Checks, Fold, Heading, Items, Paragraph, Tiles, small
from rankwise_lab.report.claims import Card, Claim, Verdicts
from rankwise_lab.report.figure import Drawing, Drawn, Gallery
from rankwise_lab.report.table import Table

_VERSIONS = ("rankwise", "python", "numpy", "numba", "torch", "cpu", "cores", "threads", "torch_threads")
_MARKS = {True: "ok    ", False: "FAILED"}
_HOW = "How it was done"


@dataclass(frozen=True)
class Part:
    """A finished experiment.

    about: what it is, in one paragraph. found: the document, plain data. lines: conclusions, one sentence each. body:
    all tables and figures, under headings. facts: how it was done, one line each. csv: its numbers. tiles: the most
    important numbers, each with its meaning. checks: statements that must hold, and whether they do. pictures: further
    files by name. command: the command that makes it, without the name. claims: of the paper, each with its verdict.
    thumbnail: a small figure for the overview. tags: warnings there, such as "quick run".
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
    claims: Sequence[Claim] = ()
    thumbnail: Drawn | None = None
    tags: Sequence[str] = ()

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.body if isinstance(block, Table)]

    @property
    def figures(self) -> dict[str, Drawing]:
        pieces = [piece for block in self.body for piece in (block.pieces if isinstance(block, Gallery) else [block])]
        return {piece.name: piece.drawing for piece in pieces if isinstance(piece, Drawn)}

    def as_blocks(self) -> list[Block]:
        """Return the part as the blocks of a page, nothing folded."""
        blocks: list[Block] = [Paragraph(self.about)]
        blocks += [Tiles(self.tiles)] if self.tiles else []
        blocks += [Items(self.lines), *self.body]
        blocks += [Heading("Checks"), Checks(self.checks)] if self.checks else []
        return [*blocks, Heading(_HOW), Items(self.facts), small(self.made_by())]

    def as_fold(self) -> Fold:
        """Return the part as one fold: verdicts and conclusions first, then a fold for each heading of the body."""
        first, folds = _folded(self.name, self.body)
        verdicts = [Verdicts(self.claims)] if self.claims else []
        tiles = [Tiles(self.tiles)] if self.tiles else []
        conclusions = Fold(f"{self.name}-conclusions", "Conclusions in full", "", [Items(self.lines)])
        how = Fold(f"{self.name}-how", _HOW, "", [Items(self.facts), small(self.made_by())])
        said = self.as_card().tally if self.claims else ""
        blocks = [Paragraph(self.about), *first, *verdicts, *tiles, conclusions, *folds, how]
        return Fold(self.name, self.title, said, blocks)

    def as_card(self) -> Card:
        """Return the part as a card of the overview."""
        return Card(self.name, self.title, self.claims, self.thumbnail, self.tags)

    def as_lines(self, width: int | None = None) -> list[str]:
        """Return the part as lines for a terminal. width: at which to wrap sentences."""
        said = [*self.facts, *self.lines]
        if width is not None:
            said = [line for text in said for line in textwrap.wrap(text, width)]
        lines = [line for table in self.tables for line in (*table.as_lines(), "")]
        checks = [f"  {_MARKS[holds]}  {check}" for check, holds in self.checks.items()]
        claims = [f"  {claim.word:<10}  {claim.sentence}" for claim in self.as_card().sorted_claims]
        return [
            *lines,
            *said,
            *(["", "Checks", *checks] if checks else []),
            *(["", "Verdicts", *claims] if claims else []),
        ]

    def made_by(self) -> str:
        """Return the command, the machine and the versions, in one line."""
        machine = self.found["machine"]
        known = [f"{key.replace('_', ' ')} {machine[key]}" for key in _VERSIONS if machine.get(key) is not None]
        command = f"{self.command} {self.name}"
        return f"Made by “{command}”. {'; '.join(known)}. Times depend on the machine and its load."


def _folded(part: str, body: Iterable[Block]) -> tuple[list[Block], list[Fold]]:
    """Split a body at its headings: what comes before the first, and one fold for each."""
    first: list[Block] = []
    folds: list[tuple[Heading, list[Block]]] = []
    for block in body:
        if isinstance(block, Heading) and block.depth == 1:
            folds.append((block, []))
        elif isinstance(block, Heading):
            folds[-1][1].append(block._replace(depth=block.depth - 1))
        else:
            (folds[-1][1] if folds else first).append(block)
    names = _names(part, (heading.text for heading, _ in folds))
    return first, [
        Fold(name, heading.text, heading.said, blocks) for name, (heading, blocks) in zip(names, folds, strict=True)
    ]


def _names(part: str, titles: Iterable[str]) -> Iterator[str]:
    """Names of folds, from their titles."""
    for title in titles:
        yield f"{part}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"
