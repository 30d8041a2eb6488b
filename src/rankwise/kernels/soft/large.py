"""Soft counts and gradients of large queries.

With few positives, negatives are counted by gap, see gaps.py: buckets tell the gap of most. With many, both classes are
sorted, and windows slide along the other one: the gaps between 2P edges would miss the caches.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.buckets.choosing import choose
from rankwise.kernels.buckets.maps import CHUNK, cells_of, place, third
from rankwise.kernels.compiled import kernel
from rankwise.kernels.flags import all_within
from rankwise.kernels.soft.gaps import conclude, draw, gap_between, lay_gaps, lines_of
from rankwise.kernels.soft.windows import sum_around
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.threads import run, worth

# From so many samples on, buckets are worth what they take to lay out.
LARGE = 1 << 15
# Large queries are counted in parts of at least so many samples, and at most so many parts: by their size alone, so
# that the number of threads changes no sum.
_PART, _PARTS = 1 << 19, 8
# From so many positives to a negative on, to sort the negatives too takes less time and memory than gaps do.
_SORTED = 0.125
# Up to so many gaps, each part counts in several rows.
_FEW_GAPS, _ROWS = 1 << 12, 4

# Parts of the kernels for small queries, compiled for Python to call.
of_gaps, of_lines = kernel(lay_gaps.__wrapped__), kernel(lines_of.__wrapped__)
conclude_sums, draw_part = kernel(conclude.__wrapped__), kernel(draw.__wrapped__)
sum_negatives = kernel(sum_around.__wrapped__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def soften_large(
    own: NDArray[np.floating], flags: NDArray[np.bool_], width: float, found: tuple[Any, ...], n_threads: int
) -> None:
    """Soft counts of one query; found: its level, order (from its first sample on), above, near and gaps."""
    level, order, above, near, gaps = found
    n, n_pos = own.shape[0], level.size
    where = np.flatnonzero(flags)
    _check(where.size == n_pos)  # else somebody writes to it
    if n_pos == 0:
        _check(np.abs(own) <= limit_of(own))
        return
    both = [where, np.flatnonzero(~flags)] if is_sorted(n_pos, n) else [where]
    (level[:], order[:]), *negatives = _run_parts(_ascending, [(own, at) for at in both], worth(n, n_threads))
    if n_pos == n:
        above[:] = near[:] = 0.0
    elif negatives:
        above[:] = 0.0
        values, gaps[: n - n_pos] = negatives[0]
        sum_negatives(values, np.ones(values.size), level, width, above, near)
        np.maximum(above, 0.0, out=above)
    else:
        conclude_gaps(level, width, count_gaps(own, where, level, width, gaps, n_threads), above, near)


def count_gaps(
    own: NDArray[np.floating], where: Ints, level: Floats, width: float, gaps: NDArray[np.int32], n_threads: int
) -> Floats:
    """Negatives by gap between the edges of ascending levels, and the sums of their offsets: (2, gaps).

    where: the positives among these scores, ascending. gaps: (n,) gets that of every score.
    """
    n, limit = own.shape[0], limit_of(own)
    buckets, pivot = choose(own, 2 * level.size, limit)
    edge, middle, *cells = prepare(level, width, buckets, pivot)
    cuts = _parts(n)
    rows = _ROWS if middle.size <= _FEW_GAPS else 1
    sums, at = np.zeros((len(cuts), 2, rows, middle.size)), np.searchsorted(where, [a for a, _ in cuts] + [n])
    jobs = []
    for (a, b), found, p, p_end in zip(cuts, sums, at, at[1:], strict=False):
        jobs.append((own[a:b], where[p:p_end] - a, limit, buckets, pivot, *cells, edge, middle, gaps[a:b], *found))
    _check(all(_run_parts(place_part, jobs, worth(n, n_threads))))
    return np.asarray(sums[..., :-1].sum(axis=(0, 2)))


def conclude_gaps(level: Floats, width: float, sums: Floats, above: Floats, near: Floats) -> None:
    """c by positive in above, and the negatives within width in near, from what was counted by gap."""
    conclude_sums(level, width, *of_gaps(level, width)[1:], *sums, above, near)


def draw_gaps(
    own: NDArray[np.floating],
    gaps: NDArray[np.int32],
    level: Floats,
    width: float,
    ramp: bool,
    weight: Floats,
    gradient: NDArray[np.floating],
    n_threads: int,
) -> None:
    """The negatives' gradient from weights by positive; the positives' says nothing yet."""
    lines, n = of_lines(level, width, ramp, weight), own.shape[0]
    jobs = [(own[a:b], gaps[a:b], ramp, *lines, gradient[a:b]) for a, b in _parts(n)]
    _run_parts(draw_part, jobs, worth(n, n_threads))


def is_sorted(n_pos: int, n: int) -> bool:
    """Whether a large query's negatives, if there are any, are sorted too."""
    return n_pos >= _SORTED * (n - n_pos) > 0.0


