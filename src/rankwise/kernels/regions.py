"""Regions: the negatives of a bucket in which ranks change, gathered, and how their ranks are found.

Most divide one rank from the next; counting splits those. The rest is sorted, and Algorithm 1 on sorted members finds
what the positives' places as if they were alone do not tell.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, kernel, part
from rankwise.kernels.quicksort import STACK_ROWS
from rankwise.kernels.sorting import merge_sort
from rankwise.kernels.steps import best_of_many, drop

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
                if stop - start <= np.uint64(4):  # backwards, so that the last member's own turn comes last
                    for t in range(3, -1, -1):
                        q = min(start + np.uint64(t), stop - np.uint64(1))
                        g = g_high if level - mixed[q] - bar >= 0.0 else g_low
                        gradient[np.uint64(index[q])] = g
                        total += g * (mixed[q] - ref) if start + np.uint64(t) < stop else 0.0
                else:
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
        if stop - start <= FEW_MEMBERS:
            sort_few(mixed, index, start, stop)
        else:
            spare, index_spare = np.empty(b - a), np.empty(b - a, np.int64)
            merge_sort(mixed[a:b], index[a:b], b - a, spare, index_spare)
        walk(weight, discount, tail, pos, mixed, places, a, b, j, low, high)
        partial[r] = conclude_sorted(mixed, index, places, a, b, low, high, unit, ref, worst, at_rank, gradient)


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
    if stop - start <= np.uint64(4):  # a loop of unknown length would be mispredicted; here nothing is
        for t in range(4):
            q = start + np.uint64(t)
            size += np.int64((level - mixed[min(q, stop - np.uint64(1))] - bar < 0.0) & (q < stop))
        return size
    for q in range(start, stop):
        size += np.int64(level - mixed[q] - bar < 0.0)
    return size


@inline
def sort_few(mixed, index, start, stop):
    """Sort the members of a small region by insertion, from the highest down."""
    for a in range(start + np.uint64(1), stop):
        v, i = mixed[a], index[a]
        b = a
        while b > start and mixed[b - np.uint64(1)] < v:
            mixed[b], index[b] = mixed[b - np.uint64(1)], index[b - np.uint64(1)]
            b -= np.uint64(1)
        mixed[b], index[b] = v, i


@part
def walk(weight, discount, tail, pos, mixed, places, start, stop, j, low, high):
    """places[k − low] = how many sorted members are above positive k, low ≤ k < high: each in turn goes down them.

    As in edges.py, each positive's place is found as if it were alone; where places fall, the stretch is solved by
    Algorithm 1.
    """
    size, c, most, in_order = stop - start, np.int64(0), np.int64(0), True
    for k in range(low, high):
        w, level = weight[np.uint64(k - 1)], pos[np.uint64(k - 1)]
        while c < size and mixed[np.uint64(start + c)] - level + w * drop(discount, tail, k + j + c) > 0.0:
            c += 1
        while c > 0 and not mixed[np.uint64(start + c - 1)] - level + w * drop(discount, tail, k + j + c - 1) > 0.0:
            c -= 1
        places[np.uint64(k - low)] = c
        in_order &= c >= most
        most = max(most, c)
    if not in_order:
        straighten_places(weight, discount, tail, pos, mixed, places, start, j, low, high)


@part
def straighten_places(weight, discount, tail, pos, mixed, places, start, j, low, high):
    """Solve together each stretch of positives whose places fall somewhere, by Algorithm 1 on sorted members."""
    n = high - low
    least = np.empty(n, np.int64)  # of the places from k on
    least[n - 1] = places[n - 1]
    for k in range(n - 2, -1, -1):
        least[k] = min(places[k], least[k + 1])
    begin = 0
    while begin < n:
        end, most = begin + 1, places[begin]
        while end < n and most > least[end]:
            most = max(most, places[end])
            end += 1
        if end - begin > 1:
            divide_members(
                weight, discount, tail, pos, mixed, places, start, j, low, least[begin], most, low + begin, low + end
            )  # fmt: skip
        begin = end


@part
def divide_members(weight, discount, tail, pos, mixed, places, start, j, base, left, right, low, high):
    """Algorithm 1 on sorted members left … right − 1 of a region: places[k − base] of positives low ≤ k < high."""
    stack, depth = np.empty((STACK_ROWS, 4), np.int64), 0
    while True:
        if left == right:
            for k in range(low, high):
                places[k - base] = left
        elif low < high:
            m = (left + right) >> 1
            score = np.float64(mixed[start + m])
            rank = best_of_many(weight, discount, tail, pos, score, j + m, low, high)
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = m + 1, right, rank, high
            depth += 1
            right, high = m, rank
            continue
        if depth == 0:
            return
        depth -= 1
        left, right, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]


@part
def conclude_sorted(mixed, index, places, start, stop, low, high, unit, ref, worst, at_rank, gradient):
    """Gradients of sorted members by the positives' places, negatives per rank; Σ gradient·(score − ref)."""
    total, at = 0.0, start
    for k in range(low, high + 1):
        end = start + places[np.uint64(k - low)] if k < high else stop
        g, in_all = unit * float(worst - k), 0.0
        for q in range(np.uint64(at), np.uint64(end)):
            gradient[np.uint64(index[q])] = g
            in_all += mixed[q] - ref
        total += g * in_all
        at_rank[np.uint64(k)] += end - at
        at = end
    share_among_ties(mixed, index, places, start, stop, low, high, unit, worst, gradient)
    return total


@part
def share_among_ties(mixed, index, places, start, stop, low, high, unit, worst, gradient):
    """Give equal scores their mean gradient: they differ only where a positive has its place amid a tie."""
    n, k = high - low, np.int64(0)
    while k < n:
        c = start + places[k]
        if not (start < c < stop and mixed[c - 1] == mixed[c]):
            k += 1
            continue
        first, last = c - 1, c + 1
        while first > start and mixed[first - 1] == mixed[c]:
            first -= 1
        while last < stop and mixed[last] == mixed[c]:
            last += 1
        below = (worst - high) * (last - first)  # positives below the members, in all
        while k < n and start + places[k] < last:
            below += start + places[k] - first
            k += 1
        below += (n - k) * (last - first)
        g = unit * (float(below) / float(last - first))
        for q in range(first, last):
            gradient[index[q]] = g


@part
def solve_tie(weight, discount, tail, pos, score, j_start, size, low, high, at_rank):
    """Algorithm 1 on `size` negatives of one score: adds to at_rank, returns their mean of P + 1 − rank."""
    total, worst = 0.0, pos.shape[0] + 1
    stack = np.empty((STACK_ROWS, 4), np.int64)
    left, right = j_start, j_start + size - 1
    depth = 0
    while True:
        if low == high:
            at_rank[low] += right - left + 1
            total += float(worst - low) * float(right - left + 1)
        else:
            m = (left + right) >> 1
            opt = best_of_many(weight, discount, tail, pos, score, m, low, high)
            at_rank[opt] += 1
            total += float(worst - opt)
            if m < right:
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = m + 1, right, opt, high
                depth += 1
            if left < m:
                right, high = m - 1, opt
                continue
        if depth == 0:
            return total / size
        depth -= 1
        left, right, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
