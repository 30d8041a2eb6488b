"""Windows of an image that may hold an object, of any class: the candidates of a bag.

The whole image always comes first, so that "the first of each bag" is a start of training that needs no choice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.detection.boxes import nms

SEARCHES = ("fast", "quality", "sliding")
# The search works on a copy whose longer side is no longer than this.
_LONGEST = 384
# Graph segmentation of the stretched copy: its first scale, and the step to the next ones.
_SCALE, _STEP, _SIGMA = 50, 150, 0.8
# A window whose IoU with an earlier one is over this tells nothing new.
_SAME = 0.6
_SHAPES = (1.0, 0.5, 2.0)
_SEED = 0


def windows_of(
    image: NDArray[np.uint8], search: str = "fast", max_windows: int | None = None, min_side: int = 12
) -> NDArray[np.float64]:
    """The windows of an image by one of SEARCHES: boxes (n, 4), 1 ≤ n ≤ max_windows."""
    if search not in SEARCHES:
        raise ValueError(f"search must be one of {', '.join(SEARCHES)}, got {search!r}")
    image = _as_image(image)
    if search == "sliding":
        return sliding_windows(image.shape[0], image.shape[1], max_windows, min_side)
    return selective_search(image, search, max_windows, min_side)


def selective_search(
    image: NDArray[np.uint8], mode: str = "fast", max_windows: int | None = None, min_side: int = 12
) -> NDArray[np.float64]:
    """Windows (n, 4) that may hold objects, by selective search (Uijlings et al., 2013), the whole image first.

    It needs OpenCV with its contributed modules. The search sees a copy with sides of at most 384 pixels, in which each
    channel is stretched so that its 1st and 99th percentiles become 0 and 255, which gives murky pictures edges.
    Windows with a side below min_side, or an IoU above 0.6 with an earlier one, are dropped.

    OpenCV's order differs from run to run, so the order is our own: the whole image, then the others by u · level. u is
    drawn by a seeded generator, uniform in [0, 1), and level = log₂(side / min_side) + ½ takes the place of the level
    of the hierarchy. So max_windows keeps windows of all sizes, with a preference for small ones.
    """
    import cv2

    segmentation = find_segmentation()
    if mode not in ("fast", "quality"):
        raise ValueError(f"mode must be 'fast' or 'quality', got {mode!r}")
    image = _as_image(image)
    _check(max_windows, min_side)
    height, width = image.shape[:2]
    scale = min(1.0, _LONGEST / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    # Blue, green and red, as OpenCV has them.
    small = _stretched(cv2.resize(image, size, interpolation=cv2.INTER_AREA)[:, :, ::-1])
    search = segmentation.createSelectiveSearchSegmentation()
    search.setBaseImage(small)
    switch = search.switchToSelectiveSearchFast if mode == "fast" else search.switchToSelectiveSearchQuality
    switch(_SCALE, _STEP, _SIGMA)
    x, y, w, h = np.asarray(search.process(), dtype=np.float64).reshape(-1, 4).T
    fx, fy = width / size[0], height / size[1]
    found = np.stack([np.floor(x * fx) + 1.0, np.floor(y * fy) + 1.0, np.ceil((x + w) * fx), np.ceil((y + h) * fy)], 1)
    return _chosen(np.minimum(found, [width, height, width, height]), height, width, max_windows, min_side)


def find_segmentation() -> Any:
    """The part of OpenCV with selective search, which not every build of it has."""
    import cv2

    try:
        return cv2.ximgproc.segmentation
    except AttributeError:
        raise ValueError(
            "this OpenCV has no selective search; install opencv-contrib-python-headless, or use sliding windows"
        ) from None


def sliding_windows(height: int, width: int, max_windows: int | None = None, min_side: int = 12) -> NDArray[np.float64]:
    """Windows (n, 4) of three shapes on grids half a window apart, in the order of `selective_search`.

    Each size is √2 times the last.
    """
    if min(height, width) < 1:
        raise ValueError(f"an image of {width} × {height} pixels has no windows")
    _check(max_windows, min_side)
    found = [np.empty((0, 4))]
    side = float(max(min_side, 1))
    while side <= max(height, width):
        for shape in _SHAPES:
            w, h = round(side * math.sqrt(shape)), round(side / math.sqrt(shape))
            if min_side <= w <= width and min_side <= h <= height:
                found.append(_grid(height, width, h, w))
        side *= math.sqrt(2.0)
    return _chosen(np.concatenate(found), height, width, max_windows, min_side)


def _grid(height: int, width: int, h: int, w: int) -> NDArray[np.float64]:
    """Windows of h × w pixels half a window apart, the first and the last of a row at the borders."""
    tops = np.round(np.linspace(1, height - h + 1, 1 + math.ceil((height - h) / max(h / 2, 1))))
    lefts = np.round(np.linspace(1, width - w + 1, 1 + math.ceil((width - w) / max(w / 2, 1))))
    y, x = (part.ravel() for part in np.meshgrid(tops, lefts, indexing="ij"))
    return np.stack([x, y, x + w - 1.0, y + h - 1.0], axis=1)


def _chosen(
    boxes: NDArray[np.float64], height: int, width: int, max_windows: int | None, min_side: int
) -> NDArray[np.float64]:
    """The whole image, then the boxes that are large enough and new, by a draw times their level."""
    boxes = np.unique(boxes, axis=0)
    sides = boxes[:, 2:] - boxes[:, :2] + 1.0
    boxes = boxes[sides.min(axis=1) >= min_side] if len(boxes) else boxes
    side = np.sqrt((boxes[:, 2:] - boxes[:, :2] + 1.0).prod(axis=1))
    level = np.log2(side / min_side) + 0.5
    boxes = boxes[np.argsort(level * np.random.default_rng(_SEED).random(len(boxes)), kind="stable")]
    boxes = np.concatenate([_whole(height, width), boxes])
    kept = nms(boxes, -np.arange(len(boxes)), _SAME)
    return boxes[kept[:max_windows]]


def _whole(height: int, width: int) -> NDArray[np.float64]:
    return np.array([[1.0, 1.0, width, height]])


def _stretched(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    low, high = np.percentile(image.reshape(-1, 3), [1, 99], axis=0)
    scaled = (image - low) * (255.0 / np.maximum(high - low, 1.0))
    stretched: NDArray[np.uint8] = np.clip(scaled, 0.0, 255.0).astype(np.uint8)
    return stretched


def _as_image(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise ValueError(f"image is {image.dtype} of shape {image.shape}; give (height, width, 3), uint8, RGB")
    return image


def _check(max_windows: int | None, min_side: int) -> None:
    if max_windows is not None and max_windows < 1:
        raise ValueError(f"max_windows must be at least 1, got {max_windows}; the whole image is one")
    if min_side < 1:
        raise ValueError(f"min_side must be at least 1, got {min_side}")
