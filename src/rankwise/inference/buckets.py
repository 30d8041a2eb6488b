"""Buckets: a monotone map from score to bucket that spreads the negatives thinly, its edges, and the counts.

A bucket is the integer part of a monotone function of the score, computed in float64 for every dtype:

    linear   t = (s − centre)·rate + offset
    log      t = sign(y)·log(1 + |y|)·rate + offset,  y = (s − centre)·zoom

with log read off the exponent and leading mantissa bits (piecewise linear, no table, no library call): the second
keeps heavy tails apart. Both are clipped to 0..n_buckets−1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwise.inference.compiled import inline, kernel

_ONE = np.int32(0x3FF00000)  # high word of 1.0
_MAGNITUDE = np.int32(0x7FFFFFFF)
_SIGN = np.int32(31)
KEYS_PER_OCTAVE = 1 << 20
_CHUNK = 2048  # scores worked on at a time: they stay in the first-level cache


class BucketMap(NamedTuple):
    """Parameters of the map; zoom = 0 means linear."""

    centre: float
    zoom: float
    rate: float
    width: float  # 1/rate
    offset: float
    n_buckets: int


@inline
def clipped(t, last):
    """t in [0, last]; 0 where it is not a number."""
    t = t if t > 0.0 else 0.0
    return t if t < last else last


@kernel
def linear_buckets(scores, chart, bucket):
    """The bucket of each score under a linear map."""
    centre, rate, offset, last = chart.centre, chart.rate, chart.offset, float(chart.n_buckets - 1)
    for k in range(scores.shape[0]):
        t = (np.float64(scores[k]) - centre) * rate + offset
        bucket[k] = np.uint32(np.int32(clipped(t, last)))


@kernel
def log_buckets(scores, chart, bucket, buffer):
    """The bucket of each score under a logarithmic map."""
    centre, zoom = chart.centre, chart.zoom
    rate, offset, last = chart.rate, chart.offset, float(chart.n_buckets - 1)
    words = buffer.view(np.int32)  # little-endian: the high word is the odd one
    for k in range(scores.shape[0]):
        y = (np.float64(scores[k]) - centre) * zoom + 0.0  # −0.0 is 0.0
        buffer[k] = np.copysign(1.0 + abs(y), y)
    for k in range(scores.shape[0]):
        word = words[2 * k + 1]
        key = ((word & _MAGNITUDE) - _ONE) ^ (word >> _SIGN)  # ~key for negatives
        bucket[k] = np.uint32(np.int32(clipped(np.float64(key) * rate + offset, last)))


@kernel
def all_within(scores, limit):
    """Whether all scores are within ±limit, and so finite."""
    fine = True
    for k in range(scores.shape[0]):
        fine &= abs(scores[k]) <= limit
    return fine


@kernel
def count(scores, limit, chart, bucket, hist):
    """Put each score into its bucket, add them up in hist; False if one is not finite or beyond ±limit."""
    fine = True
    buffer = np.empty(_CHUNK if chart.zoom != 0.0 else 0, np.float64)
    for first in range(0, scores.shape[0], _CHUNK):
        part, slot = scores[first : first + _CHUNK], bucket[first : first + _CHUNK]
        fine &= all_within(part, limit)
        if chart.zoom == 0.0:
            linear_buckets(part, chart, slot)
        else:
            log_buckets(part, chart, slot, buffer)
        for k in range(slot.shape[0]):
            hist[slot[k]] += np.uint32(1)
    return fine


@inline
def edge(chart, b):
    """The score at which bucket b begins: buckets ≥ b hold scores ≥ it, up to float64 rounding; 0 < b < n_buckets."""
    if chart.zoom == 0.0:
        return chart.centre + (b - chart.offset) * chart.width
    return log_edge(chart, b)


@kernel
def log_edge(chart, b):
    """`edge` of a logarithmic map."""
    key = np.ceil((b - chart.offset) * chart.width)
    if key >= 0.0:
        return chart.centre + magnitude(key) / chart.zoom
    return chart.centre - magnitude(-key) / chart.zoom


@inline
def magnitude(key):
    """The least |y| whose key is `key`."""
    octave = np.floor(key / KEYS_PER_OCTAVE)
    return math.ldexp(1.0 + key / KEYS_PER_OCTAVE - octave, int(octave)) - 1.0
