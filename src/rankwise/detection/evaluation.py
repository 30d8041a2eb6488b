"""Average precision of detections by the rules of PASCAL VOC, as its VOCevaldet has them.

Detections of all images are taken by falling score. One whose best truth in its image (by IoU in pixels, the first of
equals) is overlapped by at least the threshold is true if that truth is not yet found, false if it is (a duplicate),
and counts neither way if the truth is difficult; every other is false. A detection has no second choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.detection.boxes import as_boxes, as_scores, iou
from rankwise.inputs import as_array, check_known, first_true, is_number

# What is to be found in an image: boxes (k, 4), and which of them are difficult (k,).
Truth = tuple[ArrayLike, ArrayLike]
Kind = Literal["area", "2007"]

_KINDS = ("area", "2007")
# MATLAB's 0:0.1:1, from both ends to the middle, to the last bit: its 0.3 is a little more than 3/10.
_POINTS = np.concatenate([0.1 * np.arange(6), 1.0 - 0.1 * np.arange(5)[::-1]])


@dataclass(frozen=True)
class Detections:
    """Boxes (m, 4) of one class with scores (m,), each in the image (m,) of that index, in any order."""

    image: ArrayLike
    boxes: ArrayLike
    scores: ArrayLike


@dataclass(frozen=True, eq=False)
class VocAP:
    """Average precision, and what it comes from.

    value: in [0, 1]; nan if there is nothing to be found, 0 if nothing is detected. n_positives: truths that are not
    difficult. true, ignored: (m,), by detection as given; the others are false. order: (m,), detections by falling
    score, of equal scores the first given; and in this order scores, precision and recall, (m,). Precision is nan as
    long as all are ignored, recall if there is nothing to be found.
    """

    value: float
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    scores: NDArray[np.float64]
    n_positives: int
    true: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    order: NDArray[np.intp]


def average_precision(
    detections: Detections, truth: Sequence[Truth], *, overlap: float = 0.5, kind: Kind = "area"
) -> VocAP:
    """Average precision of the detections of one class, in all images at once.

    truth: for each image boxes (k, 4) of that class and whether they are difficult (k,). overlap: the least IoU of a
    find. kind: how precision p is averaged over recall r, interpolated as p̂(r) = max of p at recall r or more:
    "area" is ∫ p̂(r) dr, as from VOC 2010 on; "2007" is the mean of p̂ at r = 0, 0.1, …, 1, as in VOC 2007.

    >>> truth = [([[1, 1, 10, 10]], [False]), ([[1, 1, 10, 10], [21, 1, 30, 10]], [False, True])]
    >>> found = Detections([0, 0, 1, 1], [[1, 1, 10, 11], [2, 2, 10, 10], [21, 1, 30, 10], [1, 1, 9, 9]], [9, 8, 7, 6])
    >>> ap = average_precision(found, truth)
    >>> ap.value, ap.true, ap.ignored
    (0.8333..., array([ True, False, False,  True]), array([False, False,  True, False]))
    """
    _check(overlap, kind)
    boxes = as_boxes(detections.boxes, "detections.boxes")
    scores = as_scores(detections.scores, len(boxes))
    image = _as_images(detections.image, len(boxes), len(truth))
    objects, first = _as_truth(truth)
    best, found = _best_truth(image, boxes, objects, overlap)

    difficult = np.concatenate([hard for _, hard in objects]) if objects else np.empty(0, np.bool_)
    order = np.argsort(-scores, kind="stable")
    ignored, true = np.zeros(len(boxes), np.bool_), np.zeros(len(boxes), np.bool_)
    number = first[image] + best  # of the truth, among all
    ignored[found] = difficult[number[found]]
    by_score = order[(found & ~ignored)[order]]
    _, earliest = np.unique(number[by_score], return_index=True)
    true[by_score[earliest]] = True

    n_positives = int((~difficult).sum())
    hits = np.cumsum(true[order], dtype=np.float64)
    counted = np.cumsum(~ignored[order], dtype=np.float64)
    precision = np.divide(hits, counted, out=np.full(len(boxes), np.nan), where=counted > 0.0)
    recall = hits / n_positives if n_positives else np.full(len(boxes), np.nan)
    value = _averaged(precision, recall, kind) if n_positives else np.nan
    return VocAP(value, precision, recall, scores[order], n_positives, true, ignored, order)


def _best_truth(
    image: NDArray[np.intp],
    boxes: NDArray[np.float64],
    objects: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]],
    overlap: float,
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each detection the truth in its image that it overlaps most, and whether by enough."""
    best, found = np.zeros(len(boxes), np.intp), np.zeros(len(boxes), np.bool_)
    by_image = np.argsort(image, kind="stable")
    ends = np.cumsum(np.bincount(image, minlength=len(objects)))
    for (there, _), part in zip(objects, np.split(by_image, ends)[:-1], strict=True):
        if len(there) and len(part):
            overlaps = iou(boxes[part], there)
            best[part] = overlaps.argmax(axis=1)
            found[part] = overlaps.max(axis=1) >= overlap
    return best, found


def _averaged(precision: NDArray[np.float64], recall: NDArray[np.float64], kind: Kind) -> float:
    """Interpolated precision averaged over recall, which does not fall."""
    reached = np.maximum.accumulate(np.nan_to_num(precision)[::-1])[::-1]
    if kind == "2007":
        return float(np.append(reached, 0.0)[np.searchsorted(recall, _POINTS)].sum() / len(_POINTS))
    return float(np.diff(recall, prepend=0.0) @ reached)


def _check(overlap: float, kind: str) -> None:
    if not is_number(overlap):
        raise TypeError(f"overlap must be a number, got {type(overlap).__name__}")
    if not 0.0 < overlap <= 1.0:
        raise ValueError(f"overlap must be over 0 and at most 1, got {overlap}")
    check_known("kind", kind, _KINDS)


def _as_images(image: ArrayLike, n: int, n_images: int) -> NDArray[np.intp]:
    array = as_array(image, "detections.image")
    if array.shape != (n,):
        raise ValueError(f"detections.image has shape {array.shape} and there are {n} boxes; give one image a box")
    if n and array.dtype.kind not in "iu":
        raise TypeError(f"detections.image must be integers, got dtype {array.dtype}; give indices into truth")
    if (k := first_true((array < 0) | (array >= n_images))) is not None:
        raise ValueError(f"detections.image[{k}] is {array[k]}, and truth has {n_images} images; index them from 0")
    return array.astype(np.intp)


def _as_truth(
    truth: Sequence[Truth],
) -> tuple[list[tuple[NDArray[np.float64], NDArray[np.bool_]]], NDArray[np.intp]]:
    """The truths by image, and how many are in the images before each."""
    objects = []
    for k, (boxes, difficult) in enumerate(truth):
        there = as_boxes(boxes, f"the boxes of truth[{k}]")
        hard = as_array(difficult, f"difficult of truth[{k}]")
        if hard.shape != (len(there),):
            raise ValueError(f"truth[{k}] has {len(there)} boxes and difficult of shape {hard.shape}; give one a box")
        if len(there) and hard.dtype != np.bool_:
            raise TypeError(f"difficult of truth[{k}] must be boolean, got dtype {hard.dtype}")
        objects.append((there, hard.astype(np.bool_)))
    sizes = [len(there) for there, _ in objects]
    return objects, np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)
