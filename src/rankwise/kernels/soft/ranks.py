"""Gradients of soft ranks, among samples in ascending order of score, by windows of them.

    r_d = ½ + Σ_e H(s_e − s_d),   ∂Σ_d A_d(r_d)/∂s_d = (Σ_e a_e − a_d)/(2·width) over e within width of d,   a = A′

A sample counts itself as ½, so that the best rank is 1. In small queries each sample that matters is compared with all
others, many at a time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.engine import cuts_of
from rankwise.kernels.soft.windows import find_windows, sum_windows
from rankwise.kernels.threads import run

# Up to so many samples of a query are compared with each other.
DIRECT = 128

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def pull(level: Floats, order: Ints, starts: Ints, width: float, weight: Floats, out: Floats, n_threads: int) -> None:
    """Add the gradient of Σ_d A_d(r_d) to out; order: where it is of each sample. weight: A′."""
    run(pull_queries, [(level, order, starts, a, b, width, weight, out) for a, b in _jobs(starts, n_threads)])


def _jobs(starts: Ints, n_threads: int) -> list[tuple[int, int]]:
    """Queries from a to b for each thread."""
    return list(pairwise(cuts_of(starts, 0, starts.size - 1, n_threads)))


@part
def longest(starts, first, last):
    """The most samples in one of these queries."""
    most = np.int64(0)
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    return most


@part
def pull_direct(level, order, width, weight, slopes, out):
    """`pull_queries` of one small query in any order: from each sample that weighs something to all others."""
    n = level.shape[0]
    slopes[:n] = 0.0
    for d in range(n):
        if weight[d] != 0.0:
            near, step, score = np.int64(0), weight[d] * (0.5 / width), level[d]
            for e in range(n):
                inside = abs(level[e] - score) < width
                near += np.int64(inside)
                slopes[e] += step if inside else 0.0
            slopes[d] -= step * near
    for d in range(n):
        out[order[d]] += slopes[d]


@kernel
def pull_queries(level, order, starts, first, last, width, weight, out):
    """Queries first ≤ q < last: add (Σ_e a_e − a_d)/(2·width), over e within width of d, to out."""
    most = longest(starts, first, last)
    nought, sums, front = np.zeros(most), np.empty((2, most)), np.empty((2, most))
    bounds = np.empty((2, most), np.int64)
    for q in range(first, last):
        begin, stop = starts[q], starts[q + 1]
        own, a = level[begin:stop], weight[begin:stop]
        if stop - begin <= DIRECT:
            pull_direct(own, order[begin:stop], width, a, sums[0], out)
            continue
        find_windows(own, own, width, bounds[0], bounds[1])
        sum_windows(a, nought, own, bounds[0], bounds[1], own, sums[0], sums[1], front)
        for k in range(stop - begin):
            near = bounds[1, k] - bounds[0, k]
            out[order[begin + k]] += (sums[0, k] - a[k] * near) * (0.5 / width)
