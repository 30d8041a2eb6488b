"""Soft counts and the gradients they lead to: small queries in compiled loops, large ones in parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.buckets.choosing import choose
from rankwise.kernels.engine import cuts_of, runs_between
from rankwise.kernels.soft.counts import conclude_large, lay_gaps, place_part, prepare_large, soft_places, soften_small
from rankwise.kernels.soft.merging import draw_sorted, soften_sorted
from rankwise.kernels.soft.spreading import draw_part, lines_large, running_maximum, share_ties, spread_small
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.threads import run, worth
from rankwise.queries import Queries

# From so many samples on, buckets are worth what they take to lay out.
LARGE = 1 << 15
# Large queries are counted in parts of at least so many samples, and at most so many parts: by their size alone, so
# that the number of threads changes no sum.
_PART, _PARTS = 1 << 19, 8
# From so many positives to a negative on, to sort the negatives too takes less time and memory than gaps do.
_SORTED = 0.125
# Up to so many gaps, each part counts in several rows.
_FEW_GAPS, _ROWS = 1 << 12, 4

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Softened(NamedTuple):
    """Soft counts of all positives, query by query, in ascending order of score within a query.

    starts: (Q + 1,) where the positives of each query begin. level: their scores. order: their positions. above: c, the
    soft number of negatives above. near: negatives within width. gaps: (n,) by sample, for `spread`; where a large
    query's negatives are sorted, their positions instead.
    """

    width: float
    starts: Ints
    level: Floats
    order: Ints
    above: Floats
    near: Floats
    gaps: NDArray[np.int32]


def soften(scores: NDArray[np.floating], queries: Queries, width: float, n_threads: int) -> Softened:
    """c_k = Σ_j H(s_j − s_k) of every positive. Raises `NotFiniteError` where a score is not finite or too large."""
    n_pos = queries.counts[0]
    starts = np.concatenate([[0], np.cumsum(n_pos)])
    numbers, order = np.empty((3, queries.n_pos)), np.empty(queries.n_pos, np.int64)
    gaps = np.empty(scores.shape[0], np.int32)
    soft = Softened(width, starts, numbers[0], order, numbers[1], numbers[2], gaps)
    large = np.flatnonzero(queries.sizes >= LARGE)
    for q in large:
        _soften_large(scores, queries, int(q), soft, n_threads)
    for jobs in _small_jobs(queries, large, n_threads):
        args = (limit_of(scores), *soft[:1], *soft[2:])
        whole = (scores, queries.relevant, queries.starts, starts)
        done = run(soften_small, [(*whole, a, b, *args) for a, b in jobs])
        if any(stop < b for stop, (_, b) in zip(done, jobs, strict=True)):
            raise NotFiniteError
    return soft


def _soften_large(scores: NDArray[np.floating], queries: Queries, q: int, soft: Softened, n_threads: int) -> None:
    """A query of many samples: buckets tell most negatives' gaps."""
    begin, end = int(queries.starts[q]), int(queries.starts[q + 1])
    p, p_end = int(soft.starts[q]), int(soft.starts[q + 1])
    own, n_pos, limit = scores[begin:end], p_end - p, limit_of(scores)
    if n_pos == 0:
        if not (np.abs(own) <= limit).all():
            raise NotFiniteError
        return
    flags = queries.relevant[begin:end]
    where = np.flatnonzero(flags)
    if where.size != n_pos:
        raise NotFiniteError  # somebody writes to it
    by_search = not _is_sorted(n_pos, end - begin)
    jobs = [(own, where)] if by_search else [(own, where), (own, np.flatnonzero(~flags))]
    (level, order), *negatives = _run_parts(_ascending, jobs, worth(end - begin, n_threads))
    soft.level[p:p_end], soft.order[p:p_end] = level, begin + order
    if n_pos == end - begin:
        soft.above[p:p_end] = soft.near[p:p_end] = 0.0
        return
    if negatives:
        soften_sorted(level, negatives[0][0], soft.width, soft.above[p:p_end], soft.near[p:p_end])
        soft.gaps[begin : end - n_pos] = negatives[0][1]
        return
    sums = count_gaps(own, where, level, soft.width, soft.gaps[begin:end], n_threads)
    conclude_gaps(level, soft.width, sums, soft.above[p:p_end], soft.near[p:p_end])


def _is_sorted(n_pos: int, n: int) -> bool:
    """Whether a large query's negatives are sorted, too."""
    return n_pos < n and n_pos >= _SORTED * (n - n_pos)


