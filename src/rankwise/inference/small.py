"""The fast engine for small queries: sort the negatives, then let the positives walk down them, in one compiled loop.

Sorting is a counting sort, O(N) unless scores are very uneven; the walk is that of regions.py, O(N + P).
"""

from __future__ import annotations

import numpy as np

from rankwise.inference.compiled import kernel
from rankwise.inference.flags import all_within, count_true, positions
from rankwise.inference.positives import (
    discounted_loss,
    finish_positives,
    middle_by_weight,
    scaled_weights,
    sort_descending,
)
from rankwise.inference.regions import conclude_sorted, walk


@kernel
def solve_queries(
    scores, relevant, starts, first, last, limit, weight, discount, tail, per_pair, scale, gradient, out, counts,
    above_pos, order_pos,
):  # fmt: skip
    """Queries first ≤ q < last, grouped: q is scores[starts[q]:starts[q+1]].

    Writes gradient, and out[q] = (J, Δ) and counts[q] = (P, N); value 0 for a query without positives or negatives. If
    above_pos has rows, row q gets c_k at k = 1..P and 0 at 0, and row q of order_pos the positives by descending score.
    Returns the position after the last query solved, less than `last` if scores there are not within ±limit.
    """
    nought, one = np.int64(0), np.int64(1)
    size = most = nought  # samples and positives of a query
    for q in range(first, last):
        size = max(size, starts[q + 1] - starts[q])
        most = max(most, count_true(relevant[starts[q] : starts[q + 1]]))
    pos, weights, places, at_rank = (
        np.empty(most),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most + 2, np.int64),
    )
    where, idx = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    neg, neg_idx = np.empty(size + 1), np.empty(size + 1, np.int64)
    spare, idx_spare, slot = np.empty(size), np.empty(size, np.int64), np.empty(2 * size + 1, np.int64)
    work = np.zeros(3, np.int64)
    for q in range(first, last):
        part, flags = scores[starts[q] : starts[q + 1]], relevant[starts[q] : starts[q + 1]]
        slopes = gradient[starts[q] : starts[q + 1]]
        n_pos, n_neg = positions(flags, where), nought
        for k in range(part.shape[0]):  # no branch depends on a flag
            neg[n_neg], neg_idx[n_neg] = part[k], k
            n_neg += one - np.int64(flags[k])
        counts[q, 0], counts[q, 1] = n_pos, n_neg
        out[q, 0] = out[q, 1] = 0.0
        if not all_within(part, limit):
            return q
        if n_pos == 0 or n_neg == 0:
            slopes[:] = 0.0
            continue
        for k in range(n_pos):
            pos[k], idx[k] = part[where[k]], where[k]
        sort_descending(pos, idx, n_pos, spare, idx_spare, slot, work)
        sort_descending(neg, neg_idx, n_neg, spare, idx_spare, slot, work)
        norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
        unit, level = 2.0 / (float(n_pos) * float(n_neg)), pos[:n_pos]
        walk(weights, discount, tail, level, neg, places, nought, n_neg, one, one, n_pos + 1)
        ref = middle_by_weight(level, places)
        at_rank[: n_pos + 2] = 0
        total = conclude_sorted(
            neg, neg_idx, places, nought, n_neg, one, n_pos + 1, unit, ref, n_pos + 1, at_rank, slopes
        )
        total += finish_positives(level, idx, n_pos, at_rank, n_neg, ref, slopes)
        lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
        out[q, 0] = scale * lost + total
        out[q, 1] = lost
        if above_pos.shape[0] > 0:
            above_pos[q, 0] = 0
            for k in range(n_pos):
                above_pos[q, k + 1], order_pos[q, k] = at_rank[k + 1], idx[k]
    return last
