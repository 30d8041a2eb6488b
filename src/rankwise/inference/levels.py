"""Grades of queries: which there are, how many samples have at least each, and sums over them as thresholds."""

from __future__ import annotations

import numpy as np

from rankwise.inference.compiled import kernel, part
from rankwise.inference.sorting import slots, sort_descending

# Whole grades below this are told by a bit each; others, if a query has few, are looked for one by one, or sorted.
_BITS, _FEW = 32, 32


@kernel
def find_levels(grades, starts, level_starts, grade, count, at):
    """The different grades of each query, ascending, one query after the other, and how many samples have at least it.

    level_starts: (Q + 1,) where those of each query begin. at: (n,) where the grade of a sample is. grade and count
    have room for n.
    """
    base = np.int64(0)
    for q in range(starts.shape[0] - 1):
        level_starts[q] = base
        begin, stop = starts[q], starts[q + 1]
        own, room, found = grades[begin:stop], count[base : base + stop - begin], at[begin:stop]
        own_grade = grade[base : base + stop - begin]
        n = collect_whole(own, own_grade, found)
        if n < 0:
            n = collect(own, own_grade, found)
        if n < 0:
            n = sort_levels(own, own_grade, found)
        room[:n] = 0
        for k in range(own.shape[0]):
            room[found[k]] += 1
            found[k] += base
        for p in range(n - 2, -1, -1):
            room[p] += room[p + 1]
        base += n
    level_starts[starts.shape[0] - 1] = base


@part
def collect_whole(own, grade, found):
    """The different ones of these grades, ascending, and which of them each sample has; −1 if some is not small."""
    seen, whole = np.uint64(0), True
    for k in range(own.shape[0]):  # no branch depends on a grade
        small = min(own[k], float(_BITS))
        whole &= (small < _BITS) & (np.floor(small) == small)
        seen |= np.uint64(1) << np.uint64(small)
    if not whole:
        return np.int64(-1)
    n, number = np.int64(0), np.empty(_BITS, np.int64)
    for g in range(_BITS):
        number[g] = n
        if (seen >> np.uint64(g)) & np.uint64(1):
            grade[n] = g
            n += 1
    for k in range(own.shape[0]):
        found[k] = number[np.uint64(own[k])]
    return n


@part
def collect(own, grade, found):
    """`collect_whole` of any grades, if few are different; else −1."""
    n = np.int64(0)
    for k in range(own.shape[0]):
        value, p = own[k], np.int64(0)
        for b in range(n):  # no branch depends on a grade
            p += np.int64(grade[b] < value)
        if p == n or grade[p] != value:
            if n == _FEW:
                return np.int64(-1)
            for b in range(n, p, -1):
                grade[b] = grade[b - 1]
            grade[p] = value
            n += 1
    for k in range(own.shape[0]):
        p = np.int64(0)
        for b in range(n):
            p += np.int64(grade[b] < own[k])
        found[k] = p
    return n


@part
def sort_levels(own, grade, found):
    """`collect` any number of different grades, and which of them each sample has."""
    n = own.shape[0]
    values, order = np.empty(n), np.empty(n, np.int64)
    for k in range(n):
        values[k], order[k] = -own[k], k
    sort_descending(values, order, n, np.empty(n), np.empty(n, np.int64), slots(n))
    p = np.int64(-1)
    for k in range(n):
        if k == 0 or values[k] != values[k - 1]:
            p += 1
            grade[p] = -values[k]
        found[order[k]] = p
    return p + 1


@kernel
def add_weighted(gradient, starts, weights, samples, out):
    """Add to out the gradient of queries, each times its weight; samples: where they are in out, all if it is empty."""
    for q in range(weights.shape[0]):
        weight = weights[q]
        if samples.shape[0] == 0:
            for k in range(starts[q], starts[q + 1]):
                out[k] += weight * gradient[k]
        else:
            for k in range(starts[q], starts[q + 1]):
                out[samples[k]] += weight * gradient[k]
