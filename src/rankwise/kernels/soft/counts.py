"""Soft counts: how many negatives are above each positive, where a comparison is softened by a ramp.

    H(x) = clip(x/(2·width) + ½, 0, 1),   c_k = Σ_j H(s_j − s_k)

Positives are sorted. Their edges s_k ± width cut the line into 2P + 1 gaps; a negative is told by its gap, found by
search, or by buckets where there are many. Counts and sums by gap give every c_k; weights by positive give every
negative's gradient. Negatives are never sorted: O((N + P) log P), and O(N + P) with buckets.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets.maps import CHUNK, cells_of, linear_cell, place, third
from rankwise.kernels.buckets.passes import first_from
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.flags import all_within
from rankwise.kernels.soft.windows import add_above, gap_between, lay_edges, sum_windows
from rankwise.kernels.sorting import slots, sort_descending

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
    most = np.int64(0)
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    values, spare, places, slot = np.empty(most), np.empty(most), np.empty(most, np.int64), slots(most)
    for q in range(first, last):
        begin, p, p_end = starts[q], pos_starts[q], pos_starts[q + 1]
        part, flags = scores[begin : starts[q + 1]], relevant[begin : starts[q + 1]]
        if not all_within(part, limit):
            return q
        n_neg = part.shape[0] - (p_end - p)
        if p == p_end:
            continue
        if take_positives(part, flags, begin, values, places) != p_end - p:
            return q  # somebody writes to it
        sort_descending(values, places, p_end - p, spare, order[p:p_end], slot)
        for i in range(p_end - p):
            level[p + i] = -spare[i]
        if n_neg == 0:
            above[p:p_end] = 0.0
            near[p:p_end] = 0.0
        elif p_end - p <= DIRECT:
            take_negatives(part, flags, values)
            for i in range(p, p_end):
                above[i], near[i] = compare_all(values[:n_neg], level[i], width, 0.5 / width)
        else:
            soften_by_search(
                part, flags, width, level[p:p_end], above[p:p_end], near[p:p_end], gaps[begin : starts[q + 1]]
            )
    return last


@part
def take_positives(scores, flags, begin, values, places):
    """The positives' scores, negated, and their positions from `begin` on; how many."""
    n = np.int64(0)
    for k in range(scores.shape[0]):
        if flags[k]:
            values[n], places[n] = -np.float64(scores[k]), begin + k
            n += 1
    return n


@part
def take_negatives(scores, flags, values):
    """The negatives' scores, as they come."""
    n = np.uint64(0)
    last = np.uint64(values.shape[0] - 1)
    for k in range(scores.shape[0]):  # no branch depends on a flag
        values[min(n, last)] = scores[k]
        n += np.uint64(not flags[k])


@kernel(fastmath={"reassoc", "nsz"})
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
    n_pos = level.shape[0]
    edge, bounds = np.empty(2 * n_pos), np.empty((3, 2 * n_pos + 1), np.int64)
    lay_edges(level, width, edge, bounds[0], bounds[1], bounds[2])
    middle = middles(level, bounds[0])
    count, total = np.zeros(2 * n_pos + 1), np.zeros(2 * n_pos + 1)
    low, last = edge[0], float(_CELLS * n_pos - 1)
    rate = min(last / max(edge[2 * n_pos - 1] - low, _TINY), _HUGE)
    start = np.zeros(_CELLS * n_pos + 1, np.int64)
    for e in range(2 * n_pos):
        start[np.uint64(linear_cell(edge[e], low, rate, last)) + np.uint64(1)] += 1
    for cell in range(_CELLS * n_pos):
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


@part
def middles(level, under):
    """A number by gap from which offsets are taken: a level whose window the gap is in, if there is one.

    One more gap at the end has room for the positives.
    """
    middle = np.zeros(under.shape[0] + 1)
    for g in range(under.shape[0]):
        middle[g] = level[min(under[g], level.shape[0] - 1)]
    return middle


@part
def conclude(level, width, bounds, middle, count, total, above, near):
    """c by positive, and the negatives within width, from counts and sums of offsets by gap."""
    n_pos = level.shape[0]
    moment, front = np.empty(n_pos), np.empty((2, count.shape[0]))
    sum_windows(count, total, middle, bounds[1], bounds[2], level, near, moment, front)
    beyond, g = 0.0, count.shape[0] - 1
    for i in range(n_pos - 1, -1, -1):
        while g >= bounds[2, i]:
            beyond += count[g]
            g -= 1
        above[i] = beyond + max(0.5 * near[i] + moment[i] * (0.5 / width), 0.0)


