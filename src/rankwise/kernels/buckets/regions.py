"""Regions: the negatives of a bucket in which ranks change, gathered, and how their ranks are found.

Most divide one rank from the next; counting splits those. The rest is sorted, and Algorithm 1 on sorted members finds
what the positives' places as if they were alone do not tell.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, kernel, part
from rankwise.kernels.sorting import insert, merge_sort
from rankwise.kernels.steps import drop
from rankwise.kernels.walk import conclude_sorted, solve_tie, walk

# Columns of a row of `regions`: members are mixed[START:STOP], negatives J.., with ranks LOW..HIGH, of one BUCKET.
START, STOP, J, LOW, HIGH, BUCKET = range(6)
REGION_COLUMNS = 6
# Regions of at most so many members are sorted outright.
FEW_MEMBERS = np.uint64(16)


@kernel
def solve_regions(
    weight, discount, tail, pos, regions, first, last, mixed, index, unit, ref, at_rank, gradient, partial
):  # fmt: skip
    """The ranks in regions first ≤ r < last: gradients, negatives per rank, Σ gradient·(score − ref) in partial[r].

    Most regions are small and divide one rank from the next: those are split without a call or a slice, which
    would cost more than the split. The others are sorted.
    """
    worst = pos.shape[0] + 1
    places = np.empty(pos.shape[0], np.int64)
    for r in range(first, last):
        start, stop = np.uint64(regions[r, START]), np.uint64(regions[r, STOP])
        j, low, high = regions[r, J], regions[r, LOW], regions[r, HIGH]
        if start == stop:
            continue
        if high - low == 1:
            w, level = weight[np.uint64(low - 1)], pos[np.uint64(low - 1)]
            k, bar, done = split(w, level, discount, tail, mixed, start, stop, low + j)
            if done:
                at_rank[np.uint64(low)] += k
                at_rank[np.uint64(high)] += np.int64(stop - start) - k
                g_low, g_high = unit * (worst - low), unit * (worst - high)
                total = 0.0
                for q in range(start, stop):
                    g = g_high if level - mixed[q] - bar >= 0.0 else g_low
                    gradient[np.uint64(index[q])] = g
                    total += g * (mixed[q] - ref)
                partial[r] = total
                continue
        a, b = np.int64(start), np.int64(stop)
        if are_equal(mixed, start, stop):
            mean = solve_tie(weight, discount, tail, pos, mixed[start], j, b - a, low, high, at_rank)
            g = unit * mean
            for q in range(start, stop):
                gradient[np.uint64(index[q])] = g
            partial[r] = g * float(b - a) * (mixed[start] - ref)
            continue
        neg, order = mixed[a:b], index[a:b]
        if stop - start <= FEW_MEMBERS:
            insert(neg, order, b - a)
        else:
            spare, index_spare = neg.copy(), order.copy()
            merge_sort(spare, index_spare, b - a, neg, order)
        walk(weight, discount, tail, pos, neg, places, j, low, high)
        partial[r] = conclude_sorted(neg, order, places, low, high, worst - 1, unit, ref, at_rank, gradient)


@inline
def are_equal(mixed, start, stop):
    """Whether all members of a region have one score."""
    q = start + np.uint64(1)
    while q < stop and mixed[q] == mixed[start]:
        q += np.uint64(1)
    return q == stop


@inline
def split(w, level, discount, tail, mixed, start, stop, m):
    """Where one rank gives way to the next: (k, bar, whether the k highest members are those above the bar).

    The member with t members above it keeps the lower rank if it scores above level − bar_t, which rises with t. Let
    above_bar(t) count the members above that; it falls as t grows, and k is the least t with above_bar(t) ≤ t.
    """
    most = above_bar(level, w * drop(discount, tail, m), mixed, start, stop)
    bar = w * drop(discount, tail, m + most)
    found = above_bar(level, bar, mixed, start, stop)
    if found == most:
        return most, bar, True
    return split_between(w, level, discount, tail, mixed, start, stop, m, found, most)


@part
def split_between(w, level, discount, tail, mixed, start, stop, m, least, most):
    """`split` where least ≤ k ≤ most."""
    while least < most:
        middle = (least + most) >> 1
        if above_bar(level, w * drop(discount, tail, m + middle), mixed, start, stop) <= middle:
            most = middle
        else:
            least = middle + 1
    k = least
    bar = w * drop(discount, tail, m + k)
    found = above_bar(level, bar, mixed, start, stop)
    if found < k:  # some of the k highest are below bar k: bar k − 1 must tell them from the rest
        bar = w * drop(discount, tail, m + k - 1)
        found = above_bar(level, bar, mixed, start, stop)
    return k, bar, found == k


@inline
def above_bar(level, bar, mixed, start, stop):
    """How many of mixed[start:stop] score so high that the next rank would lose by it."""
    size = np.int64(0)
    for q in range(start, stop):
        size += np.int64(level - mixed[q] - bar < 0.0)
    return size