def _ascending(own: NDArray[np.floating], where: Ints) -> tuple[Floats, Ints]:
    """The scores at these positions, ascending, and their positions."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is looked at
        values = own[where].astype(np.float64)
        _check(np.abs(values) <= limit_of(own))
    values, order = order_descending(np.negative(values, out=values))
    return np.negative(values, out=values), where[order]


def _check(fine: Any) -> None:
    if not np.all(fine):
        raise NotFiniteError


def _parts(n: int) -> list[tuple[int, int]]:
    n_parts = max(1, min(n // _PART, _PARTS))
    return list(pairwise(n * t // n_parts for t in range(n_parts + 1)))


def _run_parts(function: Any, jobs: list[tuple[Any, ...]], n_threads: int) -> list[Any]:
    """The results of all jobs, so many at a time."""
    return [found for k in range(0, len(jobs), n_threads) for found in run(function, jobs[k : k + n_threads])]


@kernel
def prepare(level, width, buckets, pivot):
    """Edges and middles of gaps; of every bucket the gap, −1 where an edge is in it, and start[b] edges below it."""
    n_buckets = (3 if pivot.shape[0] > 0 else 1) * (buckets.last + 1)
    settled, start = np.empty(n_buckets, np.int32), np.zeros(n_buckets + 1, np.int32)
    edge, _, middle = lay_gaps(level, width)
    for e in range(edge.shape[0]):
        # Rounded: scores on either side of the edge are in this bucket, or not between.
        start[np.uint64(place(edge[e], buckets, pivot)) + np.uint64(1)] += 1
    for b in range(n_buckets):
        start[b + 1] += start[b]
        settled[b] = start[b] if start[b + 1] == start[b] else -1
    return edge, middle, settled, start


@kernel
def place_part(scores, where, limit, buckets, pivot, settled, start, edge, middle, gaps, counts, totals):
    """Gaps of scores, counts and sums of offsets by gap in several rows, the positives' in one more gap.

    False if a score is not within ±limit. Rows are taken in turn, so that none waits for itself.
    """
    bound, last = scores.dtype.type(limit), scores.dtype.type(buckets.last)
    cells, rows, apart = np.empty(CHUNK, np.int32), np.uint64(counts.shape[0] - 1), np.int32(middle.shape[0] - 1)
    p, fine = np.int64(0), True
    for begin in range(0, scores.shape[0], CHUNK):
        end = min(begin + CHUNK, scores.shape[0])
        part, cell, gap = scores[begin:end], cells[: end - begin], gaps[begin:end]
        fine &= all_within(part, bound)
        cells_of(part, buckets, last, cell)
        if pivot.shape[0] > 0:
            for k in range(cell.shape[0]):
                cell[k] = third(np.uint32(cell[k]), part[k], pivot[np.uint32(cell[k])])
        for k in range(cell.shape[0]):
            b = np.uint64(np.uint32(cell[k]))
            g = settled[b]
            if g < 0:
                g = gap_between(edge, start[b], start[b + np.uint64(1)], np.float64(part[k]))
            gap[k] = g
        while p < where.shape[0] and where[p] < end:
            gap[where[p] - begin] = apart
            p += 1
        for k in range(cell.shape[0]):
            at, row = np.uint64(np.uint32(gap[k])), np.uint64(k) & rows
            counts[row, at] += 1.0
            totals[row, at] += np.float64(part[k]) - middle[at]
    return fine


@kernel
def draw_sorted(scores, order, level, width, ramp, weight, gradient):
    """The negatives' gradient from weights by positive; order: the negatives' positions, by ascending score.

    With ramp, both classes are turned over: H(s_j − s_k) = H((−s_k) − (−s_j)).
    """
    n, half = order.shape[0], 0.5 / width
    negatives, above, inside = np.empty(n), np.zeros(n), np.empty(n)
    if ramp:
        for j in range(n):
            negatives[n - 1 - j] = -np.float64(scores[np.uint32(order[j])])
        sum_around(-level[::-1], weight[::-1].copy(), negatives, width, above, inside)
        for j in range(n):
            gradient[np.uint32(order[j])] = above[n - 1 - j]
    else:
        for j in range(n):
            negatives[j] = scores[np.uint32(order[j])]
        sum_around(level, weight, negatives, width, above, inside)
        for j in range(n):
            gradient[np.uint32(order[j])] = half * inside[j]
