"""Exact inference for the F-measure at the best threshold: a sort, then the level of best_threshold.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.best_threshold import best_level
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.cutoff import place_by_score
from rankwise.kernels.engine import cuts_of, room
from rankwise.kernels.small import begin_query, conclude_query, note_ranking
from rankwise.kernels.sorting import slots
from rankwise.kernels.threads import run
from rankwise.queries import FoundRanking, Queries, Solved


def solve(scores: NDArray[np.floating], queries: Queries, scale: float, n_threads: int) -> Solved:
    """Solve queries one after the other, evenly divided among threads."""
    starts, n_pos = queries.starts, queries.n_pos
    n_queries = starts.shape[0] - 1
    out, counts, gradient = np.empty((2, n_queries)), np.empty((2, n_queries), np.int64), np.empty_like(scores)
    one = int(n_queries == 1 and 0 < n_pos < scores.shape[0])
    above, positives = np.empty((one, n_pos + 1), np.int64), np.empty((one, n_pos), np.int64)
    how = (limit_of(scores), scale, gradient, out, counts, above, positives)
    cuts = cuts_of(starts, 0, n_queries, n_threads)
    most = int(queries.sizes.max(initial=0))
    jobs = [(scores, queries.relevant, starts, a, b, *how, *room(most)) for a, b in pairwise(cuts)]
    if any(stop < b for stop, b in zip(run(solve_queries, jobs), cuts[1:], strict=True)):
        raise NotFiniteError
    ranking = FoundRanking(gradient, above[0], positives[0]) if one else None
    return Solved(out[0], out[1], counts[0], counts[1], gradient, ranking)


@kernel
def solve_queries(
    scores, relevant, starts, first, last, limit, scale, gradient, out, counts, above_pos, order_pos, numbers, counters
):
    """`solve_small` of small.py for the F-measure."""
    val, idx, spare, idx_spare, at_rank = numbers[0], counters[0], numbers[1], counters[1], counters[2]
    places, high, low = idx_spare, spare, np.empty(numbers.shape[1] + 1)  # once all is sorted
    slot = slots(numbers.shape[1] + 1)
    for q in range(first, last):
        part, flags = scores[starts[q] : starts[q + 1]], relevant[starts[q] : starts[q + 1]]
        slopes = gradient[starts[q] : starts[q + 1]]
        n_pos = begin_query(q, part, flags, limit, out, counts, slopes, val, idx, spare, idx_spare, slot)
        if n_pos < 0:
            return q
        if n_pos == 0:
            continue
        n_neg = part.shape[0] - n_pos
        neg, neg_idx = val[:n_neg], idx[:n_neg]
        level, pos_idx = val[n_neg : n_neg + n_pos], idx[n_neg : n_neg + n_pos]
        place_by_score(level, neg, places)
        raise_places(level, neg, high, low, scale, places)
        total = conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes)
        lost = f_loss(at_rank, n_pos)
        out[0, q], out[1, q] = scale * lost + total, lost
        note_ranking(q, pos_idx, at_rank, above_pos, order_pos)
    return last


@part
def raise_places(pos, neg, high, low, scale, places):
    """From c*_k to the best c_k, in places. high, low: N + 1 numbers to work in."""
    n_pos = pos.shape[0]
    num, den = best_level(pos, neg, high, low, places[:n_pos], scale)
    for k in range(1, n_pos + 1):
        places[k - 1] = max(places[k - 1], -(-k * num // den) - n_pos)


@part
def f_loss(above, n_pos):
    """Δ = 1 − max_k 2k/(k + c_k + P) = min_k (c_k + P − k)/(c_k + P + k), above[k] = c_k for 1 ≤ k ≤ P."""
    least = 1.0
    for k in range(1, n_pos + 1):
        least = min(least, float(above[k] + n_pos - k) / float(above[k] + n_pos + k))
    return least
