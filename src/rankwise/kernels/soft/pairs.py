"""Sums over pairs of positives that a ramp compares, all of them or those that a second key tells apart.

    H(x) = clip(x/(2·width) + ½, 0, 1),   Σ_k w_k·H(s_k − s_i),   Σ_k [key_k < key_i]·w_k·H(s_k − s_i)

The second is taken bit by bit of the keys. Two keys differ first, from the top, in one bit: there the lesser has a 0
and the greater a 1. So for each bit, samples are dealt by the bits from there up, in order of score; what has a 0 is
summed over windows around what has a 1. O(P log P) by bit, and no sum is corrected by subtraction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.soft import Floats, Ints, Softened
from rankwise.kernels.soft.windows import add_above


def sums_above(soft: Softened, weight: Floats) -> Floats:
    """Σ_k weight[m, k]·H(s_k − s_i) over the positives of i's query, itself included: (m, P)."""
    out = np.zeros_like(weight)
    add_all_above(soft.level, soft.starts, soft.width, weight, out)
    return out


def sums_above_lesser(soft: Softened, key: Ints, weight: Floats) -> Floats:
    """Σ_k weight[m, k]·H(s_k − s_i) over those of key[k] < key[i], (m, P); keys count from 0 in every query."""
    out = np.zeros_like(weight)
    add_above_lesser(soft.level, soft.starts, soft.width, key, weight, out)
    return out


def sums_below_greater(soft: Softened, key: Ints, weight: Floats) -> Floats:
    """Σ_i weight[m, i]·H(s_k − s_i) over those of key[i] > key[k], (m, P): the same, seen from the other side."""
    starts = soft.starts[-1] - soft.starts[::-1]
    mirrored = soft._replace(level=-soft.level[::-1], starts=starts)
    last = np.zeros_like(key)
    used = np.flatnonzero(np.diff(soft.starts))
    if used.size:
        most = np.maximum.reduceat(key, soft.starts[:-1][used])
        last = np.repeat(most, np.diff(soft.starts)[used])
    flipped = np.ascontiguousarray((last - key)[::-1])
    return sums_above_lesser(mirrored, flipped, np.ascontiguousarray(weight[:, ::-1]))[:, ::-1]


def dense_keys(values: NDArray[np.floating], starts: Ints) -> Ints:
    """The place of each value among the distinct ones of its query, from 0; a query's begin at its start."""
    query = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((values, query))
    ascending, owner = values[order], query[order]
    other = owner[1:] != owner[:-1]
    steps = np.concatenate([[0], np.cumsum(other | (ascending[1:] != ascending[:-1]))])[: values.size]
    begins = steps[starts[:-1][np.diff(starts) > 0]]
    key = np.empty(values.size, np.int64)
    key[order] = steps - np.repeat(begins, np.diff(starts)[np.diff(starts) > 0])
    return key


@kernel
def add_all_above(level, starts, width, weight, out):
    """`sums_above` of levels that ascend within a query."""
    for q in range(starts.shape[0] - 1):
        own = level[starts[q] : starts[q + 1]]
        for m in range(weight.shape[0]):
            add_above(own, weight[m, starts[q] : starts[q + 1]], own, width, out[m, starts[q] : starts[q + 1]])


@kernel
def add_above_lesser(level, starts, width, key, weight, out):
    """`sums_above_lesser` of levels that ascend within a query."""
    for q in range(starts.shape[0] - 1):
        begin, stop = starts[q], starts[q + 1]
        most, shift = np.int64(0), np.int64(0)
        for i in range(begin, stop):
            most = max(most, key[i])
        while most >> shift > 0:
            by_bit(level[begin:stop], key[begin:stop], shift, width, weight[:, begin:stop], out[:, begin:stop])
            shift += 1


@part
def by_bit(level, key, shift, width, weight, out):
    """Add the sums over pairs whose keys agree above bit `shift`, the lesser having a 0 there and the greater a 1."""
    n, most = level.shape[0], np.int64(0)
    for i in range(n):
        most = max(most, key[i] >> shift)
    ends = np.zeros(most + 2, np.int64)
    for i in range(n):
        ends[(key[i] >> shift) + 1] += 1
    for group in range(most + 1):
        ends[group + 1] += ends[group]
    order, place = np.empty(n, np.int64), ends[:-1].copy()
    for i in range(n):  # by group, and in a group by score
        order[place[key[i] >> shift]] = i
        place[key[i] >> shift] += 1
    dealt, sums = np.empty(n), np.empty(n)
    for i in range(n):
        dealt[i] = level[order[i]]
    for m in range(weight.shape[0]):
        weights = np.empty(n)
        for i in range(n):
            weights[i], sums[i] = weight[m, order[i]], 0.0
        for group in range(0, most, 2):
            a, b, c = ends[group], ends[group + 1], ends[group + 2]
            add_above(dealt[a:b], weights[a:b], dealt[b:c], width, sums[b:c])
        for i in range(n):
            out[m, order[i]] += sums[i]
