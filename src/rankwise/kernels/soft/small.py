"""Soft counts and gradients of small queries, one query after the other in compiled loops."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets.maps import linear_cell
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.flags import all_within
from rankwise.kernels.soft.gaps import conclude, draw, gap_between, lay_gaps, lines_of
from rankwise.kernels.sorting import move_apart, slots, sort_descending

# Up to so many positives, each is compared with every negative, many at a time: faster than any search.
DIRECT = 24
# Cells a positive, in which edges are looked for.
_CELLS = 8
_TINY, _HUGE = 1e-300, 1e300


@kernel
def soften_small(scores, relevant, starts, pos_starts, first, last, limit, width, level, order, above, near, gaps):
    """Queries first ≤ q < last, grouped: q is scores[starts[q]:starts[q+1]], its positives pos_starts[q], ….

    Writes, by positive in ascending order of score: level, the score; order, its position; above, c; near, how many
    negatives are within width. By sample: gaps, of queries of more than DIRECT positives.
    Returns the position after the last query done, less than `last` if scores there are not within ±limit.
    """
    most = longest(starts, first, last)
    values, spare, places, slot = np.empty(most), np.empty(most), np.empty(most, np.int64), slots(most)
    for q in range(first, last):
        begin, stop, p, p_end = starts[q], starts[q + 1], pos_starts[q], pos_starts[q + 1]
        own, flags, n_pos = scores[begin:stop], relevant[begin:stop], p_end - p
        if not all_within(own, limit):
            return q
        if n_pos == 0:
            continue
        n_neg = move_apart(own, flags, values, places)
        if n_neg != stop - begin - n_pos:
            return q  # somebody writes to it
        for i in range(n_neg, stop - begin):
            values[i], places[i] = -values[i], begin + places[i]
        sort_descending(values[n_neg:], places[n_neg:], n_pos, spare, order[p:p_end], slot)
        for i in range(n_pos):
            level[p + i] = -spare[i]
        if n_neg == 0:
            above[p:p_end] = 0.0
            near[p:p_end] = 0.0
        elif n_pos <= DIRECT:
            for i in range(p, p_end):
                above[i], near[i] = compare_all(values[:n_neg], level[i], width, 0.5 / width)
        else:
            soften_by_search(own, flags, width, level[p:p_end], above[p:p_end], near[p:p_end], gaps[begin:stop])
    return last


@part
def longest(starts, first, last):
    """The most samples in one of these queries."""
    most = np.int64(0)
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    return most


@part(fastmath={"reassoc", "nsz"})
def compare_all(negatives, level, width, rate):
    """Σ H(s_j − level), and how many s_j are within width."""
    total, within = 0.0, 0.0
    for j in range(negatives.shape[0]):
        x = negatives[j] - level
        total += min(max(x * rate + 0.5, 0.0), 1.0)
        within += 1.0 if abs(x) < width else 0.0
    return total, within


@part
def soften_by_search(scores, flags, width, level, above, near, gaps):
    """c of one query, each negative's gap being found by a search among the edges of its cell, of many even ones."""
    edge, bounds, middle = lay_gaps(level, width)
    count, total = np.zeros(bounds.shape[1]), np.zeros(bounds.shape[1])
    n_cells, low = _CELLS * level.shape[0], edge[0]
    last = float(n_cells - 1)
    rate = min(last / max(edge[-1] - low, _TINY), _HUGE)
    start = np.zeros(n_cells + 1, np.int64)
    for e in range(edge.shape[0]):
        start[np.uint64(linear_cell(edge[e], low, rate, last)) + np.uint64(1)] += 1
    for cell in range(n_cells):
        start[cell + 1] += start[cell]
    for k in range(scores.shape[0]):
        score = np.float64(scores[k])
        cell = np.uint64(linear_cell(score, low, rate, last))
        g = gap_between(edge, start[cell], start[cell + np.uint64(1)], score)
        gaps[k] = g
        at, one = np.uint64(g), np.float64(not flags[k])  # no branch depends on a flag
        count[at] += one
        total[at] += one * (score - middle[at])
    conclude(level, width, bounds, middle, count, total, above, near)


@kernel
def spread_small(
    scores, relevant, starts, pos_starts, first, last, width, ramp, level, order, gaps, weight, own, gradient
):
    """Gradients of queries first ≤ q < last from weights by positive; own: the positives' gradients."""
    most = longest(starts, first, last)
    values, slopes, places = np.empty(most), np.empty(most), np.empty(most, np.int64)
    for q in range(first, last):
        begin, stop, p, p_end = starts[q], starts[q + 1], pos_starts[q], pos_starts[q + 1]
        part, slope, n_neg = scores[begin:stop], gradient[begin:stop], stop - begin - (p_end - p)
        if p == p_end:
            slope[:] = 0.0
        elif n_neg == 0:
            pass  # all are positives
        elif p_end - p <= DIRECT:
            move_apart(part, relevant[begin:stop], values, places)
            slopes[:n_neg] = 0.0
            for i in range(p, p_end):
                add_all(values[:n_neg], level[i], width, 0.5 / width, ramp, weight[i], slopes[:n_neg])
            for j in range(n_neg):
                slope[places[j]] = slopes[j]
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
