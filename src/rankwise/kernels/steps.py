"""What every method asks of a loss: one step of the objective, and the best rank of one negative.

Ranks i (1..P+1) and indices j (1..N, descending score) are 1-based, as in the paper; arrays are 0-based. The
objective of one negative, f_j(i), is measured in units of 2/(PN), so that (Observation 3)

    f_j(i+1) − f_j(i) = s⁺_i − s*_j + (PN/2)·(δ_j(i+1) − δ_j(i)).

A loss comes as plain arrays: weight (P,), scale·w_i·PN/(2C); discount, D(0..M), with the closed form `tail` beyond M.
(In a tuple they would be reference-counted at every use, which costs as much as a search.)
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, part
from rankwise.kernels.contract import Tail

_RECIPROCAL, _LOG2, _LINEAR, _ZERO = int(Tail.RECIPROCAL), int(Tail.LOG2), int(Tail.LINEAR), int(Tail.ZERO)

# A rank that loses against the best one so far by less than this fraction of what was summed up between the two counts
# as tied with it, and the larger one is taken (the paper's max argmax): a sum begun at another rank rounds differently,
# the answer must not. Summing begins anew at each best rank, so that no far-off score blurs the others.
TIE = 1e-13


@inline
def discount_at(discount, tail, m):
    """D(m): from the table, or in closed form beyond it."""
    if m < discount.shape[0]:
        return discount[m]
    if tail == _RECIPROCAL:
        return 1.0 / m
    if tail == _LOG2:
        return 1.0 / np.log2(1.0 + m)
    if tail == _LINEAR:
        return -float(m)
    return 0.0 if tail == _ZERO else np.nan


@inline
def drop(discount, tail, m):
    """D(m − 1) − D(m): the step of a loss, turned over and without w_k/C."""
    if m < discount.shape[0]:
        at = np.uint64(m)
        return discount[at - np.uint64(1)] - discount[at]
    return discount_at(discount, tail, m - 1) - discount_at(discount, tail, m)


@part
def best_rank(weight, discount, tail, pos, score, j, low, high):
    """max argmax of f_j(i) over low ≤ i ≤ high (Algorithm 1, line 6)."""
    best = low
    value = total = 0.0  # of f_j since the best rank, and of its steps' magnitudes
    previous = discount_at(discount, tail, low + j - 1)
    for i in range(low, high):
        current = discount_at(discount, tail, i + j)
        step = pos[i - 1] - score - weight[i - 1] * (previous - current)
        previous = current
        value += step
        total += abs(step)
        best = i + 1 if value + TIE * total >= 0.0 else best
        if value > 0.0:
            value = total = 0.0
    return best
