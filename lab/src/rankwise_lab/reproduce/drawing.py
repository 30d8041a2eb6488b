"""Figures of a page: drawn once, for a page in light or dark and as files."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rankwise.figures import as_png, as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NO_FIGURES", "Drawing", "drawing", "have_matplotlib"]

NO_FIGURES = "No figures: Matplotlib is not installed; pip install 'rankwise[plots]'."


class Drawing(NamedTuple):
    """A figure as files, PNG and SVG, and as an <svg> element for a page."""

    png: bytes
    svg: bytes
    inline: str


def have_matplotlib() -> bool:
    """Whether figures can be drawn."""
    return find_spec("matplotlib") is not None


def drawing(figure: Figure, prefix: str) -> Drawing:
    """The figure in every form; prefix: of the ids in its <svg>, another for each figure of a page."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: every further pass would move things a little
    return Drawing(as_png(figure), as_svg(figure, page=False).encode(), as_svg(figure, prefix))
