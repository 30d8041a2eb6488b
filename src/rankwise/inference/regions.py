"""Regions: the negatives of a bucket in which ranks change, gathered, and how their ranks are found.

Most regions are small and divide one rank from the next; counting splits those. Algorithm 1 solves the rest.
"""

from __future__ import annotations

import numpy as np

from rankwise.inference.compiled import inline, kernel, part
from rankwise.inference.quicksort import STACK_ROWS, opt_ranks
from rankwise.inference.steps import drop, rank_by_discount

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
    would cost more than the split. Other small ones are sorted; large ones go through Algorithm 1.
    """
    worst = pos.shape[0] + 1
    places, rank = np.empty(pos.shape[0], np.int64), np.empty(mixed.shape[0], np.int64)
    stack, work = np.empty((STACK_ROWS, 5), np.int64), np.zeros(3, np.int64)
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
        if stop - start <= FEW_MEMBERS:
            sort_few(mixed, index, start, stop)
            a, b = np.int64(start), np.int64(stop)
            walk(weight, discount, tail, pos, mixed, rank, places, a, b, j, low, high, stack, work)
            partial[r] = conclude_sorted(mixed, index, rank, a, b, unit, ref, worst, at_rank, gradient)
            continue
        partial[r] = solve_hard(
            weight, discount, tail, pos, mixed, index, rank, np.int64(start), np.int64(stop), j, low, high, unit, ref,
            at_rank, gradient, stack, work,
        )  # fmt: skip


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
def walk(weight, discount, tail, pos, mixed, rank, places, start, stop, j, low, high, stack, work):
    """rank[start:stop], members being sorted: positives low … high − 1 in turn go down the members that belong above.

    As in edges.py, each positive's place is found as if it were alone; where places rise, the stretch is solved by
    Algorithm 1. places[k − low], how many members are above positive k, needs room for high − low.
    """
    size, c, most, in_order = stop - start, 0, 0, True
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
        straighten_places(weight, discount, tail, pos, mixed, rank, places, start, j, low, high, stack, work)
    at = start
    for k in range(low, high):
        for q in range(at, start + places[np.uint64(k - low)]):
            rank[np.uint64(q)] = k
        at = start + places[np.uint64(k - low)]
    for q in range(at, stop):
        rank[np.uint64(q)] = high


@part
def straighten_places(weight, discount, tail, pos, mixed, rank, places, start, j, low, high, stack, work):
    """Solve together each stretch of positives whose places fall somewhere, by Algorithm 1 on sorted members."""
    n = high - low
    least, no_trace, no_table = np.empty(n, np.int64), np.empty((0, 6), np.int64), np.empty((0, 0))
    no_index = np.empty(0, np.int64)
    least[n - 1] = places[n - 1]
    for k in range(n - 2, -1, -1):
        least[k] = min(places[k], least[k + 1])
    begin = 0
    while begin < n:
        end, most = begin + 1, places[begin]
        while end < n and most > least[end]:
            most = max(most, places[end])
            end += 1
        first, last = least[begin], most
        if end - begin > 1 and first < last:
            opt_ranks(
                weight, discount, tail, no_table, pos, mixed, no_index, rank, start + first, start + last, j + first,
                low + begin, low + end, np.int64(1), stack, work, no_trace,
            )  # fmt: skip
            q = first
            for k in range(begin, end):  # members of rank up to low + k are above positive low + k
                while q < last and rank[start + q] <= low + k:
                    q += 1
                places[k] = q
        begin = end


@part
def conclude_sorted(mixed, index, rank, start, stop, unit, ref, worst, at_rank, gradient):
    """Gradients of sorted members by their ranks, shared among ties; negatives per rank; Σ gradient·(score − ref)."""
    total = 0.0
    q = start
    while q < stop:
        score, below = mixed[np.uint64(q)], 0  # below: positives below the members of a tie, in all
        end = q
        while end < stop and mixed[np.uint64(end)] == score:
            r = rank[np.uint64(end)]
            at_rank[np.uint64(r)] += 1
            below += worst - r
            end += 1
        g = unit * (float(below) / float(end - q) if end - q > 1 else float(below))
        for p in range(q, end):
            gradient[np.uint64(index[np.uint64(p)])] = g
        total += g * (score - ref) * (end - q)
        q = end
    return total


@part
def solve_hard(
    weight, discount, tail, pos, mixed, index, rank, start, stop, j, low, high, unit, ref, at_rank, gradient, stack,
    work,
):  # fmt: skip
    """A region by Algorithm 1: gradients, negatives per rank; Σ gradient·(score − ref)."""
    worst = pos.shape[0] + 1
    same = np.int64(1)
    for q in range(start + 1, stop):
        if mixed[q] != mixed[start]:
            same = np.int64(0)
            break
    no_trace, no_table = np.empty((0, 6), np.int64), np.empty((0, 0))
    opt_ranks(
        weight, discount, tail, no_table, pos, mixed, index, rank, start, stop, j, low, high, same, stack, work,
        no_trace,
    )  # fmt: skip
    total = 0.0
    for q in range(start, stop):
        at_rank[rank[q]] += 1
        g = unit * (worst - rank[q])
        gradient[index[q]] = g
        total += g * (mixed[q] - ref)
    share_among_ties(mixed, index, rank, start, stop, unit, worst, gradient)
    return total


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
            opt = rank_by_discount(weight, discount, tail, pos, score, m, low, high)
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


@part
def share_among_ties(mixed, index, rank, start, stop, unit, worst, gradient):
    """Give equal scores their mean gradient: they differ only where one rank ends and the next begins amid a tie.

    rank ascends along mixed[start:stop]; the scores of one rank are in no order, but none is below the next rank's.
    """
    first = start
    while first < stop:
        end = first
        tied = mixed[first]  # the least score of this rank
        while end < stop and rank[end] == rank[first]:
            tied = min(tied, mixed[end])
            end += 1
        last, reach = tie_reach(mixed, rank, end, stop, tied)
        if reach == end:
            first = end
            continue
        total, size = 0.0, 0
        for q in range(first, reach):
            if mixed[q] == tied:
                total += float(worst - rank[q])
                size += 1
        g = unit * (total / size)
        for q in range(first, reach):
            if mixed[q] == tied:
                gradient[index[q]] = g
        first = last


@part
def tie_reach(mixed, rank, first, stop, tied):
    """Begin and end of the last of the ranks, from `first` on, that hold the value `tied` without a gap."""
    begin = end = first
    while end < stop:
        found = False
        q = end
        while q < stop and rank[q] == rank[end]:
            found |= mixed[q] == tied
            q += 1
        if not found:
            break
        begin, end = end, q
    return begin, end
