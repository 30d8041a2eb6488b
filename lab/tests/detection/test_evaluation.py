"""VOC's average precision: against another package's values, and cases by hand."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from rankwise_lab.detection.evaluation import Detections, Truth, VocAP, average_precision

TRUSTED = Path(__file__).parent / "voc_ap.json"
ATOL = 1e-12
KINDS: tuple[Literal["area", "2007"], ...] = ("area", "2007")

Box = tuple[float, float, float, float]


@dataclass
class Scene:
    """Images with objects of up to three classes, and detections with distinct scores."""

    overlap: float
    n_images: int
    truth: list[tuple[int, int, Box, bool]]  # image, class, box, difficult
    found: list[tuple[int, int, Box, float]]  # image, class, box, score

    def of(self, label: int) -> tuple[Detections, list[Truth]]:
        found = [(image, box, score) for image, other, box, score in self.found if other == label]
        truth: list[Truth] = []
        for k in range(self.n_images):
            there = [(box, hard) for image, other, box, hard in self.truth if (image, other) == (k, label)]
            truth.append(([box for box, _ in there], [hard for _, hard in there]))
        return Detections(*([row[k] for row in found] for k in range(3))), truth


def scene(seed: int) -> Scene:
    """A scene by its seed; of Python's generator only random() is used, which never changes."""
    draw = random.Random(seed).random

    def below(n: int) -> int:
        return int(n * draw())

    def box(width: int, height: int) -> Box:
        x, y = below(100 - width) + 1, below(80 - height) + 1
        return (float(x), float(y), float(x + width), float(y + height))

    def moved(old: Box, by: int) -> Box:
        x1, y1, x2, y2 = (side + below(2 * by + 1) - by for side in old)
        return (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    made = Scene((0.5, 0.5, 0.3, 0.7)[below(4)], 1 + below(8), [], [])
    hard, crowd = (0.0, 0.2, 0.5)[below(3)], 1 + below(6)
    for image in range(made.n_images):
        for _ in range(below(crowd + 1)):
            label = below(2) if draw() < 0.9 else 2
            there = box(5 + below(40), 5 + below(30))
            made.truth.append((image, label, there, draw() < hard))
            if draw() < 0.25:  # another beside it, so that a detection overlaps two
                made.truth.append((image, label, moved(there, 6), draw() < hard))
            for _ in range(below(4)):
                made.found.append((image, label, moved(there, 1 + below(8)), draw() + 0.3))
        for _ in range(below(4)):
            made.found.append((image, below(3), box(5 + below(40), 5 + below(30)), draw()))
    assert len({score for *_, score in made.found}) == len(made.found)
    return made


def value(scene: Scene, label: int, kind: Literal["area", "2007"]) -> VocAP:
    return average_precision(*scene.of(label), overlap=scene.overlap, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_another_package(kind: Literal["area", "2007"]) -> None:
    compared = nothing = 0
    for row in json.loads(TRUSTED.read_text(encoding="utf-8"))["scenes"]:
        for label, expected in enumerate(row[kind]):
            ap = value(scene(row["seed"]), label, kind)
            if expected is None:
                assert math.isnan(ap.value)
                nothing += 1
            elif kind == "area" or ap.n_positives % 5:  # else its 0.6 and 0.7 are not MATLAB's, see below
                assert ap.value == pytest.approx(expected, abs=ATOL), (row["seed"], label)
                compared += 1
    assert compared >= 60
    assert nothing >= 5


A, B, C, FAR = [1, 1, 10, 10], [21, 1, 30, 10], [41, 1, 50, 10], [71, 71, 80, 80]
ONE: list[Truth] = [([A], [False])]


def detected(boxes: list[list[int]], scores: list[float] | None = None) -> Detections:
    """Detections in image 0, by falling score."""
    return Detections([0] * len(boxes), boxes, scores or [-float(k) for k in range(len(boxes))])


@pytest.mark.parametrize(
    ("n_positives", "n_found", "points"),
    [(10, 3, 3), (10, 4, 5), (10, 6, 7), (10, 7, 8), (5, 3, 7), (10, 8, 9), (10, 9, 10), (10, 10, 11), (10, 1, 2)],
)
def test_eleven_points_are_those_of_matlab(n_positives: int, n_found: int, points: int) -> None:
    """Its 0:0.1:1 has 3·0.1 > 3/10, which a recall of 3/10 does not reach, but 0.6 and 0.7 as they are."""
    boxes = [[20 * k + 1, 1, 20 * k + 10, 10] for k in range(n_positives)]
    truth: list[Truth] = [(boxes, [False] * n_positives)]
    ap = average_precision(detected(boxes[:n_found]), truth, kind="2007")
    assert ap.value == pytest.approx(points / 11, abs=ATOL)
    assert average_precision(detected(boxes[:n_found]), truth).value == pytest.approx(n_found / n_positives, abs=ATOL)


def test_the_curve_is_that_of_the_counts() -> None:
    truth: list[Truth] = [([A, B, C], [False, False, True])]
    found = detected([C, A, FAR, A, C, B])  # ignored, true, false, a duplicate, ignored, true
    ap = average_precision(found, truth)
    assert ap.n_positives == 2
    assert ap.true.tolist() == [False, True, False, False, False, True]
    assert ap.ignored.tolist() == [True, False, False, False, True, False]
    np.testing.assert_array_equal(ap.precision, [np.nan, 1, 1 / 2, 1 / 3, 1 / 3, 2 / 4])
    np.testing.assert_array_equal(ap.recall, [0, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 1])
    assert ap.value == 1 / 2 * 1 + 1 / 2 * 2 / 4
    assert average_precision(found, truth, kind="2007").value == pytest.approx((6 * 1 + 5 * 2 / 4) / 11, abs=ATOL)


@pytest.mark.parametrize(
    ("box", "overlap", "value"),
    [
        ([1, 1, 10, 5], 0.5, 1.0),  # an overlap of exactly the threshold is a find
        ([1, 1, 10, 5], math.nextafter(0.5, 1), 0.0),
        (A, 1.0, 1.0),
        ([11, 1, 20, 10], 1e-9, 0.0),  # a touch is none
        ([10, 10, 20, 20], 1e-9, 1.0),
    ],
)
def test_an_overlap_is_a_find_from_the_threshold_on(box: list[int], overlap: float, value: float) -> None:
    assert average_precision(detected([box]), ONE, overlap=overlap).value == value


@pytest.mark.parametrize("kind", KINDS)
def test_edges_of_the_definition(kind: Literal["area", "2007"]) -> None:
    for nothing in ((detected([]), []), (detected([A]), [([], [])]), (detected([A, B]), [([A], [True])])):
        assert math.isnan(average_precision(*nothing, kind=kind).value)
    assert average_precision(detected([]), ONE, kind=kind).value == 0.0
    only_hard = average_precision(detected([A]), [([A, B], [True, False])], kind=kind)
    assert only_hard.value == 0.0  # MATLAB's is nan here, the largest of nothing but nan
    assert np.isnan(only_hard.precision).all()
    nothing_there = average_precision(detected([FAR]), [([], [])], kind=kind)
    assert np.isnan(nothing_there.recall).all()
    assert nothing_there.precision.tolist() == [0.0]


BAD: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    (Detections([0, 0], [A], [1]), ONE, {}, ValueError, r"detections\.image has shape \(2,\) but there are 1"),
    (Detections([1], [A], [1]), ONE, {}, ValueError, r"detections\.image\[0\] is 1, but truth has 1 images"),
    (Detections([0], [A], [np.nan]), ONE, {}, ValueError, r"scores\[0\] is nan"),
    (detected([A]), [*ONE, ([[9, 1, 2, 3]], [False])], {}, ValueError, r"boxes of truth\[1\]\[0\]"),
    *((detected([A]), ONE, {"overlap": bad}, ValueError, "at most 1, got") for bad in (0.0, 1.1, math.nan)),
    (detected([A]), ONE, {"kind": "2012"}, ValueError, "unknown kind='2012'; use one of 'area', '2007'"),
]


@pytest.mark.parametrize(("detections", "truth", "options", "error", "says"), BAD)
def test_bad_input_is_refused(
    detections: Any, truth: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        average_precision(detections, truth, **options)
