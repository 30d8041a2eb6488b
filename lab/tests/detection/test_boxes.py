"""Boxes: areas and overlaps by counting pixels, and suppression by its definition."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab import detection
from rankwise_lab.detection.boxes import area, iou, nms

Boxes = NDArray[np.float64]
SIDE = 12


def random_boxes(rng: np.random.Generator, n: int, side: int = SIDE) -> Boxes:
    corners = np.sort(rng.integers(1, side + 1, (n, 2, 2)), axis=1)
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


def test_an_area_is_the_number_of_pixels(rng: np.random.Generator) -> None:
    boxes = random_boxes(rng, 200)
    np.testing.assert_array_equal(area(boxes), pixels(boxes).sum(axis=1))


def test_an_overlap_is_the_share_of_common_pixels(rng: np.random.Generator) -> None:
    a, b = random_boxes(rng, 60), random_boxes(rng, 50)
    inside_a, inside_b = pixels(a)[:, None], pixels(b)[None]
    expected = (inside_a & inside_b).sum(axis=2) / (inside_a | inside_b).sum(axis=2)
    assert (expected == 0.0).any()
    assert iou(a, b).shape == (60, 50)
    np.testing.assert_array_equal(iou(a, b), expected)


def test_neighbours_that_share_no_pixel_do_not_overlap() -> None:
    assert iou([[1, 1, 5, 5]], [[6, 1, 9, 5]])[0, 0] == 0.0
    assert iou([[1, 1, 5, 5]], [[5, 5, 9, 9]])[0, 0] == 1 / (25 + 25 - 1)
    assert iou([[1, 1, 5, 5]], [[9, 9, 12, 12]])[0, 0] == 0.0  # apart both ways: two negative sides make no area


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_suppression_keeps_what_its_definition_keeps(rng: np.random.Generator, threshold: float) -> None:
    for n in (1, 2, 5, 70):
        boxes = random_boxes(rng, n)
        scores = rng.integers(0, 4, n).astype(np.float64)
        assert nms(boxes, scores, threshold).tolist() == suppressed_one_by_one(boxes, scores, threshold)


def test_an_overlap_of_exactly_the_threshold_is_kept() -> None:
    boxes = [[1, 1, 10, 10], [6, 1, 15, 10]]  # 50 pixels of 150
    assert nms(boxes, [2, 1], 1 / 3).tolist() == [0, 1]
    assert nms(boxes, [2, 1], np.nextafter(1 / 3, 0)).tolist() == [0]


def test_of_equal_scores_the_first_is_kept() -> None:
    assert nms([[1, 1, 9, 9]] * 3, [0.5, 0.5, 0.5]).tolist() == [0]
    assert nms([[1, 1, 9, 9], [20, 1, 29, 9], [1, 1, 9, 9]], [0.5, 0.5, 0.5]).tolist() == [0, 1]


def test_no_boxes_are_fine() -> None:
    for nothing in ([], np.empty((0, 4))):
        assert area(nothing).shape == (0,)
        assert iou(nothing, [[1, 1, 2, 2]]).shape == (0, 1)
        assert nms(nothing, []).shape == (0,)
        assert nms(nothing, []).dtype == np.intp


def test_arguments_are_left_as_they_are(rng: np.random.Generator) -> None:
    boxes, scores = random_boxes(rng, 30), rng.normal(size=30)
    before = boxes.copy(), scores.copy()
    nms(boxes, scores)
    iou(boxes, boxes)
    np.testing.assert_array_equal(boxes, before[0])
    np.testing.assert_array_equal(scores, before[1])


def test_float32_boxes_are_compared_in_float64() -> None:
    boxes = np.array([[1, 1, 4000, 4000], [1, 1, 4000, 4001]], np.float32)  # 4000 · 4001 is beyond 24 bits, nearly
    assert area(boxes).dtype == np.float64
    assert iou(boxes[:1], boxes[1:])[0, 0] == 4000 / 4001


@pytest.mark.parametrize(
    ("boxes", "error", "says"),
    [
        ([1, 2, 3, 4], ValueError, r"shape \(4,\)"),
        ([[1, 2, 3]], ValueError, r"shape \(1, 3\)"),
        ([[1, 2, 3, 4], [1, 2]], ValueError, "boxes"),
        ([[5, 1, 4, 9]], ValueError, r"boxes\[0\].*x2 < x1"),
        ([[1, 1, 4, 9], [1, 9, 4, 8]], ValueError, r"boxes\[1\].*y2 < y1"),
        ([[1, 1, np.nan, 9]], ValueError, r"boxes\[0\].*not finite"),
        ([[1, 1, np.inf, 9]], ValueError, r"boxes\[0\].*not finite"),
        ([[1, 1, 1e200, 9]], ValueError, r"boxes\[0\].*not finite or too large"),
        ([["a", "b", "c", "d"]], TypeError, "real numbers"),
        ([[1j, 2, 3, 4]], TypeError, "real numbers"),
        ([[True, True, True, True]], TypeError, "real numbers"),
        (None, TypeError, "boxes must be an array"),
        ("1 2 3 4", TypeError, "boxes must be an array"),
    ],
)
def test_bad_boxes_are_refused(boxes: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        area(boxes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "threshold", "error", "says"),
    [
        ([1.0], 0.3, ValueError, "2 boxes"),
        ([[1.0], [2.0]], 0.3, ValueError, r"shape \(2, 1\)"),
        ([1.0, np.nan], 0.3, ValueError, r"scores\[1\] is nan"),
        ([np.inf, 1.0], 0.3, ValueError, r"scores\[0\] is inf"),
        (["a", "b"], 0.3, TypeError, "real numbers"),
        ([1.0, 2.0], 1.5, ValueError, "between 0 and 1"),
        ([1.0, 2.0], -0.1, ValueError, "between 0 and 1"),
        ([1.0, 2.0], float("nan"), ValueError, "between 0 and 1"),
        ([1.0, 2.0], "0.3", TypeError, "must be a number"),
        ([1.0, 2.0], True, TypeError, "must be a number"),
    ],
)
def test_bad_scores_and_thresholds_are_refused(
    scores: object, threshold: object, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        nms([[1, 1, 5, 5], [2, 2, 6, 6]], scores, threshold)  # type: ignore[arg-type]


def test_the_boxes_of_the_two_arguments_are_told_apart() -> None:
    with pytest.raises(ValueError, match=r"b\[0\]"):
        iou([[1, 1, 2, 2]], [[3, 3, 2, 2]])


def test_a_hundred_thousand_boxes_of_few_objects_need_no_matrix_of_pairs(rng: np.random.Generator) -> None:
    centres = rng.integers(0, 20, (100_000, 1)) * 200
    boxes = centres + np.array([1, 1, 150, 150]) + rng.integers(0, 10, (100_000, 4))
    assert len(nms(boxes, rng.normal(size=len(boxes)), 0.3)) == 20  # the matrix of all pairs would be 80 GB


def test_importing_the_package_imports_neither_torch_nor_opencv_nor_pillow() -> None:
    code = "import sys, rankwise_lab.detection as d; d.nms; print(*{'torch', 'cv2', 'PIL', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["numpy"]


def test_what_is_imported_late_is_what_its_module_has() -> None:
    assert detection.FeatureStore is import_module("rankwise_lab.detection.store").FeatureStore
    assert detection.sliding_windows is import_module("rankwise_lab.detection.proposals").sliding_windows
    assert detection.selective_search is import_module("rankwise_lab.detection.proposals").selective_search
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = detection.nothing


def test_every_public_name_is_there() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    for name in detection.__all__:
        assert getattr(detection, name).__module__.startswith("rankwise_lab.detection."), name
