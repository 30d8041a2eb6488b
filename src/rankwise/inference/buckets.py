"""Buckets: a map from score to bucket that never falls as scores rise, for one chunk of scores or for one.

    linear   ⌊(s − centre)·rate⌋, in the scores' own precision
    keyed    (⌊order(s)/2⌋ − key) >> shift, order(s) being the bits of s as an integer that orders like the scores

Both are clipped to 0..last; the second keeps magnitudes apart. Where `pivot` has an entry a cell, a bucket is a third of
a cell: the scores below its pivot, equal to it, above it, so that a frequent score has a bucket of its own.

All that the engine relies on is that the map never falls (rounding never reverses an order, and nothing else happens
here) and that everybody asks the same map: a score s lies in bucket b or above exactly if place(s) ≥ b. No edge is ever
computed by an inverse; docs/theory.md has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.compiled import inline, kernel

# Scores worked on at a time: with their buckets they stay in the first-level cache.
CHUNK = 2048
_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN, _HALF = np.int64(63), np.int64(1)


class BucketMap(NamedTuple):
    """Parameters of the map, centre and rate of the scores' type; rate = 0 means keyed. Cells are 0..last."""

    centre: np.floating
    rate: np.floating
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
def linear_cell(score, centre, rate, last):
    """The cell under a linear map; 0 for NaN."""
    t = (score - centre) * rate
    zero = last - last
    t = t if t > zero else zero
    return np.int32(t if t < last else last)


@inline
def keyed_cell(score, key, shift, last):
    """The cell under a keyed map; an end for NaN."""
    t = ((order_of(score) >> _HALF) - key) >> shift
    return np.int32(min(max(t, np.int64(0)), last))


@kernel
def place_all(scores, chart, last, pivot, slots):
    """The bucket of each of a chunk of scores; `last` is chart.last in the scores' type."""
    centre, rate, key, shift, end = chart
    if rate > 0:
        for k in range(scores.shape[0]):
            slots[k] = linear_cell(scores[k], centre, rate, last)
    else:
        for k in range(scores.shape[0]):
            slots[k] = keyed_cell(scores[k], key, shift, np.int64(end))
    if pivot.shape[0] > 0:
        for k in range(scores.shape[0]):
            p = pivot[np.uint32(slots[k])]
            slots[k] = np.int32(3) * slots[k] + np.int32(scores[k] >= p) + np.int32(scores[k] > p)


@inline
def place(score, chart, last, pivot):
    """`place_all` of one number of the scores' type."""
    if chart.rate > 0:
        b = np.int64(linear_cell(score, chart.centre, chart.rate, last))
    else:
        b = np.int64(keyed_cell(score, chart.key, chart.shift, np.int64(chart.last)))
    if pivot.shape[0] > 0:
        p = pivot[np.uint64(b)]
        b = 3 * b + np.int64(score >= p) + np.int64(score > p)
    return b