def _ascending(own: NDArray[np.floating], where: Ints) -> tuple[Floats, Ints]:
    """The scores at these positions, ascending, and their positions."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is looked at
        values = own[where].astype(np.float64)
        if not (np.abs(values) <= limit_of(own)).all():
            raise NotFiniteError
    values, order = order_descending(np.negative(values, out=values))
    return np.negative(values, out=values), where[order]


def count_gaps(
    own: NDArray[np.floating], where: Ints, level: Floats, width: float, gaps: NDArray[np.int32], n_threads: int
) -> Floats:
    """Negatives by gap between the edges of ascending levels, and the sums of their offsets: (2, parts, rows, gaps).

    where: the positives among these scores, ascending. gaps: (n,) gets that of every score.
    """
    n, limit = own.shape[0], limit_of(own)
    buckets, pivot = choose(own, 2 * level.size, limit)
    n_buckets = (3 if pivot.size else 1) * (buckets.last + 1)
    settled, start = np.empty(n_buckets, np.int32), np.empty(n_buckets + 1, np.int32)
    edge, _, middle = prepare_large(own, level, width, buckets, pivot, settled, start)
    parts = _parts(n)
    rows = _ROWS if middle.size <= _FEW_GAPS else 1
    sums = np.zeros((2, len(parts), rows, middle.size))
    shared = (where, limit, buckets, pivot, settled, start, edge, middle, gaps)
    jobs = [(own, a, b, *shared, sums[0, t], sums[1, t]) for t, (a, b) in enumerate(parts)]
    if not all(_run_parts(place_part, jobs, worth(n, n_threads))):
        raise NotFiniteError
    return sums


def conclude_gaps(level: Floats, width: float, sums: Floats, above: Floats, near: Floats) -> None:
    """c by positive in above, and the negatives within width in near, from what was counted by gap."""
    _, bounds, middle = lay_gaps(level, width)
    conclude_large(level, width, bounds, middle, sums[0], sums[1], above, near)


def draw_gaps(
    scores: NDArray[np.floating],
    gaps: NDArray[np.int32],
    level: Floats,
    width: float,
    ramp: bool,
    weight: Floats,
    gradient: NDArray[np.floating],
    n_threads: int,
) -> None:
    """The negatives' gradient from weights by positive; the positives' is 0 yet."""
    lines = lines_large(level, width, ramp, weight)
    drawn = [(scores, gaps, a, b, ramp, *lines, gradient) for a, b in _parts(scores.shape[0])]
    _run_parts(draw_part, drawn, worth(scores.shape[0], n_threads))


def places(level: Floats, starts: Ints, width: float, n_threads: int) -> Floats:
    """½ + Σ_k H(s_k − s_i) over the samples of each query, which ascend: the soft place of a sample among them."""
    out = np.empty_like(level)
    jobs = pairwise(cuts_of(starts, 0, starts.size - 1, n_threads))
    run(soft_places, [(level, starts, a, b, width, out) for a, b in jobs])
    return out


def share(soft: Softened, values: Floats) -> None:
    """Positives of a query that tie in score get their mean of the values."""
    share_ties(soft.level, soft.starts, 0, soft.starts.size - 1, values)


def highest(soft: Softened, values: Floats) -> None:
    """Each positive gets the highest of the values of those of its query that score no higher."""
    running_maximum(soft.starts, 0, soft.starts.size - 1, values)


def spread(
    scores: NDArray[np.floating],
    queries: Queries,
    soft: Softened,
    weight: Floats,
    own: Floats,
    ramp: bool,
    n_threads: int,
) -> NDArray[np.floating]:
    """The gradient by sample: `own` of the positives, for negatives the sum of the positives' weights.

    Of those within width, over 2·width; or, with ramp, of all of them, times H(s_j − s_k).
    """
    gradient = np.empty_like(scores)
    large = np.flatnonzero(queries.sizes >= LARGE)
    for q in large:
        part, positives = slice(*queries.starts[q : q + 2]), slice(*soft.starts[q : q + 2])
        if 0 < positives.stop - positives.start < part.stop - part.start:
            how = (soft.level[positives], soft.width, ramp, weight[positives], gradient[part])
            gaps, n_pos = soft.gaps[part], positives.stop - positives.start
            if _is_sorted(n_pos, gaps.size):
                draw_sorted(scores[part], gaps[: gaps.size - n_pos], *how)
            else:
                draw_gaps(scores[part], gaps, *how, n_threads)
            gradient[soft.order[positives]] = own[positives]
        else:
            gradient[part] = 0.0
    for jobs in _small_jobs(queries, large, n_threads):
        whole = (scores, queries.relevant, queries.starts, soft.starts)
        args = (soft.width, ramp, soft.level, soft.order, soft.gaps, weight, own, gradient)
        run(spread_small, [(*whole, a, b, *args) for a, b in jobs])
    return gradient


def _small_jobs(queries: Queries, large: Ints, n_threads: int) -> list[list[tuple[int, int]]]:
    """Runs of small queries, each divided among threads."""
    n_queries = queries.starts.size - 1
    return [list(pairwise(cuts_of(queries.starts, a, b, n_threads))) for a, b in runs_between(large, n_queries)]


def _parts(n: int) -> list[tuple[int, int]]:
    n_parts = max(1, min(n // _PART, _PARTS))
    return list(pairwise(n * t // n_parts for t in range(n_parts + 1)))


def _run_parts(function: Any, jobs: list[tuple[Any, ...]], n_threads: int) -> list[Any]:
    """The results of all jobs, so many at a time."""
    return [found for k in range(0, len(jobs), n_threads) for found in run(function, jobs[k : k + n_threads])]
