"""Gaps: where many negatives are within the windows of few positives, told without sorting the negatives.

The edges s_k ± width of P positives cut the line into 2P + 1 gaps. Counts of negatives and sums of their offsets by gap
give every c_k = Σ_j H(s_j − s_k); from weights by positive, the gradient of a negative is a line in its score, by gap:

    level:  ∂/∂s_j = Σ {a_k : |s_k − s_j| < width} / (2·width)      the derivative of Σ_k A_k(c_k), a = A′
    ramp:   ∂/∂s_j = Σ_k a_k·H(s_j − s_k)                            errors handed on in proportion to H
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, part
from rankwise.kernels.soft.windows import sum_windows
from rankwise.kernels.sorting import number_of, order_of

_ONE = np.int64(1)


@inline
def upper_edge(level, width):
    """The least number x for which x − level ≥ width as it is computed.

    Rounding may leave it off by more only where that is nothing against the width.
    """
    x = level + width
    for _ in range(2):
        below = number_of(order_of(x) - _ONE)
        x = below if below - level >= width else x
    for _ in range(2):
        x = number_of(order_of(x) + _ONE) if x - level < width else x
    return x


@inline
def lower_edge(level, width):
    """The least number x for which x − level > −width as it is computed: `upper_edge`, mirrored."""
    return number_of(order_of(-upper_edge(-level, width)) + _ONE)


@part
def lay_gaps(level, width):
    """The gaps of P ascending levels: edge (2P,) ascending; under, enter, leave (2P + 1,) in one; middle (2P + 2,).

    A number with g edges at or below it lies in gap g: within width of levels under[g] ≤ i < g − under[g], beyond the
    windows of those below, not yet in those above. Gaps enter[i] ≤ g < leave[i] are in the window of level i. Offsets
    are taken from middle[g], a level whose window the gap is in, if there is one; a gap at the end is for positives.
    """
    n = level.shape[0]
    edge, bounds, middle = np.empty(2 * n), np.empty((3, 2 * n + 1), np.int64), np.zeros(2 * n + 2)
    under, enter, leave = bounds[0], bounds[1], bounds[2]
    a = b = np.int64(0)
    low, high = lower_edge(level[0], width), upper_edge(level[0], width)
    under[0], middle[0] = 0, level[0]
    for e in range(2 * n):
        if a < n and low <= high:
            edge[e], enter[a] = low, e + 1
            a += 1
            low = max(low, lower_edge(level[a], width)) if a < n else low  # they ascend, whatever rounding does
        else:
            edge[e], leave[b] = high, e + 1
            b += 1
            high = max(high, upper_edge(level[b], width)) if b < n else high
        under[e + 1], middle[e + 1] = b, level[min(b, n - 1)]
    return edge, bounds, middle


@inline
def gap_between(edge, first, stop, score):
    """The gap of a score of which edges before `first` lie at or below, and none from `stop` on."""
    base, size = np.uint64(first), np.uint64(stop - first)
    while size > np.uint64(0):  # no branch depends on the score
        half = (size + np.uint64(1)) >> np.uint64(1)
        base = base + half if edge[base + half - np.uint64(1)] <= score else base
        size -= half
    return np.int32(base)


@part
def conclude(level, width, bounds, middle, count, total, above, near):
    """c by positive, and the negatives within width, from counts and sums of offsets by gap."""
    n, rate = level.shape[0], 0.5 / width
    moment, beyond, g = np.empty(n), 0.0, count.shape[0]
    sum_windows(count, total, middle, bounds[1], bounds[2], level, near, moment)
    for i in range(n - 1, -1, -1):
        while g > bounds[2, i]:
            g -= 1
            beyond += count[g]
        above[i] = beyond + max(0.5 * near[i] + moment[i] * rate, 0.0)


@part
def lines_of(level, width, ramp, weight):
    """The gradient of negatives by gap: bias + rate·(score − middle), without ramp bias; 0 in that of the positives."""
    bounds, middle = lay_gaps(level, width)[1:]
    n_gaps = bounds.shape[1]
    under, until = bounds[0], bounds[1]
    for g in range(n_gaps):
        until[g] = g - under[g]
    bias, rate = np.zeros(n_gaps + 1), np.zeros(n_gaps + 1)
    sum_windows(weight, np.zeros(level.shape[0]), level, under, until, middle[:n_gaps], rate, bias)
    half, below, i = 0.5 / width, 0.0, np.int64(0)
    for g in range(n_gaps):
        while i < under[g]:
            below += weight[i]
            i += 1
        bias[g] = below + 0.5 * rate[g] - bias[g] * half if ramp else half * rate[g]
        rate[g] *= half
    return bias, rate, middle


@part
def draw(scores, gaps, ramp, bias, rate, middle, gradient):
    """Gradients by sample, from the line of its gap."""
    if ramp:
        for k in range(scores.shape[0]):
            g = np.uint64(np.uint32(gaps[k]))
            gradient[k] = bias[g] + rate[g] * (np.float64(scores[k]) - middle[g])
    else:
        for k in range(scores.shape[0]):
            gradient[k] = bias[np.uint64(np.uint32(gaps[k]))]
