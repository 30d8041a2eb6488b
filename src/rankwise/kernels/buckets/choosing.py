"""Which map from score to bucket suits a query: judged by a small sample of its scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.buckets.maps import FOLDED, KEYED, LINEAR, NEARER, BucketMap, place, stands_alone
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.sorting import order_of

SAMPLE = 2048
# Positions of a sample: so many strides, and so far into a stride.
_STEPS = np.arange(SAMPLE)
_IRREGULAR = _STEPS * 2654435761
_CELLS = np.int64(256)
# Mean crowding (1 if even, 2 for normal scores) from which other maps than the plain one are tried.
_CROWDED = 4.0
# Frequent scores get buckets of their own where a score of a sample has so many equals there on average, not counting
# those alone in their cell anyway; with so many cells, or a quarter.
_TIED = 1.0
_TIED_CELLS = 1 << 14
# Cells of a folded map keep distances from an end apart down to this part of the farthest.
_NEAREST = 2.0**-52


def choose(scores: NDArray[np.floating], n_pos: int, limit: float) -> tuple[BucketMap, NDArray[np.floating]]:
    """The map for the scores of a large query, and the pivots of its cells, none where ties are few."""
    n = scores.shape[0]
    with np.errstate(invalid="ignore"):  # a signalling NaN is looked at
        sample = scores[sampled(n, 0, n)].astype(np.float64)
    return choose_by(sample, n, n_pos, limit, scores.dtype)


def choose_by(
    sample: NDArray[np.float64], n: int, n_pos: int, limit: float, dtype: np.dtype[np.floating]
) -> tuple[BucketMap, NDArray[np.floating]]:
    """`choose` for n scores of a type, by those at the positions `sampled`, in any order."""
    with np.errstate(invalid="ignore"):
        sample = np.sort(sample[np.abs(sample) <= limit])
    buckets, pivot = suit(np.empty(0, dtype), n, sample, n_pos, limit)
    own = dtype.type  # on its way through Python it is lost
    low, rate, middle, high = (own(value) for value in buckets[1:5])
    return BucketMap(buckets[0], low, rate, middle, high, *buckets[5:]), pivot


def sampled(n: int, first: int, stop: int) -> NDArray[np.int64]:
    """Fixed, irregular positions of some of n scores that judge which map suits: those in first ≤ k < stop."""
    size = min(max(n // 128, 128), SAMPLE, n)
    stride = n // max(size, 1)
    positions = _STEPS[:size] * stride + _IRREGULAR[:size] % max(stride, 1)
    return np.asarray(positions[(positions >= first) & (positions < stop)])


@kernel
def suit(scores, n, sample, n_pos, limit):
    """The map that suits an ascending sample of n scores, and pivots. scores: of their type."""
    m = sample.shape[0]
    wanted = n_cells(n, n_pos)
    no_pivot = np.empty(0, scores.dtype)
    if m == 0:
        return range_map(0.0, 0.0, np.int64(1), scores), no_pivot
    buckets, tied, begin = least_crowded(sample, m, wanted, scores), 0, 0
    for k in range(1, m + 1):
        if k == m or sample[k] != sample[begin]:
            if k - begin > 1 and not stands_alone(sample[begin], buckets, no_pivot):
                tied += (k - begin) * (k - begin - 1)
            begin = k
    if tied < _TIED * m:
        return buckets, no_pivot
    buckets = least_crowded(sample, m, min(wanted, max(_TIED_CELLS, wanted >> 2)), scores)
    return buckets, frequent(sample, m, buckets, limit, scores)


@part
def n_cells(n, n_pos):
    """A power of two: few members a cell, few changes of rank a cell, and within the second-level cache."""
    wanted = min(max(n // 16, 32 * n_pos), 1 << 16 if n_pos < 8192 else 1 << 18, n)
    size = np.int64(16)
    while size < wanted:
        size *= 2
    return size


@part
def least_crowded(sample, m, wanted, scores):
    """The map onto at most `wanted` cells under which the distinct scores of an ascending sample crowd least."""
    low, high = sample[0], sample[m - 1]
    buckets = range_map(low, high, wanted, scores)
    best = crowding(sample, m, range_map(low, high, _CELLS, scores), scores)
    if best <= _CROWDED:
        return buckets
    for trim in (m // 128, m // 32, m // 16):  # tails share a bucket at either end
        a, b = sample[trim], sample[m - 1 - trim]
        found = crowding(sample, m, range_map(a, b, _CELLS, scores), scores)
        if found < best:
            best, buckets = found, range_map(a, b, wanted, scores)
    found = crowding(sample, m, keyed_map(low, high, _CELLS, scores), scores)
    if found < best:
        best, buckets = found, keyed_map(low, high, wanted, scores)
    if crowding(sample, m, folded_map(sample, m, _CELLS, scores), scores) < best:
        buckets = folded_map(sample, m, wanted, scores)
    return buckets


@part
def range_map(low, high, cells, scores):
    """A linear map of [low, high] onto cells, in the scores' type; a keyed one where rounding would rule."""
    own = scores.dtype.type
    rate = own(cells / (high - low)) if high > low else own(0.0)
    if not 1e-30 < rate < 1e30:
        return keyed_map(low, high, cells, scores)
    nought = np.int64(0)
    return BucketMap(LINEAR, own(low), rate, own(0.0), own(0.0), nought, nought, np.int64(cells - 1))


