"""Pictures: what is drawn is where it should be and can be seen; what is not drawn on stays as it was."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.detection.pictures import draw, encode

pillow = pytest.importorskip("PIL.Image")

WHITE, INK = (255, 255, 255), (22, 24, 26)
GREEN = (20, 90, 60)
ORANGE, BLUE = (230, 159, 0), (86, 180, 233)
BOX = [[101, 201, 300, 400]]


def plain(width: int = 960, height: int = 540) -> NDArray[np.uint8]:
    return np.full((height, width, 3), GREEN, np.uint8)


def where(picture: Any, colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    return (np.asarray(picture) == np.array(colour)).all(axis=2)


def extent(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """The first and last column and row: x1, y1, x2, y2 from 0."""
    x, y = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(x[0]), int(y[0]), int(x[-1]), int(y[-1])


@pytest.mark.parametrize(("shape", "box"), [((960, 540), BOX), ((96, 54), [[11, 21, 30, 40]])])
def test_a_frame_with_a_dark_rim_is_around_the_box(shape: tuple[int, int], box: list[list[int]]) -> None:
    picture = draw(plain(*shape), box, [0.5])
    assert picture.size == (960, 540)
    frame = where(picture, ORANGE)
    frame[:198] = False  # the tag is above
    assert extent(frame) == (99, 199, 300, 400)  # three pixels thick: one outside the box, its edge, one inside
    assert frame[200, 100:300].all()
    assert frame[200:400, 299].all()
    assert where(picture, INK)[401, 110:290].all()
    assert where(picture, GREEN)[402, 110:290].all()
    assert where(picture, GREEN)[205:395, 105:295].all()


def test_the_best_is_on_top_whatever_the_order() -> None:
    boxes, names = [[101, 101, 300, 300], [201, 201, 400, 400]], ["a", "b"]
    for scores, colour in (([2.0, 1.0], ORANGE), ([1.0, 2.0], BLUE)):
        picture = draw(plain(), boxes, scores, names)
        assert where(picture, colour)[299, 200]  # where the frames cross
        assert encode(draw(plain(), boxes[::-1], scores[::-1], names[::-1])) == encode(picture)


def test_truth_is_thin_white_and_dashed_and_seen_on_the_frame_of_a_detection() -> None:
    white = where(draw(plain(), [], [], truth=BOX), WHITE)
    assert extent(white) == (99, 199, 299, 399)  # two pixels at this size
    assert 0.4 < white[200, 100:300].mean() < 0.7
    assert white[200, [100, 299]].all()
    assert not white[205:395, 105:295].any()
    both = draw(plain(), BOX, [1.0], truth=BOX)
    assert where(both, WHITE)[399, 100:300].any()
    assert where(both, ORANGE)[399, 100:300].any()


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_files_hold_no_metadata(kind: Any) -> None:
    image = pillow.fromarray(plain())
    image.info |= {"icc_profile": b"of some camera", "exif": b"Exif\x00\x00of some place"}
    again = pillow.open(io.BytesIO(encode(draw(image, [], []), kind)))
    assert not {"icc_profile", "exif"} & set(again.info)
    assert (again.format, again.size) == (kind.upper(), (960, 540))
