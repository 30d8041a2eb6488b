"""An exact dynamic programme: for every loss with (C1), also without (C2), and for a negative scale. O(N log N + PN).

With c_k negatives above the k-th positive, 0 ≤ c_1 ≤ … ≤ c_P ≤ N, the objective in units of 2/(PN) is a sum over k:

    Σ_k h_k(c_k),   h_k(c) = Σ_{j ≤ c} d_k(j),   d_k(j) = s_j − s⁺_k − scale·(PN/2)·(δ_j(k+1) − δ_j(k)),

and V_k(c) = h_k(c) + max_{c′ ≤ c} V_{k−1}(c′) solves it. What is kept is the lead of c over all before it,
x_k(c) = max(0, V_k(c) − max_{c′ < c} V_k(c′)): it follows from x_{k−1} in one pass that begins anew at each maximum, so
that no far-off score blurs the others. For the way back one bit is enough, whether x_k(c) > 0. Of equal values the
smallest c is taken.

Not every c is visited. Where d_k > 0 up to some j, c_k is at least that; where d_k ≤ 0 from some j on, c_k is below it.
So if more negatives above never lower the loss, only one side of the ranking by scores is visited: with scale < 0
misordered pairs, with scale > 0 pairs in order, with scale = 0 none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel
from rankwise.kernels.problem import Problem
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.steps import drop

# Pairs of a positive and a negative that are visited, at one bit each: 2 GiB.
MOST_PAIRS = 1 << 34


def ranks(problem: Problem) -> NDArray[np.int64]:
    """The optimal interleaving rank of each negative."""
    n_pos, n_neg = problem.pos.size, problem.neg.size
    neg, order = order_descending(problem.neg)
    weight = np.abs(problem.weight)
    fall = np.copysign(1.0, problem.scale) * drops(problem.discount, problem.tail, n_pos + n_neg)
    low, high = window_of(problem.pos, neg, weight, fall)
    size = high - low
    visited = int(size.sum())
    if visited > MOST_PAIRS:
        raise ValueError(
            f"method 'dynamic' would visit {visited} pairs of {n_pos} positives and {n_neg} negatives; its limit is "
            f"{MOST_PAIRS}: use method='auto' if the loss has (C2) and scale is at least 0, else sample the negatives"
        )
    begin = np.concatenate([[0], np.cumsum((size + 7) // 8)])
    bits = np.empty(begin[-1], np.uint8)
    climb(problem.pos, neg, weight, fall, low, high, begin, bits)
    above = descend(low, high, begin, bits, n_neg)
    result = np.empty(n_neg, np.int64)
    result[order] = np.repeat(np.arange(1, n_pos + 2), np.diff(above, prepend=0, append=n_neg))
    return result


def window_of(
    pos: NDArray[np.float64], neg: NDArray[np.float64], weight: NDArray[np.float64], fall: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(P,) low_k ≤ c_k ≤ high_k of some best ranking, neither falling as k grows.

    d_k(j) = s_j − s⁺_k + weight_k·fall(k + j), weight ≥ 0, is between two bounds that fall with j. A best ranking that
    leaves the window is none the worse inside it; the bounds hold as they are rounded.
    """
    least, most = np.minimum.accumulate(fall), np.maximum.accumulate(fall[::-1])[::-1]
    low, high = rising(pos, neg, weight, least), rising(pos, neg, weight, most)
    return np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)


@kernel
def drops(discount, tail, n):
    """D(m − 1) − D(m) for 2 ≤ m ≤ n; those before are as that of 2."""
    result = np.empty(n + 1)
    for m in range(2, n + 1):
        result[m] = drop(discount, tail, m)
    result[0] = result[1] = result[2]
    return result


@kernel
def rising(pos, neg, weight, fall):
    """By positive, the number of j with s_j − s⁺_k + weight_k·fall(k + j) > 0, where that falls as j grows."""
    result = np.empty(pos.shape[0], np.int64)
    for k in range(pos.shape[0]):
        left, right = 0, neg.shape[0]
        while left < right:
            j = (left + right) >> 1
            if neg[j] - pos[k] + weight[k] * fall[k + j + 2] > 0.0:
                left = j + 1
            else:
                right = j
        result[k] = left
    return result


@kernel
def climb(pos, neg, weight, fall, low, high, begin, bits):
    """Note in bits, from the first positive to the last, at which c in its window V_k exceeds all V_k before."""
    gain, lead = np.empty(neg.shape[0]), np.zeros(neg.shape[0])
    for k in range(pos.shape[0]):
        for j in range(low[k], high[k]):
            gain[j] = weight[k] * fall[k + j + 2]
        pass_on(pos[k], neg, gain, lead, low[k], high[k], begin[k], bits)


@kernel
def pass_on(score, neg, gain, lead, low, high, at, bits):
    """From x_{k−1} to x_k, in place: lead[c − 1] = x(c) for low < c ≤ high; those beyond high are 0 so far."""
    behind = 0.0  # V_k less its maximum so far
    for first in range(low, high, 8):
        byte = 0
        for j in range(first, min(first + 8, high)):
            value = behind + (neg[j] - score + gain[j] + lead[j])
            lead[j], behind = max(value, 0.0), min(value, 0.0)
            byte |= np.int64(value > 0.0) << (j - first)
        bits[at] = byte
        at += 1


@kernel
def descend(low, high, begin, bits, c):
    """c_k from the last positive to the first: the highest c noted, not above the one before; low_k if none is."""
    result = np.empty(low.shape[0], np.int64)
    for k in range(low.shape[0] - 1, -1, -1):
        q = min(c, high[k]) - low[k] - 1
        while q >= 0 and (bits[begin[k] + (q >> 3)] >> (q & 7)) & 1 == 0:
            q -= 1 if bits[begin[k] + (q >> 3)] & ((1 << (q & 7)) - 1) else (q & 7) + 1
        c = low[k] + q + 1
        result[k] = c
    return result
