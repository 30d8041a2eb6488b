"""The fast engine: queries of a loss with a discount, small ones by a sort and large ones by buckets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.buckets.large import solve_large
from rankwise.kernels.contract import AnyLoss
from rankwise.kernels.cutoff import solve_large_cut
from rankwise.kernels.small import solve_small
from rankwise.kernels.sorting import n_slots
from rankwise.kernels.threads import run, worth
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
    n, n_pos = scores.shape[0], queries.n_pos
    if _is_one(scores, queries):
        if k is not None:
            loss.normaliser(n_pos, n - n_pos)
        else:
            loss.check(n_pos, n - n_pos)
        return _solve_one(scores, queries, loss, scale, n_threads, k)
    if k is not None:
        loss.normaliser(*queries.counts[:, queries.counts.min(axis=0) > 0])
    elif not loss.proven:
        loss.check(*queries.counts)
    return _solve_many(scores, queries, loss, scale, n_threads, k)


def _is_one(scores: NDArray[np.floating], queries: Queries) -> bool:
    """Whether this is a single query, with positives and negatives."""
    return queries.starts.shape[0] == 2 and 0 < queries.n_pos < scores.shape[0]


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
    loss.normaliser(*queries.counts[:, queries.counts.min(axis=0) > 0])
    how = _solve_one if _is_one(scores, queries) else _solve_many
    found = how(scores, queries, loss, 0.0, n_threads, None)
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
    out, counts, gradient = np.empty((2, 1)), np.empty((2, 1), np.int64), np.empty(n)
    found = (gradient, out, counts, above, positives)
    how = (limit_of(scores), _loss_arguments(loss, n_pos, n, k), scale)
    wide = _as_double(scores)
    if not solve_small(wide, queries.relevant, queries.starts, 0, 1, *how, *found, *room(n)):
        raise NotFiniteError
    ranking = FoundRanking(gradient.astype(scores.dtype, copy=False), above[0], positives[0])
    return Solved(out[0], out[1], counts[0], counts[1], ranking.gradient, ranking)


def _solve_many(
    scores: NDArray[np.floating], queries: Queries, loss: AnyLoss, scale: float, n_threads: int, k: int | None
) -> Solved:
    """Solve queries one after the other, the small ones in compiled loops, evenly divided among threads."""
    n_queries = queries.starts.shape[0] - 1
    out, counts = np.zeros((2, n_queries)), np.zeros((2, n_queries), np.int64)
    solved = Solved(out[0], out[1], counts[0], counts[1], np.empty_like(scores))
    large = np.flatnonzero(queries.sizes >= LARGE)
    for q in large:
        _solve_alone(scores, queries, int(q), loss, scale, n_threads, k, solved)
    for first, last in runs_between(large, n_queries):
        most = int(queries.sizes[first:last].max())
        cuts = cuts_of(queries.starts, first, last, n_threads)
        how, found = (limit_of(scores), _loss_arguments(loss, most, most, k), scale), (out, counts)
        whole = (scores, queries, solved.gradient, most, how, found)
        stops = run(_solve_run, [(*whole, a, b) for a, b in pairwise(cuts)])
        if any(stop < b for stop, b in zip(stops, cuts[1:], strict=True)):
            raise NotFiniteError
    return solved


def _solve_run(
    scores: NDArray[np.floating],
    queries: Queries,
    gradient: NDArray[np.floating],
    most: int,
    how: tuple[Any, ...],
    found: tuple[Any, ...],
    first: int,
    last: int,
) -> int:
    """`solve_small` for queries first ≤ q < last; of float32, a few at a time, in copies that stay in the caches."""
    starts, rest = queries.starts, (*found, _NO_RANKING, _NO_RANKING, *room(most))
    if scores.dtype == np.float64:
        return int(solve_small(scores, queries.relevant, starts, first, last, *how, gradient, *rest))
    copies = np.empty((2, min(_AT_ONCE, int(starts[last] - starts[first])) + most))
    while first < last:
        stop = max(int(np.searchsorted(starts, starts[first] + _AT_ONCE, side="right")) - 1, first + 1)
        stop, own = min(stop, last), slice(starts[first], starts[min(stop, last)])
        wide, slopes = copies[:, : own.stop - own.start]
        with np.errstate(invalid="ignore"):  # a signalling NaN is found by the kernel
            wide[:] = scores[own]
        if solve_small(wide, queries.relevant[own], starts - own.start, first, stop, *how, slopes, *rest) < stop:
            break
        gradient[own], first = slopes, stop
    return first


def _as_double(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return scores in the type that the kernels for small queries are compiled for."""
    if scores.dtype == np.float64:
        return cast("NDArray[np.float64]", scores)
    with np.errstate(invalid="ignore"):  # a signalling NaN is found by the kernel
        return scores.astype(np.float64)


def _loss_arguments(loss: AnyLoss, n_pos: int, n: int, k: int | None) -> tuple[Any, ...]:
    """What `solve_small` is told of the loss. A plain tuple: Numba takes a named one apart far more slowly."""
    tables = tuple(loss.tables(n_pos, n))
    return tables if k is None else (*tables, k)


def _solve_alone(
    scores: NDArray[np.floating],
    queries: Queries,
    q: int,
    loss: AnyLoss,
    scale: float,
    n_threads: int,
    k: int | None,
    solved: Solved,
) -> None:
    """A large query among others."""
    part = slice(queries.starts[q], queries.starts[q + 1])
    own, alone = scores[part], single_query(queries.relevant[part])
    solved.n_pos[q], solved.n_neg[q] = alone.n_pos, own.shape[0] - alone.n_pos
    if 0 < alone.n_pos < own.shape[0]:
        found = _solve_one(own, alone, loss, scale, n_threads, k)
        solved.value[q], solved.loss[q], solved.gradient[part] = found.value[0], found.loss[0], found.gradient
    elif (np.abs(own) <= limit_of(own)).all():
        solved.gradient[part] = 0.0
    else:
        raise NotFiniteError


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
