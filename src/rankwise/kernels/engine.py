"""The fast engine: large queries by buckets, small ones, and those of many positives, by a sort.

Sorting is by counting and by digits, O(N) unless many scores agree in 32 bits; then the positives walk down the
negatives (walk.py), O(N + P). Small queries follow each other in one compiled loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.buckets.large import solve_large
from rankwise.kernels.compiled import kernel
from rankwise.kernels.contract import AnyLoss
from rankwise.kernels.cutoff import place_first, solve_large_cut
from rankwise.kernels.flags import all_within
from rankwise.kernels.half import widen
from rankwise.kernels.positives import finish, middle_by_weight, place_by_score, scaled_weights
from rankwise.kernels.sorting import move_apart, n_slots, sort_descending
from rankwise.kernels.threads import run, worth
from rankwise.kernels.walk import conclude_sorted, walk
from rankwise.queries import FoundRanking, Queries, Solved, single_query

# A query of so many samples, and so many more for each positive, takes less time by buckets than by a sort.
LARGE, A_POSITIVE = 1 << 13, 12
# Samples of float32 that are copied to float64 at once.
_AT_ONCE = 1 << 15
_NO_RANKING = np.empty((0, 0), np.int64)


def solve(
    scores: NDArray[np.floating], queries: Queries, loss: AnyLoss, scale: float, n_threads: int, k: int | None = None
) -> Solved:
    """Solve queries of a loss with a discount. k: the last place that counts, of a loss without (C2)."""
    is_one = queries.starts.shape[0] == 2 and 0 < queries.n_pos < scores.shape[0]
    return (_solve_one if is_one else _solve_many)(scores, queries, loss, scale, n_threads, k)


def predict(
    scores: NDArray[np.floating], queries: Queries, loss: AnyLoss, worst: bool = True, n_threads: int = 1
) -> Solved:
    """Solve queries for the ranking R_w by scores: its Δ, and the gradient of F(R_w) − F(R*).

    Of a positive and a negative of equal score, the negative is above if worst, else the positive.
    """
    dtype = scores.dtype
    if worst:  # a negative is above where its score is greater
        scores = _as_double(scores.copy())
        scores[queries.relevant] = np.nextafter(scores[queries.relevant], -np.inf)
    found = solve(scores, queries, loss, 0.0, n_threads)
    return found._replace(gradient=found.gradient.astype(dtype, copy=False))


def _solve_one(
    scores: NDArray[np.floating], queries: Queries, loss: AnyLoss, scale: float, n_threads: int, k: int | None
) -> Solved:
    """Solve a single query with positives and negatives."""
    n, n_pos = scores.shape[0], queries.n_pos
    if n >= LARGE + A_POSITIVE * n_pos:
        tables = loss.tables(n_pos, n)
        if k is None:
            return solve_large(scores, queries, tables, scale, n_threads)
        return solve_large_cut(scores, queries, tables, k, scale, n_threads)
    above, positives = np.empty((1, n_pos + 1), np.int64), np.empty((1, n_pos), np.int64)
    out, gradient = np.empty((2, 1)), np.empty(n)
    how = (limit_of(scores), _loss_arguments(loss, n_pos, n, k), scale)
    wide = _as_double(scores)
    if not solve_small(wide, queries.relevant, queries.starts, 0, 1, *how, gradient, out, above, positives, *room(n)):
        raise NotFiniteError
    ranking = FoundRanking(gradient.astype(scores.dtype, copy=False), above[0], positives[0])
    return Solved(out[0], out[1], ranking.gradient, ranking)


def _solve_many(
    scores: NDArray[np.floating], queries: Queries, loss: AnyLoss, scale: float, n_threads: int, k: int | None
) -> Solved:
    """Solve queries one after the other, the small ones in compiled loops, evenly divided among threads."""
    n_queries = queries.starts.shape[0] - 1
    out, gradient = np.zeros((2, n_queries)), np.empty_like(scores)
    large = np.flatnonzero(queries.sizes >= LARGE)
    for q in large:
        own = slice(queries.starts[q], queries.starts[q + 1])
        if queries.counts[:, q].min() > 0:
            found = _solve_one(scores[own], single_query(queries.relevant[own]), loss, scale, n_threads, k)
            out[0, q], out[1, q], gradient[own] = found.value[0], found.loss[0], found.gradient
        elif (np.abs(scores[own]) <= limit_of(scores)).all():
            gradient[own] = 0.0
        else:
            raise NotFiniteError
    for first, last in runs_between(large, n_queries):
        most = int(queries.sizes[first:last].max())
        cuts = cuts_of(queries.starts, first, last, n_threads)
        how = limit_of(scores), _loss_arguments(loss, most, most, k), scale
        whole = (scores, queries, gradient, out, most, how)
        stops = run(_solve_run, [(*whole, a, b) for a, b in pairwise(cuts)])
        if any(stop < b for stop, b in zip(stops, cuts[1:], strict=True)):
            raise NotFiniteError
    return Solved(out[0], out[1], gradient)


def _solve_run(
    scores: NDArray[np.floating],
    queries: Queries,
    gradient: NDArray[np.floating],
    out: NDArray[np.float64],
    most: int,
    how: tuple[Any, ...],
    first: int,
    last: int,
) -> int:
    """`solve_small` for queries first ≤ q < last; of float32, a few at a time, in copies that stay in the caches."""
    starts, rest = queries.starts, (out, _NO_RANKING, _NO_RANKING, *room(most))
    if scores.dtype == np.float64:
        return int(solve_small(scores, queries.relevant, starts, first, last, *how, gradient, *rest))
    copies = np.empty((2, min(_AT_ONCE, int(starts[last] - starts[first])) + most))
    while first < last:
        stop = max(int(np.searchsorted(starts, starts[first] + _AT_ONCE, side="right")) - 1, first + 1)
        stop, own = min(stop, last), slice(starts[first], starts[min(stop, last)])
        wide, slopes = copies[:, : own.stop - own.start]
        widen(scores[own], wide)
        if solve_small(wide, queries.relevant[own], starts - own.start, first, stop, *how, slopes, *rest) < stop:
            break
        gradient[own], first = slopes, stop
    return first


def _as_double(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return scores in the type that the kernels for small queries are compiled for."""
    if scores.dtype == np.float64:
        return cast("NDArray[np.float64]", scores)
    wide = np.empty(scores.shape[0])
    widen(scores, wide)
    return wide


