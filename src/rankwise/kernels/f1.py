"""Exact inference for the F-measure at the best threshold: a sort, then the level of best_threshold.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.best_threshold import best_level
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.positives import finish_positives, middle_by_weight, place_by_score
from rankwise.kernels.sorting import interval_of, order_descending
from rankwise.queries import FoundRanking, Queries, Solved, solved_alone

# Intervals a bar: in most of them is none; and how many in all, so that they stay in the caches.
_INTERVALS, _MOST_INTERVALS = 16, 1 << 16


def solve_large_f(scores: NDArray[np.floating], queries: Queries, scale: float) -> Solved:
    """Solve a single large query: its negatives are sorted without their positions, to save memory."""
    n_pos, limit = queries.n_pos, limit_of(scores)
    with np.errstate(invalid="ignore"):  # a signalling NaN is looked at
        where, neg = np.flatnonzero(queries.relevant), scores[~queries.relevant]
        np.negative(neg, out=neg)
        neg.sort()
        np.negative(neg, out=neg)
        pos, by_score = order_descending(scores[where].astype(np.float64))
    if pos.size != n_pos or not (np.abs(np.concatenate([pos, neg[[0, -1]]])) <= limit).all():  # a NaN would be last
        raise NotFiniteError
    n_neg, order = neg.size, where[by_score]
    at_rank, bars, below = np.zeros(n_pos + 2, np.int64), np.empty(2 * n_pos), np.empty(2 * n_pos + 1)
    total, ref, n_bars = rank_sorted(pos, neg, scale, at_rank, bars, below)
    del neg  # before there is a gradient
    gradient = np.empty_like(scores)
    of_pos, lost = write_by_bars(scores, bars[:n_bars], below, pos, order, at_rank, ref, gradient)
    return solved_alone(scale * lost + total + of_pos, lost, n_neg, FoundRanking(gradient, at_rank[: n_pos + 1], order))


@kernel
def rank_sorted(pos, neg, scale, at_rank, bars, below):
    """Negatives per rank, and what they have by score: Σ gradient·(score − ref), ref, and how many bars there are.

    pos, neg: in descending order. The mean of P + 1 − rank of the negatives of one score is below[b] if b bars, which
    descend, are at least that score.
    """
    n_pos, n_neg = pos.shape[0], neg.shape[0]
    places, unit, total, at = np.empty(n_pos, np.int64), 2.0 / (float(n_pos) * float(n_neg)), 0.0, np.int64(0)
    place_by_score(pos, neg, places)
    raise_places(pos, neg, scale, places)
    ref = middle_by_weight(pos, places)
    for k in range(n_pos):
        in_all = 0.0
        for j in range(at, places[k]):
            in_all += neg[j] - ref
        total += unit * float(n_pos - k) * in_all
        at_rank[k + 1], at = places[k] - at, places[k]
    return total, ref, find_bars(neg, places, bars, below)


@part
def find_bars(neg, places, bars, below):
    """Fill bars and below, see `rank_sorted`; how many bars."""
    n_pos, n_neg, n_bars, k = places.shape[0], neg.shape[0], 0, 0
    below[0] = n_pos
    while k < n_pos and places[k] < n_neg:
        first = last = c = places[k]
        if c > 0 and neg[c - 1] == neg[c]:  # ranks change amid a tie, which shares its mean
            while first > 0 and neg[first - 1] == neg[c]:
                first -= 1
            while last < n_neg and neg[last] == neg[c]:
                last += 1
            total = 0
            while k < n_pos and places[k] < last:
                total += places[k] - first
                k += 1
            bars[n_bars], below[n_bars + 1] = neg[c], (n_pos - k) + float(total) / float(last - first)
            n_bars += 1
        else:
            while k < n_pos and places[k] == c:
                k += 1
        if last < n_neg:
            bars[n_bars], below[n_bars + 1] = neg[last], n_pos - k
            n_bars += 1
    return n_bars


@kernel
def write_by_bars(scores, bars, below, pos, order, at_rank, ref, gradient):
    """Gradients of the negatives by their scores, then those of the positives; Σ gradient·(score − ref) of these, Δ.

    c_k replaces at_rank[k].
    """
    n_pos, n_bars, one = pos.shape[0], bars.shape[0], np.uint64(1)
    n_neg = scores.shape[0] - n_pos
    n_intervals, high, rate = min(_INTERVALS * n_bars, _MOST_INTERVALS) + 1, 0.0, 0.0
    unit, last = 2.0 / (float(n_pos) * float(n_neg)), float(n_intervals - 1)
    if n_bars > 0 and bars[0] > bars[-1]:
        high, rate = bars[0], last / (bars[0] - bars[-1])
    begin = np.zeros(n_intervals + 1, np.int32)  # how many bars are in the intervals before one
    for b in range(n_bars):
        begin[interval_of(bars[b], high, rate, last) + 1] += 1
    for b in range(n_intervals):
        begin[b + 1] += begin[b]
    for k in range(scores.shape[0]):
        score = np.float64(scores[k])
        interval = np.uint64(interval_of(score, high, rate, last))
        at = np.uint64(begin[interval])
        size = np.uint64(begin[interval + one]) - at
        while size > np.uint64(0):
            half = (size + one) >> one
            at += half * np.uint64(bars[at + half - one] >= score)
            size -= half
        gradient[k] = unit * below[at]
    total = finish_positives(pos, order, n_pos, at_rank, n_neg, ref, gradient)
    return total, f_loss(at_rank, n_pos)


@part
def raise_places(pos, neg, scale, places):
    """From c*_k to the best c_k, in places."""
    n_pos = pos.shape[0]
    num, den = best_level(pos, neg, places[:n_pos], scale)
    for k in range(1, n_pos + 1):
        places[k - 1] = max(places[k - 1], -(-k * num // den) - n_pos)


@part
def f_loss(above, n_pos):
    """Δ = 1 − max_k 2k/(k + c_k + P) = min_k (c_k + P − k)/(c_k + P + k), above[k] = c_k for 1 ≤ k ≤ P."""
    least = 1.0
    for k in range(1, n_pos + 1):
        least = min(least, float(above[k] + n_pos - k) / float(above[k] + n_pos + k))
    return least
