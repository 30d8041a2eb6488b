"""The fast engine for small queries, and those of many positives: sort, then let the positives walk down the negatives.

Sorting is by counting and by digits, O(N) unless many scores agree in 32 bits; the walk is that of regions.py,
O(N + P). Queries follow each other in one compiled loop.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, kernel
from rankwise.kernels.flags import all_within, count_true
from rankwise.kernels.positives import discounted_loss, finish_positives, middle_by_weight, scaled_weights
from rankwise.kernels.regions import conclude_sorted, walk
from rankwise.kernels.sorting import negatives_first, slots, sort_descending


@kernel
def solve_small(
    scores, relevant, starts, first, last, limit, weight, discount, tail, per_pair, scale, gradient, out, counts,
    above_pos, order_pos, numbers, counters,
):  # fmt: skip
    """Queries first ≤ q < last, grouped: q is scores[starts[q]:starts[q+1]].

    Writes gradient, out[:, q] = (J, Δ) and counts[:, q] = (P, N); J is 0 for a query without positives or negatives. If
    above_pos has rows, row q gets c_k at k = 1..P and 0 at 0, and row q of order_pos the positives by descending score.
    numbers (2, n) and counters (3, n + 2) are room to work in, for queries of at most n samples.
    Returns the position after the last query solved, less than `last` if scores there are not within ±limit.
    """
    nought, one = np.int64(0), np.int64(1)
    val, idx, spare, idx_spare, at_rank = numbers[0], counters[0], numbers[1], counters[1], counters[2]
    weights, places = spare, idx_spare  # once all is sorted
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
        norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
        walk(weights, discount, tail, level, neg, places, nought, n_neg, one, one, n_pos + 1)
        total = conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes)
        lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
        out[0, q] = scale * lost + total
        out[1, q] = lost
        note_ranking(q, pos_idx, at_rank, above_pos, order_pos)
    return last


@inline
def begin_query(q, part, flags, limit, out, counts, slopes, val, idx, spare, idx_spare, slot):
    """Count and sort one query: negatives first in val and idx, then positives. P; 0 if there is nothing to rank.

    −1 if a score is not within ±limit.
    """
    n_pos = count_true(flags)
    n_neg = part.shape[0] - n_pos
    counts[0, q], counts[1, q] = n_pos, n_neg
    out[0, q] = out[1, q] = 0.0
    if not all_within(part, limit):
        return np.int64(-1)
    if n_pos == 0 or n_neg == 0:
        slopes[:] = 0.0
        return np.int64(0)
    negatives_first(part, flags, n_neg, val, idx, spare, idx_spare, slot)
    sort_descending(val[n_neg : n_neg + n_pos], idx[n_neg : n_neg + n_pos], n_pos, spare, idx_spare, slot)
    return np.int64(n_pos)


@inline
def conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes):
    """Gradients from the negatives above each positive, which at_rank gets, too; Σ gradient·(score − some score)."""
    n_pos, n_neg = level.shape[0], neg.shape[0]
    ref = middle_by_weight(level, places)
    at_rank[: n_pos + 2] = 0
    nought, one, worst = np.int64(0), np.int64(1), n_pos + 1
    unit = 2.0 / (float(n_pos) * float(n_neg))
    total = conclude_sorted(neg, neg_idx, places, nought, n_neg, one, worst, unit, ref, worst, at_rank, slopes)
    return total + finish_positives(level, pos_idx, n_pos, at_rank, n_neg, ref, slopes)


@inline
def note_ranking(q, pos_idx, at_rank, above_pos, order_pos):
    """Row q of above_pos and order_pos, if there are rows."""
    if above_pos.shape[0] > 0:
        above_pos[q, 0] = 0
        for k in range(pos_idx.shape[0]):
            above_pos[q, k + 1], order_pos[q, k] = at_rank[k + 1], pos_idx[k]
