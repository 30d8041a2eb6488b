"""The blocks of a page: plain text and data, which the page escapes and lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rankwise_lab.report.claims import Card, Overview, Verdicts
from rankwise_lab.report.figure import NO_FIGURES, Drawing, Drawn, Gallery, Picture, Sheet
from rankwise_lab.report.table import Table


class Heading(NamedTuple):
    """A heading. depth: levels below the heading of its section, or of its page. said: what to see under it."""

    text: str
    depth: int = 1
    said: str = ""


class Paragraph(NamedTuple):
    """A paragraph. style: "note" to make it stand out, "soft" for small print."""

    text: str
    style: str = ""


class Items(NamedTuple):
    """A list."""

    texts: Sequence[str]


class Checks(NamedTuple):
    """Statements that must hold, and whether they do."""

    holds: Mapping[str, bool]


class Tiles(NamedTuple):
    """The most important numbers, each with its meaning."""

    numbers: Sequence[tuple[str, str]]


class Section(NamedTuple):
    """A part of a page that a link can name."""

    name: str
    title: str
    blocks: Sequence[Block]


class Fold(NamedTuple):
    """A part of a page that is closed at first and that a link can open by its name. said: what to see in it."""

    name: str
    title: str
    said: str
    blocks: Sequence[Block]


class Ready(NamedTuple):
    """HTML that was laid out before."""

    html: str


Block: TypeAlias = (
    Heading
    | Paragraph
    | Items
    | Checks
    | Tiles
    | Table
    | Drawn
    | Picture
    | Sheet
    | Gallery
    | Section
    | Fold
    | Ready
    | Verdicts
    | Card
    | Overview
)


def note(text: str) -> Paragraph:
    """Make a paragraph that stands out."""
    return Paragraph(text, "note")


def small(text: str) -> Paragraph:
    """Make a paragraph in small print."""
    return Paragraph(text, "soft")


def show_figures(figures: Mapping[str, Drawing], *told: tuple[str, str, str]) -> Block:
    """Show figures, each by its name with a label and a caption; a sentence instead if none could be drawn."""
    if not figures:
        return Paragraph(NO_FIGURES)
    drawn = [Drawn(name, figures[name], label, caption) for name, label, caption in told]
    return drawn[0] if len(drawn) == 1 else Gallery(drawn)
