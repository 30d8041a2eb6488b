"""Boxes (n, 4): x1, y1, x2, y2 in pixels, counted from 1 with both ends inside, as in PASCAL VOC."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, first_true, is_number

# No image is this large, and areas of smaller boxes are exact enough.
_LARGEST = 1e8


def iou(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """
    Compute the intersection over union |a ∩ b| / |a ∪ b| of every pair of boxes.

    Parameters
    ----------
    a : array-like of shape (n, 4)
        Boxes x1, y1, x2, y2 in pixels, counted from 1 with both ends inside.
    b : array-like of shape (m, 4)
        Boxes to compare with.

    Returns
    -------
    ndarray of shape (n, m)
        Overlap of each box of a with each box of b, from 0 to 1.

    See Also
    --------
    nms : Drops boxes that overlap a better one.

    Examples
    --------
    >>> from rankwise_lab.detection import iou
    >>> iou([[1, 1, 10, 10]], [[1, 1, 10, 10], [6, 1, 15, 10], [11, 1, 20, 10]])
    array([[1.        , 0.33333333, 0.        ]])
    """
    first, second = as_boxes(a, "a"), as_boxes(b, "b")
    return _iou(first[:, None, :], second[None, :, :], _area(first)[:, None] + _area(second))


def nms(boxes: ArrayLike, scores: ArrayLike, threshold: float = 0.3) -> NDArray[np.intp]:
    """
    Apply non-maximum suppression to the boxes of one class in one image.

    The best remaining box is kept, and boxes whose IoU with it exceeds threshold are dropped, until no box remains.
    This takes O(n · kept) time.

    Parameters
    ----------
    boxes : array-like of shape (n, 4)
        Boxes x1, y1, x2, y2 in pixels, counted from 1 with both ends inside.
    scores : array-like of shape (n,)
        Score of each box. Of equal scores, the first counts as better.
    threshold : float, default 0.3
        Largest IoU with a better box, from 0 to 1.

    Returns
    -------
    ndarray of shape (kept,)
        Indices of the boxes that are kept, best first.

    See Also
    --------
    detect : Scores the windows of images and applies this function.

    Examples
    --------
    >>> from rankwise_lab.detection import nms
    >>> nms([[1, 1, 10, 10], [2, 1, 11, 10], [31, 1, 40, 10]], [0.5, 0.9, 0.7])
    array([1, 2])
    """
    boxes = as_boxes(boxes)
    scores = as_scores(scores, len(boxes))
    threshold = as_part_of_one(threshold, "threshold")
    areas = _area(boxes)
    left = np.argsort(-scores, kind="stable")
    kept = []
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        overlap = _iou(boxes[best], boxes[left], areas[best] + areas[left])
        left = left[overlap <= threshold]
    return np.array(kept, dtype=np.intp)


def as_boxes(boxes: ArrayLike, name: str = "boxes") -> NDArray[np.float64]:
    """Boxes as a float64 array (n, 4), each with x1 ≤ x2 and y1 ≤ y2; an empty list becomes (0, 4)."""
    array = as_array(boxes, name)
    if array.shape == (0,):
        return np.empty((0, 4))
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}; pass x1, y1, x2, y2 in pixels")
    if array.ndim != 2 or array.shape[1] != 4:
        raise ValueError(f"{name} has shape {array.shape}; pass (n, 4), with x1, y1, x2, y2 in each row")
    array = array.astype(np.float64, copy=False)
    if (k := first_true(~(np.abs(array) <= _LARGEST).all(axis=1))) is not None:
        raise ValueError(f"{name}[{k}] is {array[k].tolist()}, which is not finite or too large; remove it")
    if (k := first_true((array[:, 2] < array[:, 0]) | (array[:, 3] < array[:, 1]))) is not None:
        raise ValueError(
            f"{name}[{k}] is {array[k].tolist()}, with x2 < x1 or y2 < y1; pass x1, y1, x2, y2, not a width"
        )
    return array


def as_scores(scores: ArrayLike, n: int) -> NDArray[np.float64]:
    """Finite scores as a float64 array, one for each of n boxes."""
    array = as_array(scores, "scores")
    if array.shape != (n,):
        raise ValueError(f"scores has shape {array.shape} but there are {n} boxes; pass one score per box")
    if n and array.dtype.kind not in "fiu":
        raise TypeError(f"scores must be real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64, copy=False)
    if (k := first_true(~np.isfinite(array))) is not None:
        raise ValueError(f"scores[{k}] is {array[k]}, which is not finite; remove its box")
    return array


def as_part_of_one(value: float, name: str) -> float:
    """A number from 0 to 1."""
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
    return float(value)


def _area(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = boxes[:, 2:] - boxes[:, :2] + 1.0
    return np.asarray(sides[:, 0] * sides[:, 1])


def _iou(a: NDArray[np.float64], b: NDArray[np.float64], both: NDArray[np.float64]) -> NDArray[np.float64]:
    """IoU of boxes, broadcast against each other; both: the sum of their areas."""
    width = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1.0
    height = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1.0
    shared = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    return np.asarray(shared / (both - shared))
