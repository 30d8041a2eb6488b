"""Yue, Finley, Radlinski, Joachims 2007: sort all negatives, then try every rank for each. O(N log N + PN)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.compiled import kernel
from rankwise.inference.positives import order_descending
from rankwise.inference.problem import Problem
from rankwise.inference.steps import discount_at


def ranks(problem: Problem) -> NDArray[np.int64]:
    """The optimal interleaving rank of each negative."""
    return scan_all(problem.pos, problem.neg, problem.weight, problem.discount, problem.tail, problem.table)


@kernel
def scan_all(pos, neg, weight, discount, tail, table):
    """For each negative, from the highest down, the best of all P + 1 ranks."""
    sorted_neg, order = order_descending(neg)
    result = np.empty(neg.shape[0], np.int64)
    for j in range(1, neg.shape[0] + 1):
        score = sorted_neg[j - 1]
        best, value = 1, 0.0  # value: of f_j since the best rank
        previous = discount_at(discount, tail, j)
        for i in range(1, pos.shape[0] + 1):
            if table.shape[0] > 0:
                value += pos[i - 1] - score + table[j - 1, i - 1]
            else:
                current = discount_at(discount, tail, i + j)
                value += pos[i - 1] - score - weight[i - 1] * (previous - current)
                previous = current
            if value >= 0.0:
                best, value = i + 1, 0.0
        result[order[j - 1]] = best
    return result
