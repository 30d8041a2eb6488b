"""Soft counts: how many negatives are above each positive, where a comparison is softened by a ramp, and gradients.

    H(x) = clip(x/(2·width) + ½, 0, 1),   c_k = Σ_j H(s_j − s_k)

Small queries are solved in compiled loops, large ones in parts; neither takes longer than a sort.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.engine import cuts_of, runs_between
from rankwise.kernels.soft.large import LARGE, draw_gaps, draw_sorted, is_sorted, soften_large
from rankwise.kernels.soft.small import soften_small, spread_small
from rankwise.kernels.threads import run
from rankwise.queries import Queries

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
    large, small = _by_size(queries, n_threads)
    for q in large:
        own, at = slice(*queries.starts[q : q + 2]), slice(*starts[q : q + 2])
        found = *(each[at] for each in soft[2:-1]), gaps[own]
        soften_large(scores[own], queries.relevant[own], width, found, n_threads)
        order[at] += own.start
    for jobs in small:
        whole, args = (scores, queries.relevant, queries.starts, starts), (limit_of(scores), width, *soft[2:])
        done = run(soften_small, [(*whole, a, b, *args) for a, b in jobs])
        if any(stop < b for stop, (_, b) in zip(done, jobs, strict=True)):
            raise NotFiniteError
    return soft


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
    large, small = _by_size(queries, n_threads)
    for q in large:
        part, at = slice(*queries.starts[q : q + 2]), slice(*soft.starts[q : q + 2])
        n, n_pos, how = part.stop - part.start, at.stop - at.start, (soft.level[at], soft.width, ramp, weight[at])
        if n_pos == 0:
            gradient[part] = 0.0
        elif is_sorted(n_pos, n):
            draw_sorted(scores[part], soft.gaps[part][: n - n_pos], *how, gradient[part])
        elif n_pos < n:
            draw_gaps(scores[part], soft.gaps[part], *how, gradient[part], n_threads)
        gradient[soft.order[at]] = own[at]
    for jobs in small:
        whole = (scores, queries.relevant, queries.starts, soft.starts)
        args = (soft.width, ramp, soft.level, soft.order, soft.gaps, weight, own, gradient)
        run(spread_small, [(*whole, a, b, *args) for a, b in jobs])
    return gradient


def _by_size(queries: Queries, n_threads: int) -> tuple[Ints, list[list[tuple[int, int]]]]:
    """The large queries, and runs of small ones between them, each divided among threads."""
    large = np.flatnonzero(queries.sizes >= LARGE)
    runs = runs_between(large, queries.sizes.size)
    return large, [list(pairwise(cuts_of(queries.starts, a, b, n_threads))) for a, b in runs]
