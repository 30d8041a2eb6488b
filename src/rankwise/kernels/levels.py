"""Grades of queries: which there are, how many samples have at least each, and sums over them as thresholds."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.sorting import slots, sort_descending

# Up to so many different grades of a query are looked for one by one; more are sorted.
_FEW = 32


@kernel
def find_levels(grades, starts, level_starts, grade, count):
    """The different grades of each query, ascending, one query after the other, and how many samples have at least it.

    level_starts: (Q + 1,) where those of each query begin. grade and count have room for n.
    """
    base = np.int64(0)
    for q in range(starts.shape[0] - 1):
        level_starts[q] = base
        begin, stop = starts[q], starts[q + 1]
        own, found, size = grades[begin:stop], grade[base : base + stop - begin], count[base : base + stop - begin]
        n = collect(own, found, size)
        if n < 0:
            n = sort_levels(own, found, size)
        for p in range(n - 2, -1, -1):
            size[p] += size[p + 1]
        base += n
    level_starts[starts.shape[0] - 1] = base


@part
def collect(own, grade, size):
    """The different ones of these grades, ascending, and how many samples have each; −1 if they are many."""
    n = np.int64(0)
    for k in range(own.shape[0]):
        value, p = own[k], np.int64(0)
        for b in range(n):  # no branch depends on a grade
            p += np.int64(grade[b] < value)
        if p < n and grade[p] == value:
            size[p] += 1
            continue
        if n == _FEW:
            return np.int64(-1)
        for b in range(n, p, -1):
            grade[b], size[b] = grade[b - 1], size[b - 1]
        grade[p], size[p] = value, 1
        n += 1
    return n


@part
def sort_levels(own, grade, size):
    """`collect` of any number of different grades."""
    n = own.shape[0]
    values, at = np.empty(n), np.empty(n, np.int64)
    sort_descending(-own, np.arange(n), n, values, at, slots(n))
    p = np.int64(-1)
    for k in range(n):
        if k == 0 or values[k] != values[k - 1]:
            p += 1
            grade[p], size[p] = -values[k], 0
        size[p] += 1
    return p + 1


@kernel
def number_levels(grades, starts, level_starts, grade, at):
    """at: (n,) which of the levels of all queries the grade of a sample is."""
    for q in range(starts.shape[0] - 1):
        first, stop = level_starts[q], level_starts[q + 1]
        for k in range(starts[q], starts[q + 1]):
            low, size = np.uint64(first), np.uint64(stop - first)
            while size > np.uint64(0):
                half = (size + np.uint64(1)) >> np.uint64(1)
                low = low + half if grade[low + half - np.uint64(1)] < grades[k] else low
                size -= half
            at[k] = low


@kernel
def at_least(grades, starts, bars, relevant):
    """Which samples have a grade of at least the bar of their query, (Q,); how many."""
    total = np.int64(0)
    for q in range(bars.shape[0]):
        bar = bars[q]
        for k in range(starts[q], starts[q + 1]):
            relevant[k] = grades[k] >= bar
            total += np.int64(relevant[k])
    return total


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
