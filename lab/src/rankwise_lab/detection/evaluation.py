"""Average precision of detections by the rules of PASCAL VOC, as in its VOCevaldet.

Detections of all images are taken by descending score. Each is compared with the object of its image that it overlaps
most (by IoU in pixels; of equals, the first). If the overlap is below the threshold, the detection is false. Otherwise
it is true if the object has not been found yet, and false if it has (a duplicate). If the object is difficult, the
detection is ignored. No second object is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, check_known, first_true, is_number
from rankwise_lab.detection.boxes import as_boxes, as_scores, iou

# The objects of an image: boxes (k, 4), and which of them are difficult (k,).
Truth = tuple[ArrayLike, ArrayLike]
Kind = Literal["area", "2007"]

_KINDS = ("area", "2007")
# MATLAB's 0:0.1:1, computed from both ends to the middle, to the last bit: its 0.3 is slightly more than 3/10.
_POINTS = np.concatenate([0.1 * np.arange(6), 1.0 - 0.1 * np.arange(5)[::-1]])


@dataclass(frozen=True)
class Detections:
    """
    Detections of one class in several images, in any order.

    Parameters
    ----------
    image : array-like of shape (m,)
        Index of the image of each detection.
    boxes : array-like of shape (m, 4)
        Boxes x1, y1, x2, y2 in pixels, counted from 1 with both ends inside.
    scores : array-like of shape (m,)
        Score of each detection.

    See Also
    --------
    detect : Finds the detections of a model.
    average_precision : Evaluates detections.

    Examples
    --------
    >>> from rankwise_lab.detection import Detections
    >>> found = Detections(image=[0, 1], boxes=[[1, 1, 10, 10], [5, 5, 20, 20]], scores=[0.9, 0.4])
    >>> found.scores
    [0.9, 0.4]
    """

    image: ArrayLike
    boxes: ArrayLike
    scores: ArrayLike


@dataclass(frozen=True, eq=False)
class VocAP:
    """
    Average precision of detections, and the curve it comes from.

    Parameters
    ----------
    value : float
        Average precision in [0, 1]. It is nan if there are no objects to find, and 0 if nothing is detected.
    precision : ndarray of shape (m,)
        Precision after each detection, by descending score. It is nan while all detections so far are ignored.
    recall : ndarray of shape (m,)
        Recall after each detection, by descending score. It is nan if there are no objects to find.
    scores : ndarray of shape (m,)
        Scores in descending order.
    n_positives : int
        Number of objects that are not difficult.
    true : ndarray of shape (m,)
        Whether each detection, as given, is true.
    ignored : ndarray of shape (m,)
        Whether each detection, as given, is ignored because its object is difficult. Detections that are neither true
        nor ignored are false.
    order : ndarray of shape (m,)
        Indices of the detections by descending score. Of equal scores, the first given comes first.

    See Also
    --------
    average_precision : Returns this result.

    Examples
    --------
    >>> from rankwise_lab.detection import Detections, average_precision
    >>> truth = [([[1, 1, 10, 10]], [False])]
    >>> result = average_precision(Detections([0, 0], [[1, 1, 10, 11], [31, 1, 40, 10]], [0.9, 0.4]), truth)
    >>> result.value, result.precision.tolist()
    (1.0, [1.0, 0.5])
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
    """
    Compute the average precision of the detections of one class, in all images at once.

    Precision p is averaged over recall r, interpolated as p̂(r), the largest p at recall r or more.

    Parameters
    ----------
    detections : Detections
        Boxes and scores, each with the index of its image in truth.
    truth : sequence of (boxes, difficult)
        For each image, the boxes (k, 4) of objects of the class, and whether each is difficult (k,).
    overlap : float, default 0.5
        Smallest IoU of a true detection with its object, in (0, 1].
    kind : {"area", "2007"}, default "area"
        How precision is averaged. "area" is ∫ p̂(r) dr, as in VOC 2010 and later. "2007" is the mean of p̂ at r = 0,
        0.1, …, 1, as in VOC 2007.

    Returns
    -------
    VocAP
        Average precision, with the precision-recall curve and the verdict on each detection.

    Raises
    ------
    ValueError
        If shapes do not agree, or an image index is not in truth.
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    evaluate : Detects objects with a model and evaluates the detections.
    rankwise.metrics.average_precision : Average precision of a ranking.

    Examples
    --------
    >>> from rankwise_lab.detection import Detections, average_precision
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
    number = first[image] + best  # of the object, among all
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
    """For each detection, the object of its image that it overlaps most, and whether the overlap suffices."""
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
    """Interpolated precision, averaged over recall, which never falls."""
    reached = np.maximum.accumulate(np.nan_to_num(precision)[::-1])[::-1]
    if kind == "2007":
        return float(np.append(reached, 0.0)[np.searchsorted(recall, _POINTS)].sum() / len(_POINTS))
    return float(np.diff(recall, prepend=0.0) @ reached)


def _check(overlap: float, kind: str) -> None:
    if not is_number(overlap):
        raise TypeError(f"overlap must be a number, got {type(overlap).__name__}")
    if not 0.0 < overlap <= 1.0:
        raise ValueError(f"overlap must be greater than 0 and at most 1, got {overlap}")
    check_known("kind", kind, _KINDS)


def _as_images(image: ArrayLike, n: int, n_images: int) -> NDArray[np.intp]:
    array = as_array(image, "detections.image")
    if array.shape != (n,):
        raise ValueError(f"detections.image has shape {array.shape} but there are {n} boxes; pass one image per box")
    if n and array.dtype.kind not in "iu":
        raise TypeError(f"detections.image must be integers, got dtype {array.dtype}; pass indices into truth")
    if (k := first_true((array < 0) | (array >= n_images))) is not None:
        raise ValueError(f"detections.image[{k}] is {array[k]}, but truth has {n_images} images; number them from 0")
    return array.astype(np.intp)


def _as_truth(
    truth: Sequence[Truth],
) -> tuple[list[tuple[NDArray[np.float64], NDArray[np.bool_]]], NDArray[np.intp]]:
    """The objects by image, and the number of objects in the images before each."""
    objects = []
    for k, (boxes, difficult) in enumerate(truth):
        there = as_boxes(boxes, f"the boxes of truth[{k}]")
        hard = as_array(difficult, f"difficult of truth[{k}]")
        if hard.shape != (len(there),):
            raise ValueError(
                f"truth[{k}] has {len(there)} boxes but difficult has shape {hard.shape}; pass one per box"
            )
        if len(there) and hard.dtype != np.bool_:
            raise TypeError(f"difficult of truth[{k}] must be boolean, got dtype {hard.dtype}")
        objects.append((there, hard.astype(np.bool_)))
    sizes = [len(there) for there, _ in objects]
    return objects, np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)
