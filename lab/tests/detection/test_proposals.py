"""Windows: the whole image first, inside the image, none twice, the same each time, and on the objects."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.detection.boxes import iou
from rankwise_lab.detection.proposals import SEARCHES, selective_search, sliding_windows, windows_of

cv2 = pytest.importorskip("cv2")

SEED = 7
# Discs on a murky ground: (x, y, radius) from 0.
DISCS = ((16, 20, 8), (50, 14, 7), (62, 44, 12))


def murky(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Discs little brighter than what is around them."""
    rng = np.random.default_rng(SEED)
    image = np.full((height, width, 3), (60.0, 90.0, 80.0)) + rng.normal(0.0, 1.0, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    for cx, cy, radius in DISCS:
        image[(x - cx) ** 2 + (y - cy) ** 2 <= radius**2] += 18.0
    return image.clip(0, 255).astype(np.uint8)


@cache
def found_by(search: str) -> NDArray[np.float64]:
    return windows_of(murky(), search)


DISC_BOXES = np.array([[x - r + 1, y - r + 1, x + r + 1, y + r + 1] for x, y, r in DISCS], float)


@pytest.mark.parametrize("search", SEARCHES)
def test_the_whole_image_comes_first_and_all_windows_are_inside_it(search: str) -> None:
    boxes = found_by(search)
    assert boxes[0].tolist() == [1, 1, 80, 60]
    assert boxes[:, :2].min() >= 1
    assert boxes[:, 2].max() <= 80
    assert boxes[:, 3].max() <= 60
    assert (boxes == np.round(boxes)).all()
    assert (boxes[:, 2:] - boxes[:, :2] + 1).min() >= 12


@pytest.mark.parametrize("search", SEARCHES)
def test_no_window_is_nearly_another(search: str) -> None:
    boxes = found_by(search)
    assert len(boxes) > 3
    overlap = iou(boxes, boxes)
    np.fill_diagonal(overlap, 0.0)
    assert overlap.max() <= 0.6


@pytest.mark.parametrize("search", SEARCHES)
def test_objects_of_little_contrast_are_found(search: str) -> None:
    assert (iou(DISC_BOXES, found_by(search)).max(axis=1) >= 0.5).all()


@pytest.mark.parametrize("search", SEARCHES)
def test_fewer_windows_are_the_first_of_more(search: str) -> None:
    assert np.array_equal(windows_of(murky(), search, 4), found_by(search)[:4])


def test_the_search_is_the_same_in_any_thread_and_order_of_calls() -> None:
    image = murky()
    expected = found_by("fast")
    found: list[NDArray[np.float64]] = []

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
        assert np.array_equal(boxes, expected)


def test_the_search_leaves_the_image_as_it_is() -> None:
    image = murky()
    before = image.copy()
    selective_search(image)
    assert np.array_equal(image, before)


def test_a_large_image_is_searched_small_and_its_windows_are_in_its_own_pixels() -> None:
    large = cv2.resize(murky(), (640, 480), interpolation=cv2.INTER_NEAREST)
    boxes = selective_search(large)
    assert boxes[0].tolist() == [1, 1, 640, 480]
    expected = np.hstack([(DISC_BOXES[:, :2] - 1) * 8 + 1, DISC_BOXES[:, 2:] * 8])
    assert (iou(expected, boxes).max(axis=1) >= 0.5).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (2, 2), (3, 40), (11, 11), (2, 2000)])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_tiny_or_thin_image_is_a_window_itself(shape: tuple[int, int], search: str) -> None:
    image = np.random.default_rng(SEED).integers(0, 256, (*shape, 3), dtype=np.uint8)
    boxes = windows_of(image, search)
    assert boxes.tolist() == [[1, 1, shape[1], shape[0]]]


@pytest.mark.parametrize("value", [0, 128, 255])
def test_an_image_of_one_colour_has_windows(value: int) -> None:
    boxes = selective_search(np.full((60, 80, 3), value, np.uint8))
    assert boxes[0].tolist() == [1, 1, 80, 60]


def test_min_side_is_kept_to() -> None:
    sides = {side: selective_search(murky(), min_side=side) for side in (12, 17, 30)}
    for side, boxes in sides.items():
        assert (boxes[1:, 2:] - boxes[1:, :2] + 1).min() >= side
    assert len(sides[12]) > len(sides[17]) > len(sides[30])


def test_sliding_windows_cover_every_place_at_every_size() -> None:
    boxes = sliding_windows(60, 80, min_side=10)
    for side in (14, 24, 40, 56):
        for x in range(1, 80 - side, 7):
            for y in range(1, 60 - side, 7):
                assert iou([[x, y, x + side - 1, y + side - 1]], boxes).max() > 0.35, (side, x, y)


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (np.zeros((5, 5), np.uint8), "shape \\(5, 5\\)"),
        (np.zeros((5, 5, 4), np.uint8), "\\(5, 5, 4\\)"),
        (np.zeros((5, 5, 3)), "float64"),
        (np.zeros((0, 5, 3), np.uint8), "\\(0, 5, 3\\)"),
    ],
)
@pytest.mark.parametrize("search", SEARCHES)
def test_what_is_no_image_is_refused(image: NDArray[np.uint8], problem: str, search: str) -> None:
    with pytest.raises(ValueError, match=problem):
        windows_of(image, search)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="mode must be"):
        selective_search(murky(), "slow")
    with pytest.raises(ValueError, match="max_windows must be at least 1, got 0"):
        selective_search(murky(), max_windows=0)
    with pytest.raises(ValueError, match="min_side must be at least 1, got 0"):
        sliding_windows(10, 10, min_side=0)
    with pytest.raises(ValueError, match="0 × 10 pixels"):
        sliding_windows(10, 0)
    with pytest.raises(ValueError, match="search must be"):
        windows_of(murky(), "slow")