def _loss_arguments(loss: AnyLoss, n_pos: int, n: int, k: int | None) -> tuple[Any, ...]:
    """What `solve_small` is told of the loss. A plain tuple: Numba takes a named one apart far more slowly."""
    tables = tuple(loss.tables(n_pos, n))
    return tables if k is None else (*tables, k)


def runs_between(large: NDArray[np.int64], n_queries: int) -> Iterator[tuple[int, int]]:
    """Where small queries follow each other: first ≤ q < last."""
    for before, after in pairwise([-1, *large.tolist(), n_queries]):
        if before + 1 < after:
            yield before + 1, after


def cuts_of(starts: NDArray[np.int64], first: int, last: int, n_threads: int) -> list[int]:
    """Where the part of each thread begins and ends: as many samples for one as for another."""
    n_threads = worth(int(starts[last] - starts[first]), n_threads)
    if n_threads == 1:
        return [first, last]
    goals = np.linspace(starts[first], starts[last], n_threads + 1)
    cuts = np.unique(np.clip(np.searchsorted(starts, goals), first, last))
    cuts[0], cuts[-1] = first, last
    found: list[int] = cuts.tolist()
    return found


def room(size: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]:
    """Room for `solve_small` of queries of at most so many samples; NumPy asks for large pages, kernels do not."""
    return np.empty((2, size)), np.empty((3, size + 2), np.int64), np.empty(n_slots(size), np.int32)


@kernel
def solve_small(
    scores, relevant, starts, first, last, limit, loss, scale, gradient, out, above_pos, order_pos,
    numbers, counters, slot,
):  # fmt: skip
    """Queries first ≤ q < last, grouped: q is scores[starts[q]:starts[q+1]].

    loss: the four items of `LossTables`; and k, of a loss of the first k places without (C2). Each kind is compiled by
    itself, as the length of a tuple is known to the compiler.
    Writes gradient and out[:, q] = (J, Δ), 0 for a query without positives or negatives. If above_pos has rows, row q
    gets c_k at k = 1..P and 0 at 0, and row q of order_pos the positives by descending score.
    numbers (2, n), counters (3, n + 2) and slot, see `slots`, are room to work in, for queries of at most n samples.
    Returns the position after the last query solved, less than `last` if scores there are not within ±limit.
    """
    val, idx, spare, idx_spare, at_rank = numbers[0], counters[0], numbers[1], counters[1], counters[2]
    weights, places = spare, idx_spare  # once all is sorted
    for q in range(first, last):
        part, flags = scores[starts[q] : starts[q + 1]], relevant[starts[q] : starts[q + 1]]
        slopes = gradient[starts[q] : starts[q + 1]]
        n_neg = move_apart(part, flags, spare, idx_spare)
        n_pos = part.shape[0] - n_neg
        out[0, q] = out[1, q] = 0.0
        if not all_within(part, limit):
            return q
        if n_pos == 0 or n_neg == 0:
            for i in range(part.shape[0]):
                slopes[i] = 0.0
            continue
        sort_descending(spare, idx_spare, n_neg, val, idx, slot)
        neg, neg_idx = val[:n_neg], idx[:n_neg]
        level, pos_idx = val[n_neg : n_neg + n_pos], idx[n_neg : n_neg + n_pos]
        sort_descending(spare[n_neg : n_neg + n_pos], idx_spare[n_neg : n_neg + n_pos], n_pos, level, pos_idx, slot)
        weight, discount, tail, per_pair = loss[:4]
        norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
        if len(loss) == 4:
            walk(weights, discount, tail, level, neg, places, np.int64(1), np.int64(1), n_pos + 1)
        else:
            place_by_score(level, neg, places)
            place_first(level, neg, weights, discount, tail, loss[4], n_neg, places)
        ref, unit = middle_by_weight(level, places), 2.0 / (float(n_pos) * float(n_neg))
        for k in range(n_pos + 2):
            at_rank[k] = 0
        total = conclude_sorted(neg, neg_idx, places, np.int64(1), n_pos + 1, n_pos, unit, ref, at_rank, slopes)
        of_pos, lost = finish(weight, discount, tail, norm, level, pos_idx, n_neg, at_rank, ref, slopes)
        out[0, q], out[1, q] = scale * lost + (total + of_pos), lost
        if above_pos.shape[0] > 0:
            above_pos[q, 0] = 0
            for i in range(n_pos):
                above_pos[q, i + 1], order_pos[q, i] = at_rank[i + 1], pos_idx[i]
    return last
