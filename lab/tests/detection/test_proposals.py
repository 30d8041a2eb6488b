"""Windows: the whole image first, inside the image, none twice, the same each time, and on the objects."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.detection.boxes import iou
from rankwise_lab.detection.proposals import SEARCHES, selective_search, sliding_windows, windows_of

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


def test_the_search_is_the_same_in_any_thread_and_order_of_calls() -> None:
    image, found = murky(), []

    def search() -> None:
        selective_search(image[::-1].copy())
        found.append(selective_search(image))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for boxes in found:
        assert np.array_equal(boxes, selective_search(image))


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


BAD = [
    *((windows_of, (np.zeros((5, 5, 3)), search), "float64") for search in SEARCHES),
    (windows_of, (murky(), "slow"), "search must be"),
    (selective_search, (murky(), "slow"), "mode must be"),
    (selective_search, (murky(), "fast", 0), "max_windows must be at least 1, got 0"),
    (sliding_windows, (10, 10, None, 0), "min_side must be at least 1, got 0"),
    (sliding_windows, (10, 0), "0 × 10 pixels"),
]


@pytest.mark.parametrize(("function", "given", "says"), BAD)
def test_bad_images_and_settings_are_refused(function: Any, given: tuple[Any, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        function(*given)
