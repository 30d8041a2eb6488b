"""Grades of queries: which there are, how many samples have at least each, and sums over them as thresholds."""

from __future__ import annotations

import numpy as np

from rankwise.inference.compiled import kernel, part
from rankwise.inference.sorting import slots, sort_descending

# Up to so many different grades of a query are looked for one by one; of more, all are sorted.
_FEW = 32


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
        n = collect(own, grade[base : base + stop - begin])
        if n > _FEW:
            n = sort_levels(own, grade[base : base + stop - begin], found)
        else:
            for k in range(own.shape[0]):
                p = np.int64(0)
                while grade[base + p] < own[k]:
                    p += 1
                found[k] = p
        room[:n] = 0
        for k in range(own.shape[0]):
            room[found[k]] += 1
            found[k] += base
        for p in range(n - 2, -1, -1):
            room[p] += room[p + 1]
        base += n
    level_starts[starts.shape[0] - 1] = base


@part
def collect(own, grade):
    """The different ones of these grades, ascending, if they are few; else more than few have been found."""
    n = np.int64(0)
    for k in range(own.shape[0]):
        value, p = own[k], np.int64(0)
        while p < n and grade[p] < value:
            p += 1
        if p == n or grade[p] != value:
            if n == _FEW:
                return n + 1
            for b in range(n, p, -1):
                grade[b] = grade[b - 1]
            grade[p] = value
            n += 1
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
