"""Chakrabarti, Khanna, Sawant, Bhattacharyya 2008: the greedy for NDCG, optionally with a cut-off k.

Negatives from the highest down each take the best of all ranks, but none above the one before. With a convex discount
that is exact. With the authors' own, D(1) = D(2) = 1 and D(m) = 1/log2(m), or with a cut-off, it is not: the paper's
appendix has the counter-example. Without a cut-off O(N log N + PN); with D(m) = 0 for m ≥ k, only the k highest
negatives feel the loss and only at the k highest places: O((N + P) log(N + P) + k²). Sums round as in yue.py.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.steps import discount_at


@kernel
def greedy(pos, neg, weight, discount, tail, k):
    """Ranks in the order of neg, D(m) being 0 for m ≥ k."""
    sorted_neg, order = order_descending(neg)
    result = np.empty(neg.shape[0], np.int64)
    n_pos = pos.shape[0]
    prefix = np.zeros(n_pos + 1)
    for i in range(n_pos):
        prefix[i + 1] = prefix[i] + pos[i]
    floor = 1  # the rank of the negative before
    merged = 0  # positives that score at least as high as this negative
    for j in range(1, neg.shape[0] + 1):
        score = sorted_neg[j - 1]
        while merged < n_pos and pos[merged] >= score:
            merged += 1
        best, value, top = 1, 0.0, 0.0
        felt = min(n_pos, k - j)  # beyond, i + j > k: D(i + j − 1) = D(i + j) = 0
        previous = discount_at(discount, tail, j) if j < k else 0.0
        for i in range(1, felt + 1):
            current = discount_at(discount, tail, i + j) if i + j < k else 0.0
            value += pos[i - 1] - score - weight[i - 1] * (previous - current)
            previous = current
            if value >= top:
                best, top = i + 1, value
        if merged > felt:  # where no loss is felt, ranks up to that of the scores alone gain, and the others lose
            value += prefix[merged] - prefix[max(felt, 0)] - (merged - max(felt, 0)) * score
            if value >= top:
                best = merged + 1
        floor = max(floor, best)
        result[order[j - 1]] = floor
    return result
