"""Soft ranks of all samples of a query, and the gradients they lead to: O(n log n), by windows of sorted scores.

    r_d = ½ + Σ_e H(s_e − s_d),   ∂Σ_d A_d(r_d)/∂s_d = (Σ_e a_e − a_d)/(2·width) over e within width of d,   a = A′

A sample counts itself as ½, so that the best rank is 1. In small queries each sample that matters is compared with all
others, many at a time: faster than a sort, since few matter where only the first places count.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.compiled import kernel, part
from rankwise.inference.engine import cuts_of
from rankwise.inference.flags import all_within
from rankwise.inference.softening import compare_all, soft_places
from rankwise.inference.sorting import slots, sort_descending
from rankwise.inference.threads import run
from rankwise.inference.windows import find_windows, sum_windows
from rankwise.inputs import NotFiniteError, limit_of

# Up to so many samples of a query are compared with each other.
DIRECT = 128

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Ranked(NamedTuple):
    """Samples of each query, (n,): level, the score; order, the sample; rank.

    They are in ascending order of score, but as they come in queries of up to DIRECT that were not to be sorted.
    """

    level: Floats
    order: Ints
    rank: Floats


def rank(
    scores: NDArray[np.floating], starts: Ints, gain: Floats, width: float, last: float, in_order: bool, n_threads: int
) -> Ranked:
    """Soft ranks of samples that are worth something; of others infinity, and of some that rank at `last` or below.

    in_order: whether all are to be sorted. Raises `NotFiniteError` where a score is not finite or too large.
    """
    n, jobs = scores.shape[0], _jobs(starts, n_threads)
    found, direct = Ranked(np.empty(n), np.empty(n, np.int64), np.empty(n)), 0 if in_order else DIRECT
    how = (limit_of(scores), width, last, direct, gain)
    stops = run(rank_queries, [(scores, starts, a, b, *how, *found) for a, b in jobs])
    if any(stop < b for stop, (_, b) in zip(stops, jobs, strict=True)):
        raise NotFiniteError
    return found


def places(level: Floats, starts: Ints, width: float, n_threads: int) -> Floats:
    """Soft ranks of sorted samples among themselves."""
    out = np.empty_like(level)
    run(soft_places, [(level, starts, a, b, width, out) for a, b in _jobs(starts, n_threads)])
    return out


def pull(level: Floats, order: Ints, starts: Ints, width: float, weight: Floats, out: Floats, n_threads: int) -> None:
    """Add the gradient of Σ_d A_d(r_d) to out, by sample; weight: A′ of samples in the order of `rank`."""
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
def rank_queries(scores, starts, first, last, limit, width, last_rank, direct, gain, level, order, rank):
    """Queries first ≤ q < last: the soft ranks of samples that have a gain; sorted if there are more than `direct`.

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
        sign = 1.0 if n <= direct else -1.0
        for k in range(n):
            own[k], idx[k] = sign * np.float64(scores[begin + k]), begin + k
        if n <= direct:
            compare_direct(own, gain[begin:stop], width, last_rank, out)
            continue
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


@part
def compare_direct(level, gain, width, last_rank, rank):
    """Soft ranks of samples with a gain, each compared with all: but for those below one that is at last_rank."""
    bar = -np.inf
    for k in range(level.shape[0]):
        rank[k] = np.inf
        if gain[k] > 0.0 and level[k] > bar:
            rank[k] = max(0.5 + compare_all(level, level[k], width, 0.5 / width)[0], 1.0)
            bar = level[k] if rank[k] >= last_rank else bar


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
