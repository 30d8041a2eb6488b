"""Yue, Finley, Radlinski, Joachims 2007: sort all negatives, then try every rank for each. O(N log N + PN).

As published, f_j is summed from the first rank on: beside a positive 10¹² times as far off, the others round away.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.steps import discount_at


@kernel
def scan_all(pos, neg, weight, discount, tail):
    """For each negative, from the highest down, the best of all P + 1 ranks."""
    sorted_neg, order = order_descending(neg)
    result = np.empty(neg.shape[0], np.int64)
    for j in range(1, neg.shape[0] + 1):
        score = sorted_neg[j - 1]
        best, value, top = 1, 0.0, 0.0
        previous = discount_at(discount, tail, j)
        for i in range(1, pos.shape[0] + 1):
            current = discount_at(discount, tail, i + j)
            value += pos[i - 1] - score - weight[i - 1] * (previous - current)
            previous = current
            if value >= top:
                best, top = i + 1, value
        result[order[j - 1]] = best
    return result
