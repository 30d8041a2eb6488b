"""Buckets: a map from score to bucket that never falls as scores rise, for one chunk of scores or for one.

    linear   ⌊(s − low)·rate⌋, in the scores' own precision
    keyed    (order(s) − key) >> shift, order(s) being half the bits of s as an integer that orders like the scores:
             it keeps magnitudes apart
    folded   the same of s − low below `middle`, and of high − s, mirrored, from there on: it keeps apart what crowds at
             either end, as saturated sigmoids do; two more cells at an end hold what is beyond it, and what is nearer
             to it than the others

All are clipped to cells 0..last. A cell is a bucket, or, where `pivot` has entries, three: the scores below the cell's
pivot, equal to it, above it, so that a frequent score has a bucket of its own.

All that the engine relies on is that the map never falls (rounding never reverses an order, and nothing else happens
here) and that everybody asks the same map: a score s lies in bucket b or above exactly if place(s) ≥ b. No edge is ever
computed by an inverse; docs/theory.md has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.kernels.compiled import inline, part
from rankwise.kernels.sorting import HALF, number_of, order_of

# Scores worked on at a time: with their buckets they stay in the first-level cache.
CHUNK = 2048
# Kinds of map.
LINEAR, KEYED, FOLDED = np.int64(0), np.int64(1), np.int64(2)
# Cells at either end of a folded map before the cell of `key`.
NEARER = np.int64(2)
# In the order of all float64 numbers: where infinity is, how far two float32 numbers are apart, a large step.
_INFINITE = np.int64(0x7FF0_0000_0000_0000)
_SINGLE = np.int64(1 << 29)
_LARGEST_STEP = np.int64(1 << 61)


class BucketMap(NamedTuple):
    """Parameters of the map; low, rate, middle and high are of the scores' type."""

    kind: int
    low: np.floating
    rate: np.floating
    middle: np.floating
    high: np.floating
    key: int
    shift: int
    last: int


@inline
def linear_cell(score, low, rate, last):
    """The cell under a linear map; 0 for NaN."""
    t = (score - low) * rate
    zero = last - last
    t = t if t > zero else zero
    return np.int32(t if t < last else last)


@inline
def keyed_cell(score, key, shift, last):
    """The cell under a keyed map; an end for NaN."""
    t = ((order_of(score) >> HALF) - key) >> shift
    return np.int32(min(max(t, np.int64(0)), last))


@inline
def folded_cell(score, low, middle, high, key, shift, last):
    """The cell under a folded map; an end for NaN. last is odd: as many cells for either end."""
    is_low = score < middle
    distance = np.float64(score) - np.float64(low) if is_low else np.float64(high) - np.float64(score)
    t = ((order_of(distance) >> HALF) - key) >> shift
    t = min(max(t, np.int64(-1)), (last >> HALF) - NEARER) + np.int64(1) + np.int64(distance >= 0.0)
    return np.int32(t if is_low else last - t)


@part
def cells_of(scores, buckets, last, cells):
    """The cell of each of a chunk of scores; `last` is buckets.last in the scores' type."""
    kind, low, rate, middle, high, key, shift, end = buckets
    if kind == LINEAR:
        for k in range(scores.shape[0]):
            cells[k] = linear_cell(scores[k], low, rate, last)
    elif kind == KEYED:
        for k in range(scores.shape[0]):
            cells[k] = keyed_cell(scores[k], key, shift, end)
    else:
        for k in range(scores.shape[0]):
            cells[k] = folded_cell(scores[k], low, middle, high, key, shift, end)


@inline
def third(cell, score, pivot):
    """The bucket of a score in a cell with a pivot."""
    return np.uint32(3) * cell + np.uint32(score >= pivot) + np.uint32(score > pivot)


@inline
def place(score, buckets, pivot):
    """The bucket of one number, in the scores' type."""
    s, last = pivot.dtype.type(score), pivot.dtype.type(buckets.last)
    if buckets.kind == LINEAR:
        b = np.int64(linear_cell(s, buckets.low, buckets.rate, last))
    elif buckets.kind == KEYED:
        b = np.int64(keyed_cell(s, buckets.key, buckets.shift, buckets.last))
    else:
        low, middle, high = buckets.low, buckets.middle, buckets.high
        b = np.int64(folded_cell(s, low, middle, high, buckets.key, buckets.shift, buckets.last))
    if pivot.shape[0] > 0:
        b = np.int64(third(np.uint32(b), s, pivot[np.uint64(b)]))
    return b


@part
def edge(buckets, pivot, b):
    """The least number of the scores' type that lies in bucket b ≥ 1 or above, found by asking the map.

    From where an inverse would have it by steps that double, then by halving, over the order of all float64 numbers; a
    unit there is the difference of two neighbours of the scores' type.
    """
    unit = unit_of(pivot)
    cell = b // 3 if pivot.shape[0] > 0 else b
    if buckets.kind == LINEAR:
        guess = order_of(np.float64(buckets.low) + cell / np.float64(buckets.rate))
    elif buckets.kind == KEYED:
        guess = (buckets.key + (cell << buckets.shift)) << np.int64(1)
    else:
        guess = order_of(folded_edge(cell, buckets))
    high = low = min(max(guess, -_INFINITE), _INFINITE) // unit * unit
    step = unit
    if reaches(low, b, buckets, pivot):
        while low > -_INFINITE and reaches(low, b, buckets, pivot):
            high = low
            low = low - step if low > step - _INFINITE else -_INFINITE
            step = min(2 * step, _LARGEST_STEP)
    else:
        while high < _INFINITE and not reaches(high, b, buckets, pivot):
            low = high
            high = high + step if high < _INFINITE - step else _INFINITE
            step = min(2 * step, _LARGEST_STEP)
    while high - unit > low:
        middle = ((low >> np.int64(1)) + (high >> np.int64(1))) // unit * unit
        middle = max(middle, low + unit)
        if reaches(middle, b, buckets, pivot):
            high = middle
        else:
            low = middle
    return np.float64(pivot.dtype.type(number_of(high)))


@inline
def unit_of(pivot):
    """How far two neighbours of the scores' type are apart in the order of all float64 numbers."""
    return np.int64(1) if np.float64(pivot.dtype.type(1.0 / 3.0)) == 1.0 / 3.0 else _SINGLE


@inline
def folded_edge(cell, buckets):
    """About where a cell of a folded map begins."""
    is_low = cell <= buckets.last >> np.int64(1)
    from_end = (cell if is_low else buckets.last - cell + np.int64(1)) - NEARER
    distance = number_of((buckets.key + (from_end << buckets.shift)) << np.int64(1)) if from_end >= 0 else 0.0
    return np.float64(buckets.low) + distance if is_low else np.float64(buckets.high) - distance


@inline
def stands_alone(score, buckets, pivot):
    """Whether no other number of the scores' type can lie in the bucket of this one; False if in doubt."""
    order, unit = order_of(score), unit_of(pivot)
    b = place(score, buckets, pivot)
    return not reaches(order - unit, b, buckets, pivot) and reaches(order + unit, b + 1, buckets, pivot)


@inline
def reaches(order, b, buckets, pivot):
    """Whether the number there in the order of all numbers lies in bucket b or above."""
    return place(number_of(order), buckets, pivot) >= b
