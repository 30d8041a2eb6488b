"""Windows: the whole image first, inside the image, none twice, the same each time, and on the objects."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.detection.boxes import iou
from rankwise_lab.detection.proposals import SEARCHES, selective_search, windows_of

cv2 = pytest.importorskip("cv2")

SEED = 7
# Discs on a murky ground: (x, y, radius) from 0.
DISCS = ((16, 20, 8), (50, 14, 7), (62, 44, 12))
DISC_BOXES = np.array([[x - r + 1, y - r + 1, x + r + 1, y + r + 1] for x, y, r in DISCS], float)


def murky(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Discs little brighter than what is around them."""
    rng = np.random.default_rng(SEED)
    image = np.full((height, width, 3), (60.0, 90.0, 80.0)) + rng.normal(0.0, 1.0, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    for cx, cy, radius in DISCS:
        image[(x - cx) ** 2 + (y - cy) ** 2 <= radius**2] += 18.0
    return image.clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("search", SEARCHES)
def test_windows_are_the_whole_image_and_others_inside_it_on_objects_and_none_nearly_twice(search: str) -> None:
    image = murky()
    before = image.copy()
    boxes = windows_of(image, search)
    assert np.array_equal(image, before)
    assert boxes[0].tolist() == [1, 1, 80, 60]
    assert boxes[:, :2].min() >= 1
    assert (boxes[:, 2:] <= [80, 60]).all()
    assert (boxes == np.round(boxes)).all()
    assert (boxes[:, 2:] - boxes[:, :2] + 1).min() >= 12
    assert len(boxes) > 3
    overlap = iou(boxes, boxes)
    np.fill_diagonal(overlap, 0.0)
    assert overlap.max() <= 0.6
    assert (iou(DISC_BOXES, boxes).max(axis=1) >= 0.5).all()
    assert np.array_equal(windows_of(murky(), search, 4), boxes[:4])  # fewer windows are the first of more


def test_a_large_image_is_searched_small_and_its_windows_are_in_its_own_pixels() -> None:
    boxes = selective_search(cv2.resize(murky(), (640, 480), interpolation=cv2.INTER_NEAREST))
    assert boxes[0].tolist() == [1, 1, 640, 480]
    expected = np.hstack([(DISC_BOXES[:, :2] - 1) * 8 + 1, DISC_BOXES[:, 2:] * 8])
    assert (iou(expected, boxes).max(axis=1) >= 0.5).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (2, 2), (3, 40), (11, 11), (2, 2000)])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_tiny_or_thin_image_is_a_window_itself(shape: tuple[int, int], search: str) -> None:
    image = np.random.default_rng(SEED).integers(0, 256, (*shape, 3), dtype=np.uint8)
    assert windows_of(image, search).tolist() == [[1, 1, shape[1], shape[0]]]
