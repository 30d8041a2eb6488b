"""The fast engine for one large query: the steps of passes.py and places.py, the passes shared among threads."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.buckets.choosing import choose
from rankwise.kernels.buckets.passes import BLOCK, COPIES, OWN, assign, count
from rankwise.kernels.buckets.places import find_homes, reference, settle, straighten_homes
from rankwise.kernels.buckets.regions import BUCKET, HIGH, LOW, START, STOP, J, solve_regions
from rankwise.kernels.contract import LossTables
from rankwise.kernels.flags import positions
from rankwise.kernels.positives import finish, scaled_weights
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.threads import run, worth
from rankwise.queries import FoundRanking, Queries, Solved, solved_alone

# A region of at least so many members gets buckets of its own, and one of its regions, and so on so many times.
_DIVIDED, _DEPTH = 1 << 10, 4
# So many positives are not worth another kernel, which would have to be compiled: NumPy sorts them.
_FEW_POSITIVES = 1 << 10
_NOBODY = np.empty(0, np.int64)


class _Query(NamedTuple):
    """What the steps need beside the scores; at_rank counts the negatives per rank."""

    weight: NDArray[np.float64]
    discount: NDArray[np.float64]
    tail: int
    pos: NDArray[np.float64]
    unit: float
    limit: float
    at_rank: NDArray[np.int64]


class _Share(NamedTuple):
    """Negatives j, j + 1, … of the query, which have ranks low … high; depth: how often they may be divided yet."""

    low: int
    high: int
    j: int
    depth: int


def solve_large(
    scores: NDArray[np.floating], queries: Queries, tables: LossTables, scale: float, n_threads: int
) -> Solved:
    """Solve a single query with positives and negatives."""
    n_pos, limit = queries.n_pos, limit_of(scores)
    n_neg = scores.shape[0] - n_pos
    where = np.empty(n_pos + 1, np.int64)
    if positions(queries.relevant, where) != n_pos:
        raise NotFiniteError  # somebody writes to it
    where = where[:n_pos]
    with np.errstate(invalid="ignore"):  # a signalling NaN is looked at
        pos = scores[where].astype(np.float64)
        if not (np.abs(pos) <= limit).all():
            raise NotFiniteError
    by_score = np.argsort(-pos, kind="stable") if n_pos <= _FEW_POSITIVES else order_descending(pos)[1]
    pos, order, weight = pos[by_score], where[by_score], np.empty(n_pos)
    norm = scaled_weights(*tables, n_pos, n_neg, scale, weight)
    unit = 2.0 / (float(n_pos) * float(n_neg))
    query = _Query(weight, tables.discount, tables.tail, pos, unit, limit, np.zeros(n_pos + 2, np.int64))
    gradient = np.empty_like(scores)
    share = _Share(1, n_pos + 1, 1, _DEPTH)
    total, ref = _passes(query, scores, where, share, np.nan, gradient, worth(scores.shape[0], n_threads))
    of_pos, lost = finish(
        tables.weight, tables.discount, tables.tail, norm, pos, order, n_neg, query.at_rank, ref, gradient
    )
    ranking = FoundRanking(gradient, query.at_rank[: n_pos + 1], order)
    return solved_alone(scale * lost + total + of_pos, lost, ranking)


def _passes(
    query: _Query,
    scores: NDArray[np.floating],
    where: NDArray[np.int64],
    share: _Share,
    ref: float,
    gradient: NDArray[np.floating],
    n_threads: int,
) -> tuple[float, float]:
    """Gradients of the negatives among these scores, a share of the query's; Σ gradient·(score − ref), and ref.

    `where` are the positives among the scores.
    """
    low, high, j, depth = share
    # Pass 1: buckets and their counts.
    buckets, pivot = choose(scores, high - low, query.limit)
    n_buckets, rows = (3 * (buckets.last + 1), COPIES) if pivot.size else (buckets.last + 1, 1)
    parts = _parts(scores.shape[0], n_threads)
    hists = [np.zeros((rows, n_buckets + OWN), np.uint32) for _ in parts]
    jobs = [(scores, *part, where, query.limit, buckets, pivot, hist) for part, hist in zip(parts, hists, strict=True)]
    if not all(run(count, jobs)):
        raise NotFiniteError
    # In which buckets the positives have their places.
    of_part = hists[0][:1] if len(parts) == 1 else np.stack([hist[0] for hist in hists])
    whole = of_part[0] if len(parts) == 1 else of_part.sum(axis=0, dtype=np.uint32)
    above, home = np.empty(n_buckets + 1, np.int64), np.empty(high - low, np.int64)
    levels = query.pos[low - 1 : high - 1]
    seen = (query.weight[low - 1 : high - 1], query.discount, query.tail, levels, low + j - 2, buckets, pivot)
    if not find_homes(*seen, whole, above, home):
        straighten_homes(*seen, above, home)
    if ref != ref:
        ref = reference(levels, above, home)
    value = np.empty(n_buckets + OWN, scores.dtype)
    regions, total = settle(
        *query[:4], low, high, j, buckets, pivot, above, home, query.unit, ref, value, query.at_rank
    )
    # Pass 2: gradients of settled buckets, members of the others.
    cursor, ends = _shares(regions, of_part)
    gathered = int(regions[-1, STOP]) if regions.size else 0
    mixed, index = np.empty(gathered), np.empty(gathered, np.int64)
    partial = np.zeros(-(-scores.shape[0] // BLOCK))
    shared = (where, buckets, pivot, value, query.unit, ref)
    fine = run(
        assign,
        [(scores, *p, *shared, cursor[t], ends[t], mixed, index, gradient, partial) for t, p in enumerate(parts)],
    )
    if not all(fine):
        raise NotFiniteError
    total += float(partial.sum())
    # Large regions as this one, unless that has not helped; small ones are sorted.
    is_large = regions[:, STOP] - regions[:, START] >= _DIVIDED
    if depth and is_large.any():
        for region in regions[is_large]:
            total += _divide(query, region, mixed, index, ref, gradient, depth)
        regions = regions[~is_large]
    return total + _solve_regions(query, regions, mixed, index, ref, gradient, worth(gathered, len(parts))), ref


def _shares(regions: NDArray[np.int64], of_part: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From where to where each part (row) of the scores puts its members of each region (column)."""
    if of_part.shape[0] == 1:
        return regions[None, :, START].copy(), regions[None, :, STOP].copy()
    # In C order, for otherwise rows would have a signature, and so a kernel, that rounds in its own way.
    members = of_part[:, regions[:, BUCKET]].astype(np.int64, order="C")
    ends = regions[:, START] + np.cumsum(members, axis=0)
    return ends - members, ends


