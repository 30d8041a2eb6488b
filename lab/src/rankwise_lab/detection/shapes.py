"""Small images of coloured shapes to try detection on, as a VOC folder or as features in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankwise.io import write_bytes
from rankwise_lab.detection.proposals import sliding_windows
from rankwise_lab.detection.store import FeatureStore

CLASSES = ("disc", "square")
_WIDTH, _HEIGHT = 96, 64
_COLOURS = {"disc": (200, 60, 40), "square": (40, 70, 200)}
_SIDES = (16, 28)
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


_Found = list[tuple[str, tuple[int, int, int, int]]]


def write_shapes(folder: str | Path, sizes: Mapping[str, int] | None = None, seed: int = 0) -> Path:
    """Write a VOC folder and return it: images of noise, half of them with a red disc, half with a blue square.

    sizes: number of images by set; by default 24 in train, 16 in val and 16 in test. Equal seeds draw equal images.
    """
    root = Path(folder)
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / "VOC2007" / part).mkdir(parents=True, exist_ok=True)
    sizes = sizes or {"train": 24, "val": 16, "test": 16}
    ids: dict[str, list[str]] = {name: [] for name in sizes}
    for name, image_id, pixels, found in _images(sizes, seed):
        _write_image(root / "VOC2007", image_id, pixels, found)
        ids[name].append(image_id)
    for name, members in ids.items():
        text = "".join(f"{image_id}\n" for image_id in members)
        write_bytes(root / "VOC2007" / "ImageSets" / "Main" / f"{name}.txt", text.encode())
    return root


def shapes_store(sizes: Mapping[str, int] | None = None, seed: int = 0) -> FeatureStore:
    """Such images as a store in memory, for examples: sliding windows, described by their mean colours.

    sizes: number of images by set; by default 8 in each of train, val and test. No file is written.

    >>> store = shapes_store()
    >>> len(store), store.features.shape, store.classes
    (24, (1440, 3), ('disc', 'square'))
    """
    boxes = sliding_windows(_HEIGHT, _WIDTH, max_windows=60)
    features, images = [], []
    sets: dict[str, list[str]] = {}
    for name, image_id, pixels, found in _images(sizes or {"train": 8, "val": 8, "test": 8}, seed):
        corners = boxes.astype(int).tolist()
        means = np.array([pixels[y1 - 1 : y2, x1 - 1 : x2].mean(axis=(0, 1)) for x1, y1, x2, y2 in corners])
        features.append(means / np.linalg.norm(means, axis=1, keepdims=True))
        objects = [{"name": shape, "box": list(box), "difficult": False} for shape, box in found]
        images.append({"id": image_id, "width": _WIDTH, "height": _HEIGHT, "objects": objects})
        sets.setdefault(name, []).append(image_id)
    settings = {"model": "mean colour", "dim": 3}
    manifest = {"settings": settings, "classes": list(CLASSES), "sets": sets, "images": images}
    rows = np.concatenate(features).astype(np.float32)
    offsets = np.arange(len(images) + 1, dtype=np.int64) * len(boxes)
    return FeatureStore(Path("shapes"), manifest, rows, np.tile(boxes, (len(images), 1)).astype(np.float32), offsets)


def _images(sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, str, NDArray[np.uint8], _Found]]:
    """The set, the id, the pixels and the objects of each image."""
    rng, number = np.random.default_rng(seed), 0
    for name, size in sizes.items():
        for place in range(size):
            # Each set has images with neither, with one, with the other and with both.
            there = [shape for bit, shape in enumerate(CLASSES) if place >> bit & 1]
            pixels = rng.integers(90, 150, (_HEIGHT, _WIDTH, 3)).astype(np.uint8)
            # Each object has its own half of the image, so none covers another.
            halves = [(k * _WIDTH // 2, (k + 1) * _WIDTH // 2) for k in range(len(there))]
            found = [(shape, _draw(pixels, shape, half, rng)) for shape, half in zip(there, halves, strict=True)]
            yield name, f"{number:06d}", pixels, found
            number += 1


def _write_image(root: Path, image_id: str, pixels: NDArray[np.uint8], found: _Found) -> None:
    from PIL import Image

    objects = []
    for shape, box in found:
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
    """Draw a shape between two columns, and return its box, counted from 1."""
    side = int(rng.integers(*_SIDES))
    x, y = int(rng.integers(within[0], within[1] - side)), int(rng.integers(0, _HEIGHT - side))
    rows, columns = np.mgrid[:side, :side]
    middle = (side - 1) / 2.0
    inside = (rows - middle) ** 2 + (columns - middle) ** 2 <= middle**2 if shape == "disc" else rows >= 0
    colour = np.array(_COLOURS[shape]) + rng.integers(-20, 21, 3)
    pixels[y : y + side, x : x + side][inside] = np.clip(colour, 0, 255).astype(np.uint8)
    return x + 1, y + 1, x + side, y + side
