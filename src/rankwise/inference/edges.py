"""From bucket counts to ranks: Algorithm 1 over bucket edges, and what that settles.

Bucket b holds the negatives j = above[b+1]+1 … above[b]. Their ranks lie between bound[b+1] and bound[b], the best
ranks at its two edges. Where these agree the whole bucket is done; the others are *regions*, whose members are gathered
and solved in regions.py. `value` holds P + 1 − r for the rank r of a bucket's members, or −1−region.
"""

from __future__ import annotations

import numpy as np

from rankwise.inference.buckets import edge
from rankwise.inference.compiled import kernel
from rankwise.inference.steps import best_by_discount, drop

# Columns of a row of `regions`: members are mixed[START:STOP], negatives J.., with ranks LOW..HIGH, of one BUCKET.
START, STOP, J, LOW, HIGH, BUCKET = range(6)
REGION_COLUMNS = 6


@kernel
def cumulate(hist, n_buckets, above):
    """above[b] = the number of negatives in buckets ≥ b."""
    total = np.int64(0)
    above[n_buckets] = 0
    for b in range(n_buckets - 1, -1, -1):
        total += np.int64(hist[b])
        above[b] = total


@kernel
def bracket(weight, discount, tail, pos, n_pos, chart, above, bound, queue):
    """bound[b] = the best rank at the lower edge of bucket b, or 0 where it is that of the next evaluated b above.

    Algorithm 1 with edges in place of samples, level by level: all open intervals of one depth, then their halves,
    so that the processor need not guess where to go next; intervals in which a single rank gives way to the next are
    kept for the end. queue (6, ≥ P + 2) holds the bottoms and tops of this level, of the next, and of those.
    """
    n_buckets = chart.n_buckets
    bound[: n_buckets + 1] = 0
    bound[0], bound[n_buckets] = n_pos + 1, 1
    queue[0, 0], queue[1, 0] = 0, n_buckets
    size = 1 if n_buckets > 1 else 0
    now, after = 0, 2  # rows of bottoms, each followed by its row of tops
    one = np.uint64(1)
    kept = np.uint64(0)
    while size > 0:
        later = np.uint64(0)
        for q in range(size):
            bottom, top = np.uint64(queue[now, q]), np.uint64(queue[now + 1, q])
            m = (bottom + top) >> one
            low, high, here = bound[top], bound[bottom], above[m]
            rank = best_by_discount(weight, discount, tail, pos, edge(chart, np.float64(m)), here + 1, low, high)
            bound[m] = rank
            is_open = (rank < high) & (m - bottom > one) & (above[bottom] > here)
            queue[after, later], queue[after + 1, later] = bottom, m
            queue[4, kept], queue[5, kept] = bottom, m
            later += np.uint64(is_open & (high - rank > 1))
            kept += np.uint64(is_open & (high - rank == 1))
            is_open = (low < rank) & (top - m > one) & (here > above[top])
            queue[after, later], queue[after + 1, later] = m, top
            queue[4, kept], queue[5, kept] = m, top
            later += np.uint64(is_open & (rank - low > 1))
            kept += np.uint64(is_open & (rank - low == 1))
        size = np.int64(later)
        now, after = after, now
    for q in range(np.int64(kept)):
        bottom, top = np.uint64(queue[4, q]), np.uint64(queue[5, q])
        low = bound[top]
        w, level = weight[np.uint64(low - 1)], pos[np.uint64(low - 1)]
        while top - bottom > one:
            m = (bottom + top) >> one
            bar = w * drop(discount, tail, low + above[m] + 1)
            passed = level - edge(chart, np.float64(m)) - bar >= 0.0
            bound[m] = low + np.int64(passed)
            bottom = m if passed else bottom
            top = top if passed else m


@kernel
def grade(above, bound, n_buckets, n_pos, value, at_rank, regions):
    """Settle the undivided buckets in value and at_rank (negatives per rank), list the others; how many regions."""
    n_regions = 0
    gathered = 0
    low = high = 1
    settled = 0  # negatives of rank `low` since at_rank was last written
    for b in range(n_buckets - 1, -1, -1):
        low = high
        high = bound[b] if bound[b] > 0 else low
        size = above[b] - above[b + 1]
        if low == high:  # also where the bucket is empty: no need to ask
            value[b] = n_pos + 1 - low
            settled += size
            continue
        at_rank[low] += settled
        settled = 0
        if size > 0:
            value[b] = -1 - n_regions
            regions[n_regions, START], regions[n_regions, STOP] = gathered, gathered + size
            regions[n_regions, J] = above[b + 1] + 1
            regions[n_regions, LOW], regions[n_regions, HIGH], regions[n_regions, BUCKET] = low, high, b
            gathered += size
            n_regions += 1
    at_rank[high] += settled
    return n_regions


@kernel
def assign(scores, bucket, value, unit, cursor, mixed, index, offset, n_plain, tie_score, tie_slope, gradient):
    """Write the gradient of members of undivided buckets, gather the others; Σ gradient·score of those written.

    Positions are counted from `offset`, where these scores begin. A bucket whose value is −1−n_plain−h holds the h-th
    frequent score, which has a gradient of its own; those above it go to region n_plain + 2h, those below to the next.
    """
    total = 0.0
    for k in range(scores.shape[0]):
        v = value[bucket[k]]
        if v >= 0:
            g = unit * np.float64(v)
            gradient[k] = g
            total += g * np.float64(scores[k])
            continue
        region = np.int64(-v) - 1
        if region >= n_plain:
            tie = region - n_plain
            if scores[k] == tie_score[tie]:
                gradient[k] = tie_slope[tie]
                total += tie_slope[tie] * np.float64(scores[k])
                continue
            region = n_plain + 2 * tie + np.int64(scores[k] < tie_score[tie])
        at = np.uint64(cursor[region])
        cursor[region] = at + np.uint64(1)
        mixed[at] = scores[k]
        index[at] = offset + k
    return total
