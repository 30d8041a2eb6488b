"""Soft ranks of all samples of a query, and the gradients they lead to, by sorted windows: O(n log n).

    r_d = ½ + Σ_e H(s_e − s_d),   ∂Σ_d A_d(r_d)/∂s_d = (Σ_e a_e − a_d)/(2·width) over e within width of d,   a = A′

A sample counts itself as ½, so that the best rank is 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.compiled import kernel, part
from rankwise.inference.engine import cuts_of
from rankwise.inference.flags import all_within
from rankwise.inference.softening import soft_places
from rankwise.inference.sorting import slots, sort_descending
from rankwise.inference.threads import run
from rankwise.inference.windows import find_windows, sum_windows
from rankwise.inputs import NotFiniteError, limit_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Ranked(NamedTuple):
    """Samples of each query in ascending order of score: (n,) level, the score; order, the sample; rank."""

    level: Floats
    order: Ints
    rank: Floats


def rank(scores: NDArray[np.floating], starts: Ints, gain: Floats, width: float, n_threads: int) -> Ranked:
    """Soft ranks of samples that are worth something; of others infinity. `NotFiniteError` where a score is not."""
    n = scores.shape[0]
    found = Ranked(np.empty(n), np.empty(n, np.int64), np.empty(n))
    jobs = _jobs(starts, n_threads)
    stops = run(rank_queries, [(scores, starts, a, b, limit_of(scores), width, gain, *found) for a, b in jobs])
    if any(stop < b for stop, (_, b) in zip(stops, jobs, strict=True)):
        raise NotFiniteError
    return found


def places(level: Floats, starts: Ints, width: float, n_threads: int) -> Floats:
    """Soft ranks of sorted samples among themselves."""
    out = np.empty_like(level)
    run(soft_places, [(level, starts, a, b, width, out) for a, b in _jobs(starts, n_threads)])
    return out


def pull(level: Floats, order: Ints, starts: Ints, width: float, weight: Floats, out: Floats, n_threads: int) -> None:
    """Add the gradient of Σ_d A_d(r_d) to out, by sample; weight: A′ of sorted samples."""
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


@kernel
def rank_queries(scores, starts, first, last, limit, width, gain, level, order, rank):
    """Queries first ≤ q < last: sorted, and the soft ranks of samples that have a gain.

    Returns the position after the last query done, less than `last` if scores there are not within ±limit.
    """
    most = longest(starts, first, last)
    values, places, slot = np.empty(most), np.empty(most, np.int64), slots(most)
    ones, nought, sums, front = np.ones(most), np.zeros(most), np.empty((2, most)), np.empty((2, most))
    bounds = np.empty((2, most), np.int64)
    for q in range(first, last):
        begin, stop = starts[q], starts[q + 1]
        n = stop - begin
        if not all_within(scores[begin:stop], limit):
            return q
        own, idx, out = level[begin:stop], order[begin:stop], rank[begin:stop]
        for k in range(n):
            own[k], idx[k] = -np.float64(scores[begin + k]), begin + k
        sort_descending(own, idx, n, values, places, slot)
        for k in range(n):
            own[k] = -own[k]
        find_windows(own, own, width, bounds[0], bounds[1])
        near, moment = sums[0], sums[1]
        sum_windows(ones, nought, own, bounds[0], bounds[1], own, near, moment, front)
        for k in range(n):
            r = 0.5 + (n - bounds[1, k]) + 0.5 * near[k] + moment[k] * (0.5 / width)
            out[k] = max(r, 1.0) if gain[idx[k]] > 0.0 else np.inf
    return last


@kernel
def pull_queries(level, order, starts, first, last, width, weight, out):
    """Queries first ≤ q < last: add (Σ_e a_e − a_d)/(2·width), over e within width of d, to out."""
    most = longest(starts, first, last)
    nought, sums, front = np.zeros(most), np.empty((2, most)), np.empty((2, most))
    bounds = np.empty((2, most), np.int64)
    for q in range(first, last):
        begin, stop = starts[q], starts[q + 1]
        own, a = level[begin:stop], weight[begin:stop]
        find_windows(own, own, width, bounds[0], bounds[1])
        sum_windows(a, nought, own, bounds[0], bounds[1], own, sums[0], sums[1], front)
        for k in range(stop - begin):
            near = bounds[1, k] - bounds[0, k]
            out[order[begin + k]] += (sums[0, k] - a[k] * near) * (0.5 / width)
