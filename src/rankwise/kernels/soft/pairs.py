"""Sums over pairs of positives that a ramp compares, all of them or those that a second key tells apart.

    H(x) = clip(x/(2·width) + ½, 0, 1),   Σ_k w_k·H(s_k − s_i),   Σ_k [key_k < key_i]·w_k·H(s_k − s_i)

The second is taken bit by bit of the keys. Two keys differ first, from the top, in one bit: there the lesser has a 0
and the greater a 1. So for each bit, samples are dealt by the bits from there up, in order of score; what has a 0 is
summed over windows around what has a 1. O(P log P) by bit, and no sum is corrected by subtraction.

level: scores that ascend within a query; starts: (Q + 1,) where queries begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.engine import cuts_of
from rankwise.kernels.soft.small import add_all, compare_all
from rankwise.kernels.soft.windows import add_above, sum_around
from rankwise.kernels.threads import run

# Up to so many samples of a query are compared with each other, many at a time.
_FEW_PLACED, _FEW_PULLED = 24, 128

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def places(level: Floats, starts: Ints, width: float, n_threads: int) -> tuple[Floats, Floats]:
    """½ + Σ_k H(s_k − s_i), the soft place of each sample, the best being 1; how many are within width, itself one."""
    above, near = np.zeros_like(level), np.empty_like(level)
    run(place_queries, [(level, starts, *job, width, above, near) for job in _jobs(starts, n_threads)])
    return np.maximum(0.5 + above, 1.0, out=above), near


def pull(level: Floats, starts: Ints, width: float, weight: Floats, near: Floats, n_threads: int) -> Floats:
    """∂Σ_d A_d(r_d)/∂s_d = (Σ {a_e : |s_e − s_d| < width} − a_d·near_d)/(2·width) of soft places r; weight: a = A′."""
    out = np.empty_like(level)
    run(sum_near, [(level, starts, *job, width, weight, out) for job in _jobs(starts, n_threads)])
    return (out - weight * near) * (0.5 / width)


def sums_above(level: Floats, starts: Ints, width: float, weight: Floats) -> Floats:
    """Σ_k weight[k]·H(s_k − s_i) over each query, i itself included."""
    out = np.zeros_like(level)
    add_queries(level, starts, width, weight, out)
    return out


def _jobs(starts: Ints, n_threads: int) -> Iterator[tuple[int, int]]:
    """Queries from a to b for each thread."""
    return pairwise(cuts_of(starts, 0, starts.size - 1, n_threads))


def above_lesser(level: Floats, starts: Ints, width: float, key: Ints, weight: Floats) -> Floats:
    """Σ_k weight[m, k]·H(s_k − s_i) over those of key[k] < key[i], (m, P); keys count from 0 in every query."""
    out = np.zeros_like(weight)
    add_above_lesser(level, starts, width, key, weight, out)
    return out


def below_greater(level: Floats, starts: Ints, width: float, key: Ints, weight: Floats) -> Floats:
    """Σ_i weight[m, i]·H(s_k − s_i) over those of key[i] > key[k], (m, P): the same, seen from the other side."""
    last, sizes = np.zeros_like(key), np.diff(starts)
    if key.size:
        used = sizes > 0
        last = np.repeat(np.maximum.reduceat(key, starts[:-1][used]), sizes[used])
    weight, flipped = np.ascontiguousarray(weight[:, ::-1]), np.ascontiguousarray((last - key)[::-1])
    return above_lesser(-level[::-1], starts[-1] - starts[::-1], width, flipped, weight)[:, ::-1]


def dense_keys(values: NDArray[np.floating], starts: Ints) -> Ints:
    """The place of each value among the distinct ones of its query, from 0."""
    query = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((values, query))
    rises = np.diff(values[order], prepend=values[order[:1]]) != 0.0
    steps, key = np.cumsum(rises), np.empty(values.size, np.int64)
    key[order] = steps - steps[starts[query]]
    return key


@kernel
def place_queries(level, starts, first, last, width, above, near):
    """Add Σ_k H(s_k − s_i) to above, and count samples within width, in queries first ≤ q < last."""
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        if b - a <= _FEW_PLACED:
            for i in range(a, b):
                above[i], near[i] = compare_all(level[a:b], level[i], width, 0.5 / width)
        else:
            sum_around(level[a:b], np.ones(b - a), level[a:b], width, above[a:b], near[a:b])


@kernel
def sum_near(level, starts, first, last, width, weight, out):
    """Σ {w_k : |s_k − s_i| < width} in queries first ≤ q < last."""
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        own, sums = level[a:b], out[a:b]
        if b - a > _FEW_PULLED:
            sum_around(own, weight[a:b], own, width, np.zeros(b - a), sums)
            continue
        sums[:] = 0.0
        for k in range(a, b):
            if weight[k] != 0.0:
                add_all(own, level[k], width, 1.0, False, weight[k], sums)


@kernel
def add_queries(level, starts, width, weight, out):
    """Add `sums_above` to out."""
    for q in range(starts.shape[0] - 1):
        a, b = starts[q], starts[q + 1]
        add_above(level[a:b], weight[a:b], level[a:b], width, out[a:b])


@kernel
def share_ties(level, starts, values):
    """Samples of a query that tie share their mean."""
    for q in range(starts.shape[0] - 1):
        i = starts[q]
        while i < starts[q + 1]:
            end, total = i, 0.0
            while end < starts[q + 1] and level[end] == level[i]:
                total += values[end]
                end += 1
            if end - i > 1:
                for k in range(i, end):
                    values[k] = total / (end - i)
            i = end


@kernel
def running_maximum(starts, values):
    """Each sample gets the highest of the values of those of its query that score no higher."""
    for q in range(starts.shape[0] - 1):
        for i in range(starts[q] + 1, starts[q + 1]):
            values[i] = max(values[i], values[i - 1])


@kernel
def add_above_lesser(level, starts, width, key, weight, out):
    """`above_lesser` of levels that ascend within a query."""
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
