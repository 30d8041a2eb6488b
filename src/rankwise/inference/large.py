"""The fast engine for one large query: the steps of bucketed.py over blocks of the data, shared among threads.

Everything that is added up is added up per block of a fixed size, or in integers, so that the number of threads
changes nothing. The buckets are kept in the memory of the gradient that is to replace them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.inference import charts
from rankwise.inference.buckets import count
from rankwise.inference.compiled import kernel
from rankwise.inference.edges import (
    BUCKET,
    REGION_COLUMNS,
    START,
    STOP,
    assign,
    bracket,
    cumulate,
    grade,
)  # fmt: skip
from rankwise.inference.positives import discounted_loss, finish_positives, scaled_weights, sort_descending
from rankwise.inference.problem import Solution
from rankwise.inference.quicksort import STACK_ROWS
from rankwise.inference.regions import solve_regions, solve_tie
from rankwise.inference.steps import rank_by_discount
from rankwise.inference.threads import run
from rankwise.loss_forms import LossTables

BLOCK = 1 << 16
# A divided bucket with at least this share of the negatives is looked at for one frequent score, and so many of them.
_FREQUENT = 1 / 64
_MOST_FREQUENT = 16


class Ties(NamedTuple):
    """Frequent scores within divided buckets, their gradients, and members above and below them by thread."""

    score: NDArray[np.floating]
    slope: NDArray[np.float64]
    around: NDArray[np.int64]  # (threads, 2·frequent scores)
    regions: NDArray[np.int64]


def solve_large(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    tables: LossTables,
    scale: float,
    limit: float,
    n_threads: int,
) -> Solution | None:
    """Solve one query with positives and negatives; None if a score is not within ±limit."""
    n = scores.shape[0]
    weight, discount, tail, per_pair = tables
    work = np.zeros(3, np.int64)
    idx = positions(relevant, np.empty(int(np.count_nonzero(relevant)), np.int64))
    n_pos, n_neg = idx.size, n - idx.size
    pos = scores[idx].astype(np.float64)
    sort_descending(pos, idx, n_pos, np.empty(n_pos), np.empty_like(idx), np.empty(2 * n_pos + 1, np.int64), work)
    weights = np.empty(n_pos)
    norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
    unit = 2.0 / (float(n_pos) * float(n_neg))

    # Pass 1: buckets and their counts.
    sample = charts.draw(scores)
    chart = charts.choose(sample, _n_buckets(n, n_pos))
    n_buckets = chart.n_buckets
    gradient = np.empty_like(scores)
    bucket = gradient.view(np.uint32 if gradient.itemsize == 4 else np.uint64)
    parts = _parts(n, n_threads)
    hist = np.zeros((len(parts), n_buckets + 1), np.uint32)
    fine = run(count, [(scores[p], limit, chart, bucket[p], hist[t]) for t, p in enumerate(parts)])
    if not all(fine):
        return None
    withdraw(idx, np.array([p.stop for p in parts]), bucket, hist, n_buckets)

    # Algorithm 1 over the edges.
    above, bound = np.empty(n_buckets + 1, np.int64), np.empty(n_buckets + 1, np.int64)
    value = np.zeros(n_buckets + 1, np.float32 if n_pos < 1 << 24 else np.float64)  # whole numbers: exact
    at_rank = np.zeros(n_pos + 2, np.int64)
    regions = np.empty((n_buckets, REGION_COLUMNS), np.int64)
    cumulate(hist.sum(axis=0, dtype=np.int64), n_buckets, above)
    bracket(weights, discount, tail, pos, n_pos, chart, above, bound, np.empty((6, n_pos + 2), np.int64))
    regions = regions[: grade(above, bound, n_buckets, n_pos, value, at_rank, regions)]

    # Pass 2: gradients of undivided buckets, members of the others.
    loss_data = (weights, discount, tail, pos, n_pos)
    ties = _frequent_scores(loss_data, scores, bucket, parts, sample, chart, regions, unit, value, at_rank)
    n_plain = regions.shape[0]
    regions = np.concatenate([regions, ties.regions])
    sizes = regions[:, STOP] - regions[:, START]
    regions[:, STOP] = np.cumsum(sizes)
    regions[:, START] = regions[:, STOP] - sizes
    by_part = np.concatenate([hist[:, regions[:n_plain, BUCKET]].astype(np.int64), ties.around], axis=1)
    cursor = regions[:, START] + np.cumsum(by_part, axis=0) - by_part
    gathered = int(sizes.sum())
    mixed, index, rank = np.empty(gathered), np.empty(gathered, np.int64), np.empty(gathered, np.int64)
    partial = np.zeros(-(-n // BLOCK) + regions.shape[0])
    shared = (scores, bucket, value, unit, mixed, index, n_plain, ties.score, ties.slope, gradient, partial)
    run(assign_blocks, [(p.start, p.stop, cursor[t], *shared) for t, p in enumerate(parts)])

    # Algorithm 1 proper on those.
    cuts = np.searchsorted(regions[:, STOP], np.linspace(0, gathered, len(parts) + 1)[1:-1])
    cuts = np.concatenate([[0], cuts, [regions.shape[0]]])
    of_regions = partial[-(-n // BLOCK) :]
    ranked = np.zeros((len(parts), n_pos + 2), np.int64)
    run(
        solve_regions,
        [
            (*loss_data, regions, cuts[t], cuts[t + 1], mixed, index, rank, unit, ranked[t], gradient, of_regions,
             np.empty((STACK_ROWS, 5), np.int64), np.zeros(3, np.int64))
            for t in range(len(parts))
        ],
    )  # fmt: skip
    at_rank += ranked.sum(axis=0)
    total = float(partial.sum()) + finish_positives(pos, idx, n_pos, at_rank, n_neg, gradient)
    lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
    return Solution(scale * lost + total, lost, gradient, at_rank[: n_pos + 1], idx)


def _n_buckets(n: int, n_pos: int) -> int:
    """A power of two: few members a bucket, few changes of rank a bucket, and within the second-level cache."""
    wanted = max(n // 16, 32 * n_pos)
    return int(min(max(1 << (wanted - 1).bit_length(), 1 << 10), 1 << 16 if n_pos < 8192 else 1 << 18))


def _parts(n: int, n_threads: int) -> list[slice]:
    """Slices of whole blocks, one a thread."""
    blocks = -(-n // BLOCK)
    n_parts = min(n_threads, blocks)
    cuts = [min(n, blocks * t // n_parts * BLOCK) for t in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def _frequent_scores(loss_data, scores, bucket, parts, sample, chart, regions, unit, value, at_rank):
    """Take the scores that fill a divided bucket out of its region: one tie needs counting, not gathering."""
    n_pos = loss_data[-1]
    sizes = regions[:, STOP] - regions[:, START]
    share = max(int(scores.shape[0] * _FREQUENT), 1024)
    large = np.flatnonzero(sizes >= share)
    large = large[np.argsort(-sizes[large], kind="stable")][:_MOST_FREQUENT]
    found: list[tuple[float, float, list[NDArray[np.int64]], list[list[int]]]] = []
    if large.size:
        of_sample = np.empty(sample.size, np.uint64)
        count(sample, np.inf, chart, of_sample, np.zeros(chart.n_buckets + 1, np.uint32))
    stack = np.empty((STACK_ROWS, 5), np.int64)
    for r in large:
        _, _, j, low, high, b = (int(x) for x in regions[r])
        seen, times = np.unique(sample[of_sample == b], return_counts=True)
        if seen.size == 0 or 4 * times.max() < times.sum():
            continue
        score = seen[np.argmax(times)]
        tally = np.array(run(tally_around, [(scores[p], bucket[p], b, scores.dtype.type(score)) for p in parts]))
        equal, higher = (int(x) for x in tally[:, :2].sum(axis=0))
        if 4 * equal < sizes[r]:
            continue
        lower = int(sizes[r]) - equal - higher
        first = rank_by_discount(*loss_data[:4], score, j + higher, low, high)
        last = rank_by_discount(*loss_data[:4], score, j + higher + equal - 1, low, high)
        mean = solve_tie(*loss_data[:4], score, j + higher, equal, first, last, at_rank, stack)
        slope = unit * (n_pos + 1 - mean)
        regions[r, STOP] = regions[r, START]
        value[b] = -1 - regions.shape[0] - len(found)
        pieces = [[0, higher, j, low, first, b], [0, lower, j + higher + equal, last, high, b]]
        found.append((score, slope, [tally[:, 1], tally[:, 2]], pieces))
    return Ties(
        np.array([f[0] for f in found], scores.dtype),
        np.array([f[1] for f in found]),
        np.array([column for f in found for column in f[2]], np.int64).reshape(-1, len(parts)).T,
        np.array([piece for f in found for piece in f[3]], np.int64).reshape(-1, REGION_COLUMNS),
    )


@kernel
def positions(relevant, idx):
    """Fill idx with the positions where relevant is true, eight samples at a time."""
    n = relevant.shape[0]
    words = relevant[: n - n % 8].view(np.uint64)
    at = 0
    for word in range(words.shape[0]):
        if words[word] != 0:
            for k in range(8 * word, 8 * word + 8):
                if relevant[k]:
                    idx[at] = k
                    at += 1
    for k in range(n - n % 8, n):
        if relevant[k]:
            idx[at] = k
            at += 1
    return idx


@kernel
def withdraw(idx, stops, bucket, hist, n_buckets):
    """Take the positives out of the counts, into a bucket of their own whose gradient is overwritten."""
    for k in idx:
        part = 0
        while k >= stops[part]:
            part += 1
        hist[part, bucket[k]] -= np.uint32(1)
        bucket[k] = n_buckets


@kernel
def tally_around(scores, bucket, b, score):
    """Members of bucket b that equal a score, are above it, are below it."""
    equal = above = below = 0
    for k in range(scores.shape[0]):
        inside = bucket[k] == b
        equal += np.int64(inside & (scores[k] == score))
        above += np.int64(inside & (scores[k] > score))
        below += np.int64(inside & (scores[k] < score))
    return equal, above, below


@kernel
def assign_blocks(
    start, stop, cursor, scores, bucket, value, unit, mixed, index, n_plain, tie_score, tie_slope, gradient, partial
):
    """`assign` on scores[start:stop], a sum a block."""
    for first in range(start, stop, BLOCK):
        end = min(first + BLOCK, stop)
        partial[first // BLOCK] = assign(
            scores[first:end], bucket[first:end], value, unit, cursor, mixed, index, first, n_plain, tie_score,
            tie_slope, gradient[first:end],
        )  # fmt: skip
