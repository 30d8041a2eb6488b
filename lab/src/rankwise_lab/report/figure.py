"""Figures and pictures: each drawn once, for a light or dark page and as files."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from rankwise.cli import install_hint
from rankwise_lab.figures import as_png, as_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NO_FIGURES = f"No figures: Matplotlib is not installed; {install_hint('plots')}."


class Drawing(NamedTuple):
    """A figure as files, PNG and SVG, and as an <svg> element for a page."""

    png: bytes
    svg: bytes
    inline: str


class Drawn(NamedTuple):
    """A figure in a page. name: of its files. label: what it shows, for those who cannot see it. caption: below it."""

    name: str
    drawing: Drawing
    label: str
    caption: str

    @property
    def labelled(self) -> Markup:
        """The <svg> element with its label; the caption stays separate text."""
        said = Markup('<svg role="img" aria-label="{}"').format(self.label)
        return Markup(self.drawing.inline.replace("<svg", said, 1))


class Picture(NamedTuple):
    """A picture in a page or a sheet: the bytes of a PNG or JPEG, a label that says what it shows, and a caption.

    wrong: in a sheet, mark it as an error, by a frame and a cross.
    """

    content: bytes
    label: str
    caption: str = ""
    wrong: bool = False

    @property
    def source(self) -> str:
        kind = "jpeg" if self.content.startswith(b"\xff\xd8") else "png"
        return f"data:image/{kind};base64,{base64.b64encode(self.content).decode()}"


class Sheet(NamedTuple):
    """Small pictures in order, with a title and a caption above them.

    per_row: this many in a row, on every screen, and the number of the first image before each row; 0 for as many as
    there is room for.
    """

    title: str
    caption: str
    images: Sequence[Picture]
    per_row: int = 0


class Gallery(NamedTuple):
    """Figures, pictures or sheets in rows, as many per row as there is room for."""

    pieces: Sequence[Drawn | Picture | Sheet]


def ink_png(ink: ArrayLike) -> bytes:
    """Return ink (height, width), from 0 to 1, on white paper, as a PNG with a pixel for each number."""
    grey = np.rint(255 * (1 - np.clip(np.asarray(ink, np.float64), 0.0, 1.0))).astype(np.uint8)
    height, width = grey.shape
    rows = np.insert(grey, 0, 0, axis=1).tobytes()  # before each row, the number of its filter: none
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0),
        b"IDAT": zlib.compress(rows, 9),
        b"IEND": b"",
    }
    chunks = [
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in parts.items()
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def have_matplotlib() -> bool:
    """Tell whether figures can be drawn."""
    return find_spec("matplotlib") is not None


def draw_each(
    part: str, inches: tuple[float, float], paints: Mapping[str, Callable[[Axes], None]]
) -> dict[str, Drawing]:
    """Draw the figures of a part of a report, by name, each on axes; none if Matplotlib is not installed."""
    if not have_matplotlib():
        return {}
    from matplotlib.figure import Figure

    found = {}
    for name, paint in paints.items():
        figure = Figure(figsize=inches, layout="constrained")
        paint(figure.subplots())
        found[name] = drawing(figure, f"{part}-{name}-")
    return found


def drawing(figure: Figure, prefix: str) -> Drawing:
    """Save the figure in every form. prefix: of the ids in its <svg>, different for each figure of a page."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: every further pass would move things a little
    return Drawing(as_png(figure), as_svg(figure, page=False).encode(), as_svg(figure, prefix))
