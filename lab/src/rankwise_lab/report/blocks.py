"""What a page is made of: blocks of plain text and data, which the page escapes and lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rankwise_lab.report.figure import NO_FIGURES, Drawing, Drawn, Gallery, Picture
from rankwise_lab.report.table import Table

__all__ = [
    "Block",
    "Checks",
    "Contents",
    "Heading",
    "Items",
    "Paragraph",
    "Ready",
    "Section",
    "Tiles",
    "note",
    "show_figures",
    "small",
]


class Heading(NamedTuple):
    """A heading; depth: how far it is below that of its section, or of its page."""

    text: str
    depth: int = 1


class Paragraph(NamedTuple):
    """A paragraph; style: "note" for one that should not be missed, "soft" for small print."""

    text: str
    style: str = ""


class Items(NamedTuple):
    """A list."""

    texts: Sequence[str]


class Checks(NamedTuple):
    """What must hold, and whether it does."""

    holds: Mapping[str, bool]


class Tiles(NamedTuple):
    """Numbers that are to be seen first, each with what it is."""

    numbers: Sequence[tuple[str, str]]


class Contents(NamedTuple):
    """Links to sections, titles by name."""

    titles: Mapping[str, str]


class Section(NamedTuple):
    """A part of a page that can be pointed to by its name."""

    name: str
    title: str
    blocks: Sequence[Block]


class Ready(NamedTuple):
    """A section as it was laid out before."""

    html: str


Block: TypeAlias = (
    Heading | Paragraph | Items | Checks | Tiles | Contents | Table | Drawn | Picture | Gallery | Section | Ready
)


def note(text: str) -> Paragraph:
    """A paragraph that should not be missed."""
    return Paragraph(text, "note")


def small(text: str) -> Paragraph:
    """A paragraph in small print."""
    return Paragraph(text, "soft")


def show_figures(figures: Mapping[str, Drawing], *told: tuple[str, str, str]) -> Block:
    """Figures, each by its name with a label and a caption; a sentence in their place where none could be drawn."""
    if not figures:
        return Paragraph(NO_FIGURES)
    drawn = [Drawn(name, figures[name], label, caption) for name, label, caption in told]
    return drawn[0] if len(drawn) == 1 else Gallery(drawn)
