"""From weights by positive to a gradient by sample, the comparisons being those of counts.py.

    level:  ∂/∂s_j = Σ {a_k : |s_k − s_j| < width} / (2·width)      the derivative of Σ_k A_k(c_k), a = A′
    ramp:   ∂/∂s_j = Σ_k a_k·H(s_j − s_k)                            errors handed on in proportion to H

By gap, these are a constant, or a line in s_j.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.soft.counts import DIRECT, middles, take_negatives
from rankwise.kernels.soft.windows import lay_edges, sum_windows


@kernel
def share_ties(level, pos_starts, first, last, values):
    """Positives of a query that tie share their mean."""
    for q in range(first, last):
        i, stop = pos_starts[q], pos_starts[q + 1]
        while i < stop:
            end, total = i, 0.0
            while end < stop and level[end] == level[i]:
                total += values[end]
                end += 1
            if end - i > 1:
                for k in range(i, end):
                    values[k] = total / (end - i)
            i = end


@kernel
def running_maximum(pos_starts, first, last, values):
    """The highest value so far, among the positives of a query."""
    for q in range(first, last):
        for i in range(pos_starts[q] + 1, pos_starts[q + 1]):
            values[i] = max(values[i], values[i - 1])


@kernel
def spread_small(
    scores, relevant, starts, pos_starts, first, last, width, ramp, level, order, gaps, weight, own, gradient
):
    """Gradients of queries first ≤ q < last from weights by positive; own: the positives' gradients."""
    most = np.int64(0)
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    values, slopes = np.empty(most), np.empty(most)
    for q in range(first, last):
        begin, stop, p, p_end = starts[q], starts[q + 1], pos_starts[q], pos_starts[q + 1]
        part, flags, slope = scores[begin:stop], relevant[begin:stop], gradient[begin:stop]
        n_neg = part.shape[0] - (p_end - p)
        if p == p_end or n_neg == 0:
            slope[:] = 0.0
            continue
        if p_end - p <= DIRECT:
            take_negatives(part, flags, values)
            slopes[:n_neg] = 0.0
            for i in range(p, p_end):
                add_all(values[:n_neg], level[i], width, 0.5 / width, ramp, weight[i], slopes[:n_neg])
            n = np.uint64(0)
            for k in range(part.shape[0]):  # no branch depends on a flag
                slope[k] = slopes[n]
                n = min(n + np.uint64(not flags[k]), np.uint64(n_neg - 1))
        else:
            bias, rate, middle = lines_of(level[p:p_end], width, ramp, weight[p:p_end])
            draw(part, gaps[begin:stop], ramp, bias, rate, middle, slope)
        for i in range(p, p_end):
            gradient[order[i]] = own[i]


@part
def add_all(negatives, level, width, rate, ramp, weight, slopes):
    """Add one positive's part to the gradient of every negative."""
    if ramp:
        for j in range(negatives.shape[0]):
            slopes[j] += weight * min(max((negatives[j] - level) * rate + 0.5, 0.0), 1.0)
    else:
        step = weight * rate
        for j in range(negatives.shape[0]):
            slopes[j] += step if abs(negatives[j] - level) < width else 0.0


@part
def lines_of(level, width, ramp, weight):
    """The gradient of negatives by gap: bias + rate·(score − middle); of a constant, rate says nothing.

    In one more gap at the end, that of the positives, it is 0.
    """
    n_pos, n_gaps = level.shape[0], 2 * level.shape[0] + 1
    edge, bounds = np.empty(2 * n_pos), np.empty((3, n_gaps), np.int64)
    lay_edges(level, width, edge, bounds[0], bounds[1], bounds[2])
    under, until, middle = bounds[0], bounds[1], middles(level, bounds[0])
    for g in range(n_gaps):
        until[g] = g - under[g]
    inside, moment = np.zeros(n_gaps + 1), np.zeros(n_gaps + 1)
    sum_windows(weight, np.zeros(n_pos), level, under, until, middle[:n_gaps], inside, moment, np.empty((2, n_pos)))
    half = 0.5 / width
    if not ramp:
        for g in range(n_gaps):
            inside[g] *= half
        return inside, moment, middle
    below, i = 0.0, np.int64(0)
    for g in range(n_gaps):
        while i < under[g]:
            below += weight[i]
            i += 1
        moment[g] = below + 0.5 * inside[g] - moment[g] * half
        inside[g] *= half
    return moment, inside, middle


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


@kernel
def lines_large(level, width, ramp, weight):
    """`lines_of` one query, for `draw_part`."""
    return lines_of(level, width, ramp, weight)


@kernel
def draw_part(scores, gaps, first, stop, ramp, bias, rate, middle, gradient):
    """Gradients of scores[first:stop]."""
    draw(scores[first:stop], gaps[first:stop], ramp, bias, rate, middle, gradient[first:stop])
