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

# Scores worked on at a time: with their buckets they stay in the first-level cache.
CHUNK = 2048
_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN, _HALF = np.int64(63), np.int64(1)
# Kinds of map.
LINEAR, KEYED, FOLDED = np.int64(0), np.int64(1), np.int64(2)
# Cells at either end of a folded map before the cell of `key`.
NEARER = np.int64(2)


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
def order_of(score):
    """The place of a number in the order of all float64 numbers; −0.0 counts as 0.0."""
    bits = np.float64(np.float64(score) + 0.0).view(np.int64)
    return bits ^ ((bits >> _SIGN) & _ALL_BUT_SIGN)


@inline
def number_of(order):
    """The inverse of `order_of`."""
    return np.int64(order ^ ((order >> _SIGN) & _ALL_BUT_SIGN)).view(np.float64)


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
    t = ((order_of(score) >> _HALF) - key) >> shift
    return np.int32(min(max(t, np.int64(0)), last))


@inline
def folded_cell(score, low, middle, high, key, shift, last):
    """The cell under a folded map; an end for NaN. last is odd: as many cells for either end."""
    is_low = score < middle
    distance = np.float64(score) - np.float64(low) if is_low else np.float64(high) - np.float64(score)
    t = ((order_of(distance) >> _HALF) - key) >> shift
    t = min(max(t, np.int64(-1)), (last >> _HALF) - NEARER) + np.int64(1) + np.int64(distance >= 0.0)
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
def place(score, buckets, last, pivot):
    """The bucket of one number of the scores' type."""
    if buckets.kind == LINEAR:
        b = np.int64(linear_cell(score, buckets.low, buckets.rate, last))
    elif buckets.kind == KEYED:
        b = np.int64(keyed_cell(score, buckets.key, buckets.shift, buckets.last))
    else:
        low, middle, high = buckets.low, buckets.middle, buckets.high
        b = np.int64(folded_cell(score, low, middle, high, buckets.key, buckets.shift, buckets.last))
    if pivot.shape[0] > 0:
        b = np.int64(third(np.uint32(b), score, pivot[np.uint64(b)]))
    return b