def _divide(query, region, mixed, index, ref, gradient, depth):
    """Gradients of a large region's members; Σ gradient·(score − ref)."""
    part = slice(region[START], region[STOP])
    slopes = np.empty(part.stop - part.start, gradient.dtype)
    share = _Share(region[LOW], region[HIGH], region[J], depth - 1)
    total, _ = _passes(query, mixed[part].astype(gradient.dtype), _NOBODY, share, ref, slopes, 1)
    gradient[index[part]] = slopes
    return total


def _solve_regions(query, regions, mixed, index, ref, gradient, n_parts):
    """The ranks in regions, divided evenly among threads: gradients, negatives per rank; Σ gradient·(score − ref)."""
    of_regions = np.zeros(regions.shape[0])
    if n_parts == 1:
        args = (0, regions.shape[0], mixed, index, query.unit, ref, query.at_rank, gradient, of_regions)
        solve_regions(*query[:4], regions, *args)
        return float(of_regions.sum())
    cuts = np.linspace(0, regions.shape[0], n_parts + 1).astype(np.int64)
    ranked = np.zeros((n_parts, query.at_rank.size), np.int64)
    run(
        solve_regions,
        [
            (*query[:4], regions, a, b, mixed, index, query.unit, ref, ranked[t], gradient, of_regions)
            for t, (a, b) in enumerate(pairwise(cuts))
        ],
    )
    query.at_rank[:] += ranked.sum(axis=0)
    return float(of_regions.sum())


def _parts(n: int, n_threads: int) -> list[tuple[int, int]]:
    """Where parts of whole blocks begin and end, one a thread."""
    blocks = -(-n // BLOCK)
    n_parts = min(n_threads, blocks)
    return list(pairwise(min(n, blocks * t // n_parts * BLOCK) for t in range(n_parts + 1)))