@kernel
def lay_gaps(level, width):
    """Edges of one query, what bounds its gaps, and a number by gap."""
    n_pos = level.shape[0]
    edge, bounds = np.empty(2 * n_pos), np.empty((3, 2 * n_pos + 1), np.int64)
    lay_edges(level, width, edge, bounds[0], bounds[1], bounds[2])
    return edge, bounds, middles(level, bounds[0])


@kernel
def prepare_large(scores, level, width, buckets, pivot, settled, start):
    """Edges of one query, and the gap of every bucket: −1 where an edge is in it, start[b] edges being below it."""
    n_pos, n_buckets = level.shape[0], settled.shape[0]
    edge, bounds, middle = lay_gaps(level, width)
    start[:] = 0
    for e in range(2 * n_pos):
        # Rounded: scores on either side of the edge are in this bucket, or not between.
        start[np.uint64(place(edge[e], buckets, pivot)) + np.uint64(1)] += 1
    for b in range(n_buckets):
        start[b + 1] += start[b]
        settled[b] = start[b] if start[b + 1] == start[b] else -1
    return edge, bounds, middle


@kernel
def place_part(
    scores, first, stop, where, limit, buckets, pivot, settled, start, edge, middle, gaps, counts, totals
):  # fmt: skip
    """Gaps of scores[first:stop], counts and sums of offsets by gap in several rows, the positives' in one more gap.

    False if a score is not within ±limit. Rows are taken in turn, so that none waits for itself.
    """
    typed = np.empty(2, scores.dtype)
    typed[0], typed[1] = limit, buckets.last
    limit, last = typed[0], typed[1]
    cells, rows, apart = np.empty(CHUNK, np.int32), np.uint64(counts.shape[0] - 1), np.int32(middle.shape[0] - 1)
    p, fine = first_from(where, first), True
    for begin in range(first, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        part, cell, gap = scores[begin:end], cells[: end - begin], gaps[begin:end]
        fine &= all_within(part, limit)
        cells_of(part, buckets, last, cell)
        if pivot.shape[0] > 0:
            for k in range(cell.shape[0]):
                cell[k] = third(np.uint32(cell[k]), part[k], pivot[np.uint32(cell[k])])
        for k in range(cell.shape[0]):
            b = np.uint64(np.uint32(cell[k]))
            g = settled[b]
            if g < 0:
                g = gap_between(edge, start[b], start[b + np.uint64(1)], np.float64(part[k]))
            gap[k] = g
        while p < where.shape[0] and where[p] < end:
            gap[where[p] - begin] = apart
            p += 1
        for k in range(cell.shape[0]):
            at, row = np.uint64(np.uint32(gap[k])), np.uint64(k) & rows
            counts[row, at] += 1.0
            totals[row, at] += np.float64(part[k]) - middle[at]
    return fine


@kernel
def conclude_large(level, width, bounds, middle, counts, totals, above, near):
    """`conclude` of what several parts have counted, (parts, rows, gaps), added up in order."""
    n_gaps = bounds.shape[1]
    count, total = np.zeros(n_gaps), np.zeros(n_gaps)
    for t in range(counts.shape[0]):
        for row in range(counts.shape[1]):
            for g in range(n_gaps):
                count[g] += counts[t, row, g]
                total[g] += totals[t, row, g]
    conclude(level, width, bounds, middle, count, total, above, near)


@kernel
def soft_places(level, pos_starts, first, last, width, out):
    """½ + Σ_k H(s_k − s_i) over the positives of a query, which counts a positive itself as 1."""
    for q in range(first, last):
        own = level[pos_starts[q] : pos_starts[q + 1]]
        n = own.shape[0]
        if n <= DIRECT:
            for i in range(n):
                out[pos_starts[q] + i] = 0.5 + compare_all(own, own[i], width, 0.5 / width)[0]
            continue
        out[pos_starts[q] : pos_starts[q + 1]] = 0.5
        add_above(own, np.ones(n), own, width, out[pos_starts[q] : pos_starts[q + 1]])