@part
def keyed_map(low, high, cells, scores):
    """A keyed map of [low, high] onto at most so many cells."""
    nought = scores.dtype.type(0.0)
    key, shift, last = keys_between(low, high, cells)
    return BucketMap(KEYED, nought, nought, nought, nought, key, shift, last)


@part
def folded_map(sample, m, cells, scores):
    """A folded map of an ascending sample onto at most so many cells, from its ends to its median."""
    own = scores.dtype.type
    low, middle, high = sample[0], sample[m // 2], sample[m - 1]
    nearest, farthest = np.inf, max(middle - low, high - middle)
    for k in range(m // 128, m - m // 128):  # who is nearer to an end shares a cell there
        distance = sample[k] - low if sample[k] < middle else high - sample[k]
        if distance > 0.0:
            nearest = min(nearest, distance)
    nearest = min(max(nearest, _NEAREST * farthest), farthest)
    key, shift, last = keys_between(nearest, farthest, (cells >> 1) - NEARER)
    return BucketMap(FOLDED, own(low), own(0.0), own(middle), own(high), key, shift, 2 * (last + NEARER) + 1)


@part
def keys_between(low, high, cells):
    """Where keys begin, and by how much they are shifted onto cells 0..last of at most so many: key, shift, last."""
    one = np.int64(1)
    key, shift = order_of(low) >> one, np.int64(0)
    span = (order_of(high) >> one) - key
    while (span >> shift) >= cells:
        shift += one
    return key, shift, span >> shift


@part
def crowding(sample, m, buckets, scores):
    """How many times more neighbours a distinct value has than if they were spread evenly over _CELLS cells."""
    no_pivot, share, distinct = np.empty(0, scores.dtype), np.zeros(_CELLS, np.int64), 0
    for k in range(m):
        if k == 0 or sample[k] != sample[k - 1]:
            share[place(sample[k], buckets, no_pivot)] += 1
            distinct += 1
    total = 0.0
    for cell in range(_CELLS):
        total += float(share[cell]) * float(share[cell])
    return total * _CELLS / (float(distinct) * float(distinct))


@part
def frequent(sample, m, buckets, limit, scores):
    """A pivot a cell, and one beyond: the score most frequent in the sample, the limit where none is there."""
    no_pivot = np.empty(0, scores.dtype)
    pivot = np.empty(buckets.last + 2, scores.dtype)
    pivot[:] = limit
    most = np.zeros(buckets.last + 1, np.int64)
    begin = 0
    for k in range(1, m + 1):
        if k == m or sample[k] != sample[begin]:
            cell = place(sample[begin], buckets, no_pivot)
            if k - begin > most[cell]:
                most[cell], pivot[cell] = k - begin, sample[begin]
            begin = k
    return pivot
