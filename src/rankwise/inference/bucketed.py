"""The fast engine: Algorithm 1 over buckets of scores instead of scores, in a few passes over the data.

1. a pass puts every score into one of many narrow buckets and counts them (buckets.py);
2. Algorithm 1 over the bucket edges brackets the ranks in every bucket (edges.py);
3. a pass writes the gradient of every bucket whose ranks agree, and gathers the few members of the others;
4. Algorithm 1 proper solves those (regions.py).

Scores are numbers, so this passes the paper's lower bound for comparison-based methods; where buckets separate
badly the work falls back on Algorithm 1 and its guarantee. Many small queries go through one compiled loop,
`solve_queries`; a large one through the same steps with threads and a map of its own, in large.py.
"""

from __future__ import annotations

import numpy as np

from rankwise.inference.buckets import BucketMap, linear_buckets
from rankwise.inference.compiled import kernel
from rankwise.inference.edges import REGION_COLUMNS, assign, bracket, cumulate, grade
from rankwise.inference.positives import discounted_loss, finish_positives, scaled_weights, sort_descending
from rankwise.inference.quicksort import STACK_ROWS
from rankwise.inference.regions import solve_regions


@kernel
def range_map(low, high, n_buckets):
    """A linear map of [low, high] onto n_buckets, or onto one where the range is too narrow to divide."""
    rate = n_buckets / (high - low) if high > low else np.inf
    if rate > 1e300:
        return BucketMap(low, 0.0, 1.0, 1.0, 0.0, 1)
    return BucketMap(low, 0.0, rate, 1.0 / rate, 0.0, n_buckets)


@kernel
def extent(bits, flip, words, values):
    """Least and greatest score, given as bit patterns: as integers they compare alike, once negatives are flipped.

    A NaN is beyond either infinity. flip has all bits but the sign; words and values are two views of one memory.
    """
    zero = flip ^ flip
    low = high = bits[0] ^ (flip if bits[0] < zero else zero)
    for k in range(bits.shape[0]):
        key = bits[k] ^ (flip if bits[k] < zero else zero)
        low, high = min(low, key), max(high, key)
    words[0] = low ^ (flip if low < zero else zero)
    least = np.float64(values[0])
    words[0] = high ^ (flip if high < zero else zero)
    return least, np.float64(values[0])


@kernel
def buckets_for(n):
    """How many buckets for a small query: a power of two, half a sample to one each."""
    size = 16
    while size < n:
        size *= 2
    return size


@kernel
def solve_queries(
    scores, bits, flip, relevant, starts, first, last, limit, weight, discount, tail, per_pair, scale,
    bucket, gradient, out, counts, above_pos, order_pos,
):  # fmt: skip
    """Queries first ≤ q < last, grouped: q is scores[starts[q]:starts[q+1]].

    Writes gradient, and out[q] = (J, Δ) and counts[q] = (P, N); value 0 for a query without positives or negatives. If
    above_pos has rows, row q gets c_k at k = 1..P and 0 at 0, and row q of order_pos the positives by descending score.
    bits is a view of scores as integers (see `extent`), bucket one of gradient as unsigned integers: each slot is read
    before it is overwritten.
    Returns the position after the last query solved, less than `last` if scores there are not finite.
    """
    size = most = 0  # samples and positives of the largest queries
    for q in range(first, last):
        size = max(size, starts[q + 1] - starts[q])
        n_pos = 0
        for k in range(starts[q], starts[q + 1]):
            n_pos += relevant[k]
        most = max(most, n_pos)
    room = buckets_for(size)
    pos, pos_spare, weights = np.empty(most), np.empty(most), np.empty(most)
    idx, idx_spare, at_rank = np.empty(most + 1, np.int64), np.empty(most, np.int64), np.empty(most + 2, np.int64)
    slot, queue = np.empty(2 * most + 1, np.int64), np.empty((6, most + 2), np.int64)
    mixed, index, rank = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    hist, value = np.empty(room + 1, np.uint32), np.empty(room + 1, np.float32)
    above, bound = np.empty(room + 1, np.int64), np.empty(room + 1, np.int64)
    # Each region has ranks that no other has: there are at most as many as positives.
    regions, cursor, partial = np.empty((most, REGION_COLUMNS), np.int64), np.empty(most, np.int64), np.empty(most)
    no_ties = np.empty(0)
    stack, work = np.empty((STACK_ROWS, 5), np.int64), np.zeros(3, np.int64)
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        n_pos = 0
        for k in range(begin, end):
            idx[n_pos] = k
            n_pos += relevant[k]
        n_neg = end - begin - n_pos
        counts[q, 0], counts[q, 1] = n_pos, n_neg
        out[q, 0] = out[q, 1] = 0.0
        part, slots, slopes = scores[begin:end], bucket[begin:end], gradient[begin:end]
        low, high = extent(bits[begin:end], flip, slots, slopes)
        if not (low >= -limit and high <= limit):
            return q
        if n_pos == 0 or n_neg == 0:
            slopes[:] = 0.0
            continue
        for k in range(n_pos):
            pos[k] = scores[idx[k]]
        sort_descending(pos, idx, n_pos, pos_spare, idx_spare, slot, work)
        norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
        unit = 2.0 / (float(n_pos) * float(n_neg))

        chart = range_map(low, high, buckets_for(end - begin))
        n_buckets = chart.n_buckets
        hist[: n_buckets + 1] = 0
        linear_buckets(part, chart, slots)
        for k in range(slots.shape[0]):
            hist[slots[k]] += np.uint32(1)
        for k in range(n_pos):  # positives go to a bucket of their own, whose gradient is overwritten
            hist[bucket[idx[k]]] -= np.uint32(1)
            bucket[idx[k]] = n_buckets
        value[n_buckets] = 0.0
        at_rank[: n_pos + 2] = 0
        cumulate(hist, n_buckets, above)
        bracket(weights, discount, tail, pos, n_pos, chart, above, bound, queue)
        n_regions = grade(above, bound, n_buckets, n_pos, value, at_rank, regions)
        for r in range(n_regions):
            cursor[r] = regions[r, 0]
        total = assign(part, slots, value, unit, cursor, mixed, index, begin, n_regions, no_ties, no_ties, slopes)
        solve_regions(
            weights, discount, tail, pos, n_pos, regions, 0, n_regions, mixed, index, rank, unit, at_rank, gradient,
            partial, stack, work,
        )  # fmt: skip
        for r in range(n_regions):
            total += partial[r]
        total += finish_positives(pos, idx, n_pos, at_rank, n_neg, gradient)
        lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
        out[q, 0] = scale * lost + total
        out[q, 1] = lost
        if above_pos.shape[0] > 0:
            above_pos[q, : n_pos + 1] = at_rank[: n_pos + 1]
            order_pos[q, :n_pos] = idx[:n_pos]
    return last
