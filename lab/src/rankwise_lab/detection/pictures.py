"""Pictures of detections: boxes with their scores on an image."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, is_whole
from rankwise.cli import install_hint
from rankwise_lab.detection.boxes import as_boxes, as_scores

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Place = tuple[float, float, float, float]

# A picture's longer side is at least this many pixels, or text would hide what it is about.
_SIDE = 960
# Okabe and Ito's colours, for any kind of sight; those that stand out on water and grass first.
_COLOURS = ("#e69f00", "#56b4e9", "#cc79a7", "#f0e442", "#d55e00", "#009e73", "#0072b2")
_INK, _PAPER = "#16181a", "#ffffff"
_JPEG_QUALITY = 90


def draw(
    image: NDArray[np.uint8] | Image,
    boxes: ArrayLike,
    scores: ArrayLike,
    labels: Sequence[str] | None = None,
    truth: ArrayLike | None = None,
    *,
    classes: Sequence[str] | None = None,
    side: int | None = None,
) -> Image:
    """Draw boxes (n, 4) on an RGB image (h, w, 3), uint8, with scores and labels on tags; the best is on top.

    truth (k, 4): true boxes, drawn as thin dashed white frames. classes: all labels that can occur, so that a label has
    the same colour in every picture. side: pixels of the longer side; by default that of the image, but at least 960.
    """
    boxes = as_boxes(boxes)
    scores = as_scores(scores, len(boxes))
    colours = _colours(labels, len(boxes), classes)
    picture = _as_picture(image)
    factor = max(_SIDE / max(picture.size), 1.0) if side is None else _as_count(side, "side") / max(picture.size)
    picture = _scaled(picture, factor)
    canvas, font = _canvas(picture), _font(max(14.0, max(picture.size) / 54))
    thick, thin = max(3, round(max(picture.size) / 320)), max(1, round(max(picture.size) / 480))
    frames = [_outline(box, factor, picture.size, thick // 2 + 1) for box in boxes]
    order = np.argsort(-scores, kind="stable")
    for k in order[::-1]:
        _framed(canvas, frames[k], colours[k], thick)
    for box in as_boxes([] if truth is None else truth, "truth"):
        _dashed(canvas, _outline(box, factor, picture.size, thin // 2 + 1), thin)
    tags: list[_Tag] = []
    for k in order:
        score = f"{round(scores[k], 2) + 0.0:.2f}"  # no −0.00
        text = score if labels is None else f"{labels[k]} {score}"
        tags.append(_Tag.at(_grown(frames[k], thick // 2), text, colours[k], font, picture.size, tags))
    for tag in reversed(tags):
        tag.write(canvas, font)
    return picture


def encode(picture: Image, kind: Literal["png", "jpeg"] = "png") -> bytes:
    """The bytes of a PNG or JPEG file without metadata: the same for the same picture."""
    if kind not in ("png", "jpeg"):
        raise ValueError(f"unknown kind={kind!r}; use 'png' or 'jpeg'")
    buffer = io.BytesIO()
    options: dict[str, Any] = {"quality": _JPEG_QUALITY, "subsampling": 0} if kind == "jpeg" else {"optimize": True}
    picture.save(buffer, format=kind, **options)
    return buffer.getvalue()


def _as_picture(image: NDArray[np.uint8] | Image) -> Image:
    """A copy in RGB, without metadata."""
    try:
        from PIL import Image as pillow
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        raise ModuleNotFoundError(
            f"pictures need Pillow, which is not installed: {install_hint('images')}", name="PIL"
        ) from None

    if isinstance(image, pillow.Image):
        picture = image.convert("RGB")
        picture.info = {}
        return picture
    array = as_array(image, "image")
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise ValueError(
            f"image has shape {array.shape} and dtype {array.dtype}; give (height, width, 3) uint8, or a Pillow image"
        )
    return pillow.fromarray(np.ascontiguousarray(array))


def _as_count(value: int, name: str) -> int:
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
    return int(value)


def _scaled(picture: Image, factor: float) -> Image:
    from PIL import Image as pillow

    if factor == 1.0:
        return picture
    width, height = (max(1, round(side * factor)) for side in picture.size)
    return picture.resize((width, height), pillow.Resampling.LANCZOS)


def _canvas(picture: Image) -> ImageDraw:
    from PIL import ImageDraw as drawing

    return drawing.Draw(picture)


def _font(size: float) -> FreeTypeFont:
    """Pillow's own font, which needs no file."""
    from PIL import ImageFont as fonts

    font = fonts.load_default(size=size)
    if not isinstance(font, fonts.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType, and has no font to write with; install its wheel")
    return font


def _colours(labels: Sequence[str] | None, n: int, classes: Sequence[str] | None) -> list[str]:
    if labels is None:
        return [_COLOURS[0]] * n
    if len(labels) != n:
        raise ValueError(f"{len(labels)} labels and {n} boxes; give one a box")
    names = sorted(set(labels)) if classes is None else list(classes)
    if missing := sorted(set(labels) - set(names)):
        raise ValueError(f"the label {missing[0]!r} is not among classes; add it there")
    return [_COLOURS[names.index(label) % len(_COLOURS)] for label in labels]


def _outline(box: NDArray[np.float64], factor: float, size: tuple[int, int], margin: int) -> Place:
    """The first and last pixels of a box, from 0, where each pixel has become `factor`; kept off the picture's edge."""
    sides = []
    for first, last, length in zip(box[:2], box[2:], size, strict=True):
        start, end = round((first - 1.0) * factor), round(last * factor) - 1
        sides.append((max(start, margin), min(end, length - 1 - margin)))
    (left, right), (top, bottom) = sides
    return left, top, max(left, right), max(top, bottom)


def _framed(canvas: ImageDraw, place: Place, colour: str, thick: int) -> None:
    """A frame around the place in its colour, between two dark lines that set it off from any ground."""
    canvas.rectangle(_grown(place, thick // 2 + 1), outline=_INK, width=thick + 2)
    canvas.rectangle(_grown(place, thick // 2), outline=colour, width=thick)


def _grown(place: Place, by: float) -> Place:
    left, top, right, bottom = place
    return left - by, top - by, right + by, bottom + by


def _dashed(canvas: ImageDraw, place: Place, thin: int) -> None:
    """A dashed frame of that many pixels, white within dark."""
    left, top, right, bottom = place
    across, down = (list(_dashes(a, b, 5.0 * thin + 4.0)) for a, b in ((left, right), (top, bottom)))
    dashes: list[Place] = [(a, y, b, y) for a, b in across for y in (top, bottom)]
    dashes += [(x, a, x, b) for a, b in down for x in (left, right)]
    for edge, ink in ((1, _INK), (0, _PAPER)):
        before, after = thin // 2 + edge, (thin - 1) // 2 + edge
        for x1, y1, x2, y2 in dashes:
            canvas.rectangle((x1 - before, y1 - before, x2 + after, y2 + after), fill=ink)


def _dashes(start: float, end: float, length: float) -> Iterator[tuple[int, int]]:
    """Every other of an odd number of equal parts: a dash at either end."""
    n = round((end - start) / length) | 1
    step = (end - start) / n
    for k in range(0, n, 2):
        yield round(start + k * step), round(start + (k + 1) * step)


class _Tag(NamedTuple):
    """Text in its place."""

    text: str
    colour: str
    place: Place

    @classmethod
    def at(
        cls, frame: Place, text: str, colour: str, font: FreeTypeFont, size: tuple[int, int], others: Sequence[_Tag]
    ) -> _Tag:
        """A tag at a corner of the frame, outside it or else inside, that hides no other if there is such a place."""
        width = font.getlength(text) + font.size / 2
        height = sum(font.getmetrics()) + font.size / 8
        left, top, right, bottom = frame
        for y, x in product((top - height, bottom, top, bottom - height), (left, right - width)):
            place = _moved_inside(x, y, width, height, size)
            if place[1] == y and not any(_meet(place, other.place) for other in others):
                return cls(text, colour, place)
        return cls(text, colour, _moved_inside(left, top - height, width, height, size))

    def write(self, canvas: ImageDraw, font: FreeTypeFont) -> None:
        left, top, right, bottom = self.place
        pad = font.size / 4
        canvas.rounded_rectangle((left, top, right - 1, bottom - 1), radius=pad / 2, fill=self.colour, outline=_INK)
        ink = _PAPER if _is_dark(self.colour) else _INK
        canvas.text((left + pad, top + pad / 4), self.text, fill=ink, font=font)


def _moved_inside(x: float, y: float, width: float, height: float, size: tuple[int, int]) -> Place:
    x, y = max(0.0, min(x, size[0] - width)), max(0.0, min(y, size[1] - height))
    return x, y, x + width, y + height


def _meet(a: Place, b: Place) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 110.0
