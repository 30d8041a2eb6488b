"""Mohapatra, Jawahar, Kumar 2014: sort all negatives, then evaluate few of them. O(N log N + P log N).

Optimal ranks never fall along the sorted negatives, so that equal ranks at both ends of a stretch fill it.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.algorithm1 import TRACE_COLUMNS, opt_ranks
from rankwise.kernels.compiled import kernel
from rankwise.kernels.sorting import order_descending


@kernel
def fill_sorted(pos, neg, weight, discount, tail):
    """Algorithm 1's recursion on sorted negatives, where nothing is left to select."""
    n = neg.shape[0]
    sorted_neg, order = order_descending(neg)
    rank, result, work = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(3, np.int64)
    opt_ranks(weight, discount, tail, pos, sorted_neg, order, rank, 1, work, np.empty((0, TRACE_COLUMNS), np.int64))
    for q in range(n):
        result[order[q]] = rank[q]
    return result
