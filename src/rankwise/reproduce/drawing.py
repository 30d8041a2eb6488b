"""Figures of the report: drawn once, for a page in light or dark and as files."""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "INK",
    "NO_FIGURES",
    "SIZES",
    "Drawing",
    "as_png",
    "as_svg",
    "drawing",
    "finish",
    "have_matplotlib",
]

NO_FIGURES = "No figures: Matplotlib is not installed; pip install '.[plots]' in a checkout."
# Points of text: legible when a panel of 5 inches is as wide as a phone.
SIZES = {"title": 13.0, "label": 12.0, "tick": 11.0}
# The colour of text and axes, which is the reader's own in an SVG; and Okabe and Ito's colours, for any kind of sight,
# the blue a little lighter: they show on white as on black.
INK = "#1b1c1d"
COLOURS = ("#1a80c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")


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
    return Drawing(as_png(figure), _svg(figure, transparent=False).encode(), as_svg(figure, prefix))


def as_png(figure: Figure) -> bytes:
    """The figure as a PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def as_svg(figure: Figure, prefix: str = "") -> str:
    """The figure as an <svg> element to put into a page: transparent, its text and axes in the page's own colour.

    The same figure gives the same string. prefix: of every id in it, to set apart the figures of one page.
    """
    text = _svg(figure, transparent=True)
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # a page knows them, and names no place elsewhere
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text).strip()


def _svg(figure: Figure, *, transparent: bool) -> str:
    from matplotlib import rc_context

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": "rankwise", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=transparent, metadata=nothing)
    return buffer.getvalue()


Corner = Literal["best", "upper left", "upper right", "lower left", "lower right", "center right"]


def finish(axes: Axes, title: str, x: str, y: str, legend: Corner | None = None) -> None:
    """Titles, grid and ink of a panel; legend: its corner, None for no legend."""
    axes.set_title(title, loc="left", fontsize=SIZES["title"], fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=SIZES["label"], color=INK)
    axes.set_ylabel(y, fontsize=SIZES["label"], color=INK)
    axes.tick_params(labelsize=SIZES["tick"], color=INK, labelcolor=INK, which="both")
    axes.grid(True, which="major", color="#888888", alpha=0.35, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    if legend is not None and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=SIZES["tick"], labelcolor=INK, handlelength=2.6, loc=legend)
