"""The fast engine for small queries, and those of many positives: sort, then let the positives walk down the negatives.

Sorting is by counting and by digits, O(N) unless many scores agree in 32 bits; the walk is that of walk.py, O(N + P).
Queries follow each other in one compiled loop.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, kernel
from rankwise.kernels.cutoff import place_first
from rankwise.kernels.flags import all_within
from rankwise.kernels.positives import (
    discounted_loss,
    finish_positives,
    middle_by_weight,
    place_by_score,
    scaled_weights,
)
from rankwise.kernels.sorting import move_apart, sort_descending
from rankwise.kernels.walk import conclude_sorted, walk


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
        total = conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes)
        lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
        out[0, q], out[1, q] = scale * lost + total, lost
        if above_pos.shape[0] > 0:
            above_pos[q, 0] = 0
            for i in range(n_pos):
                above_pos[q, i + 1], order_pos[q, i] = at_rank[i + 1], pos_idx[i]
    return last


@inline
def conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes):
    """Gradients from the negatives above each positive, which at_rank gets, too; Σ gradient·(score − some score)."""
    n_pos, n_neg = level.shape[0], neg.shape[0]
    ref = middle_by_weight(level, places)
    for k in range(n_pos + 2):
        at_rank[k] = 0
    unit = 2.0 / (float(n_pos) * float(n_neg))
    total = conclude_sorted(neg, neg_idx, places, np.int64(1), n_pos + 1, n_pos, unit, ref, at_rank, slopes)
    return total + finish_positives(level, pos_idx, n_pos, at_rank, n_neg, ref, slopes)
