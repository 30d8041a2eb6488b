"""Boxes: overlaps by counting pixels, and suppression by its definition."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.detection.boxes import as_boxes, iou, nms

Boxes = NDArray[np.float64]
SIDE = 12


def random_boxes(rng: np.random.Generator, n: int) -> Boxes:
    corners = np.sort(rng.integers(1, SIDE + 1, (n, 2, 2)), axis=1)
    return corners.reshape(n, 4).astype(np.float64)


def pixels(boxes: Boxes) -> NDArray[np.bool_]:
    """Which of the pixels 1 … SIDE, 1 … SIDE are in each box."""
    x = np.arange(1, SIDE + 1)
    across = (boxes[:, 0, None] <= x) & (x <= boxes[:, 2, None])
    down = (boxes[:, 1, None] <= x) & (x <= boxes[:, 3, None])
    return (down[:, :, None] & across[:, None, :]).reshape(len(boxes), -1)


def suppressed_one_by_one(boxes: Boxes, scores: NDArray[np.float64], threshold: float) -> list[int]:
    """A box is kept unless it overlaps one that is kept before it."""
    kept: list[int] = []
    for k in sorted(range(len(boxes)), key=lambda k: (-scores[k], k)):
        if all(iou(boxes[[k]], boxes[[other]])[0, 0] <= threshold for other in kept):
            kept.append(k)
    return kept


def test_overlaps_are_counts_of_pixels_and_arguments_stay(rng: np.random.Generator) -> None:
    a, b = random_boxes(rng, 60), random_boxes(rng, 50)
    before = a.copy()
    inside_a, inside_b = pixels(a)[:, None], pixels(b)[None]
    expected = (inside_a & inside_b).sum(axis=2) / (inside_a | inside_b).sum(axis=2)
    assert (expected == 0.0).any()
    np.testing.assert_array_equal(iou(a, b), expected)
    np.testing.assert_array_equal(a, before)
    assert iou([[1, 1, 5, 5]], [[9, 9, 12, 12]])[0, 0] == 0.0  # apart both ways: two negative sides make no area


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_suppression_keeps_what_its_definition_keeps(rng: np.random.Generator, threshold: float) -> None:
    for n in (1, 2, 5, 70):
        boxes, scores = random_boxes(rng, n), rng.integers(0, 4, n).astype(np.float64)
        before = boxes.copy(), scores.copy()
        assert nms(boxes, scores, threshold).tolist() == suppressed_one_by_one(boxes, scores, threshold)
        np.testing.assert_array_equal(boxes, before[0])
        np.testing.assert_array_equal(scores, before[1])


@pytest.mark.parametrize(("threshold", "kept"), [(1 / 3, [0, 1]), (np.nextafter(1 / 3, 0), [0])])
def test_an_overlap_of_exactly_the_threshold_is_kept(threshold: float, kept: list[int]) -> None:
    assert nms([[1, 1, 10, 10], [6, 1, 15, 10]], [2, 1], threshold).tolist() == kept  # 50 pixels of 150


GOOD, TWO = [[1, 1, 5, 5], [2, 2, 6, 6]], [1.0, 2.0]
BAD = [
    (as_boxes, ([1, 2, 3, 4],), ValueError, r"shape \(4,\)"),
    (as_boxes, ([[5, 1, 4, 9]],), ValueError, r"boxes\[0\].*x2 < x1"),
    (as_boxes, ([[1, 1, 1e200, 9]],), ValueError, r"boxes\[0\].*not finite or too large"),
    (as_boxes, ([[True, True, True, True]],), TypeError, "real numbers"),
    (as_boxes, (None,), TypeError, "boxes must be an array"),
    (iou, (GOOD, [[3, 3, 2, 2]]), ValueError, r"b\[0\]"),
    (nms, (GOOD, [1.0]), ValueError, "2 boxes"),
    (nms, (GOOD, [1.0, np.nan]), ValueError, r"scores\[1\] is nan"),
    (nms, (GOOD, TWO, 1.5), ValueError, "between 0 and 1"),
    (nms, (GOOD, TWO, "0.3"), TypeError, "must be a number"),
]


@pytest.mark.parametrize(("function", "given", "error", "says"), BAD)
def test_bad_input_is_refused(function: object, given: tuple[object, ...], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        function(*given)  # type: ignore[operator]


def test_a_hundred_thousand_boxes_of_few_objects_need_no_matrix_of_pairs(rng: np.random.Generator) -> None:
    centres = rng.integers(0, 20, (100_000, 1)) * 200
    boxes = centres + np.array([1, 1, 150, 150]) + rng.integers(0, 10, (100_000, 4))
    assert len(nms(boxes, rng.normal(size=len(boxes)), 0.3)) == 20  # the matrix of all pairs would be 80 GB


def test_importing_the_package_imports_neither_torch_nor_opencv_nor_pillow() -> None:
    code = "import sys, rankwise_lab.detection as d; d.nms; print(*{'torch', 'cv2', 'PIL', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["numpy"]
