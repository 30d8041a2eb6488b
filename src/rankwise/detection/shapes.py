"""A small VOC folder of coloured shapes, to try detection on: drawn in a moment, with objects that can be found."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankwise.io.atomic import write_bytes

CLASSES = ("disc", "square")
_WIDTH, _HEIGHT = 96, 64
_COLOURS = {"disc": (200, 60, 40), "square": (40, 70, 200)}
_SIDES = (16, 28)
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def write_shapes(folder: str | Path, sizes: Mapping[str, int] | None = None, seed: int = 0) -> Path:
    """Write a VOC folder, and return it: images of noise, half of them with a red disc, half with a blue square.

    sizes: images by set; 24 in train, 16 in val and 16 in test if not given. The same seed draws the same images.
    """
    root = Path(folder)
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / "VOC2007" / part).mkdir(parents=True, exist_ok=True)
    rng, number = np.random.default_rng(seed), 0
    for name, size in (sizes or {"train": 24, "val": 16, "test": 16}).items():
        ids = [f"{number + k:06d}" for k in range(size)]
        number += size
        for place, image_id in enumerate(ids):
            # Each set has images with neither, with one, with the other and with both.
            there = [shape for bit, shape in enumerate(CLASSES) if place >> bit & 1]
            _write_image(root / "VOC2007", image_id, there, rng)
        text = "".join(f"{image_id}\n" for image_id in ids)
        write_bytes(root / "VOC2007" / "ImageSets" / "Main" / f"{name}.txt", text.encode())
    return root


def _write_image(root: Path, image_id: str, shapes: list[str], rng: np.random.Generator) -> None:
    from PIL import Image

    pixels = rng.integers(90, 150, (_HEIGHT, _WIDTH, 3)).astype(np.uint8)
    objects = []
    for number, shape in enumerate(shapes):
        # In halves of their own, so that none covers another.
        box = _draw(pixels, shape, (number * _WIDTH // 2, (number + 1) * _WIDTH // 2), rng)
        sides = "".join(f"<{side}>{value}</{side}>" for side, value in zip(_CORNERS, box, strict=True))
        objects.append(f"<object><name>{shape}</name><bndbox>{sides}</bndbox></object>")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    write_bytes(root / "JPEGImages" / f"{image_id}.png", buffer.getvalue())
    size = f"<size><width>{_WIDTH}</width><height>{_HEIGHT}</height></size>"
    xml = f"<annotation>{size}{''.join(objects)}</annotation>\n"
    write_bytes(root / "Annotations" / f"{image_id}.xml", xml.encode())


def _draw(
    pixels: NDArray[np.uint8], shape: str, within: tuple[int, int], rng: np.random.Generator
) -> tuple[int, int, int, int]:
    """Draw a shape between two columns; its box, from 1."""
    side = int(rng.integers(*_SIDES))
    x, y = int(rng.integers(within[0], within[1] - side)), int(rng.integers(0, _HEIGHT - side))
    rows, columns = np.mgrid[:side, :side]
    middle = (side - 1) / 2.0
    inside = (rows - middle) ** 2 + (columns - middle) ** 2 <= middle**2 if shape == "disc" else rows >= 0
    colour = np.array(_COLOURS[shape]) + rng.integers(-20, 21, 3)
    pixels[y : y + side, x : x + side][inside] = np.clip(colour, 0, 255).astype(np.uint8)
    return x + 1, y + 1, x + side, y + side
