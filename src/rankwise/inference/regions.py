"""From bucket counts to ranks: Algorithm 1 over bucket edges, then Algorithm 1 proper where a bucket is divided.

Bucket b holds the negatives j = above[b+1]+1 … above[b]. Their ranks lie between bound[b+1] and bound[b], the best
ranks at its two edges. Where these agree the whole bucket is done; the others are *regions*, whose members are gathered
and solved by `opt_ranks`. `value` holds what a bucket's members get as gradient, or −1−region.
"""

from __future__ import annotations

import numpy as np

from rankwise.inference.buckets import edge
from rankwise.inference.compiled import inline, kernel
from rankwise.inference.quicksort import opt_ranks
from rankwise.inference.steps import best_by_discount, drop

# Columns of a row of `regions`: members are mixed[START:STOP], negatives J.., with ranks LOW..HIGH, of one BUCKET.
START, STOP, J, LOW, HIGH, BUCKET = range(6)
REGION_COLUMNS = 6
# Regions of at most so many members are sorted outright.
FEW_MEMBERS = np.uint64(16)


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
def grade(above, bound, n_buckets, unit, n_pos, value, at_rank, regions):
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
            value[b] = unit * (n_pos + 1 - low)
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
def assign(scores, bucket, value, cursor, mixed, index, offset, n_plain, tie_score, tie_slope, gradient):
    """Write the gradient of members of undivided buckets, gather the others; Σ gradient·score of those written.

    Positions are counted from `offset`, where these scores begin. A bucket whose value is −1−n_plain−h holds the h-th
    frequent score, which has a gradient of its own; those above it go to region n_plain + 2h, those below to the next.
    """
    total = 0.0
    for k in range(scores.shape[0]):
        v = value[bucket[k]]
        if v >= 0:
            gradient[k] = v
            total += np.float64(v) * np.float64(scores[k])
            continue
        region = np.int64(-v) - 1
        if region >= n_plain:
            tie = region - n_plain
            if scores[k] == tie_score[tie]:
                gradient[k] = tie_slope[tie]
                total += np.float64(tie_slope[tie]) * np.float64(scores[k])
                continue
            region = n_plain + 2 * tie + np.int64(scores[k] < tie_score[tie])
        at = np.uint64(cursor[region])
        cursor[region] = at + np.uint64(1)
        mixed[at] = scores[k]
        index[at] = offset + k
    return total


@kernel
def solve_regions(
    weight,
    discount,
    tail,
    pos,
    n_pos,
    regions,
    first,
    last,
    mixed,
    index,
    rank,
    unit,
    at_rank,
    gradient,
    partial,
    stack,
    work,
):
    """The ranks in regions first ≤ r < last: gradients, negatives per rank, Σ gradient·score in partial[r].

    Most regions are small and divide one rank from the next: those are split without a call or a slice, which
    would cost more than the split. Other small ones are sorted; large ones go through Algorithm 1.
    """
    worst = n_pos + 1
    for r in range(first, last):
        start, stop = np.uint64(regions[r, START]), np.uint64(regions[r, STOP])
        j, low, high = regions[r, J], regions[r, LOW], regions[r, HIGH]
        partial[r] = 0.0
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
                        total += g * mixed[q] if start + np.uint64(t) < stop else 0.0
                else:
                    for q in range(start, stop):
                        g = g_high if level - mixed[q] - bar >= 0.0 else g_low
                        gradient[np.uint64(index[q])] = g
                        total += g * mixed[q]
                partial[r] = total
                continue
        if stop - start <= FEW_MEMBERS:
            partial[r] = solve_few(
                weight,
                discount,
                tail,
                pos,
                worst,
                mixed,
                index,
                start,
                stop,
                j,
                low,
                high,
                unit,
                at_rank,
                gradient,
                stack,
            )
            continue
        partial[r] = solve_hard(
            weight,
            discount,
            tail,
            pos,
            n_pos,
            mixed,
            index,
            rank,
            np.int64(start),
            np.int64(stop),
            j,
            low,
            high,
            unit,
            at_rank,
            gradient,
            stack,
            work,
        )


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
    for k in range(found, most + 1):
        bar = w * drop(discount, tail, m + k)
        found = above_bar(level, bar, mixed, start, stop)
        if found <= k:
            break
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
def solve_few(
    weight, discount, tail, pos, worst, mixed, index, start, stop, j, low, high, unit, at_rank, gradient, stack
):
    """A small region, sorted by insertion and gone down: ranks never fall. Σ gradient·score."""
    for a in range(start + np.uint64(1), stop):
        v, i = mixed[a], index[a]
        b = a
        while b > start and mixed[b - np.uint64(1)] < v:
            mixed[b], index[b] = mixed[b - np.uint64(1)], index[b - np.uint64(1)]
            b -= np.uint64(1)
        mixed[b], index[b] = v, i
    total = 0.0
    q = start
    while q < stop:
        score = mixed[q]
        end = q + np.uint64(1)
        while end < stop and mixed[end] == score:
            end += np.uint64(1)
        if end - q == np.uint64(1):
            low = best_by_discount(weight, discount, tail, pos, score, j, low, high)
            at_rank[np.uint64(low)] += 1
            g = unit * (worst - low)
        else:
            size = np.int64(end - q)
            g = unit * (worst - solve_tie(weight, discount, tail, pos, score, j, size, low, high, at_rank, stack))
            low = best_by_discount(weight, discount, tail, pos, score, j + size - 1, low, high)
        for p in range(q, end):
            gradient[np.uint64(index[p])] = g
            total += g * score
        j += np.int64(end - q)
        q = end
    return total


@kernel
def solve_hard(
    weight,
    discount,
    tail,
    pos,
    n_pos,
    mixed,
    index,
    rank,
    start,
    stop,
    j,
    low,
    high,
    unit,
    at_rank,
    gradient,
    stack,
    work,
):
    """A region by Algorithm 1: gradients, negatives per rank; Σ gradient·score."""
    worst = n_pos + 1
    same = 1
    for q in range(start + 1, stop):
        if mixed[q] != mixed[start]:
            same = 0
            break
    no_trace, no_table = np.empty((0, 6), np.int64), np.empty((0, 0))
    size = stop - start
    opt_ranks(
        weight, discount, tail, no_table, pos, mixed[start:stop], index[start:stop], np.empty(size),
        np.empty(size, np.int64), rank[start:stop], 0, size, j, low, high, same, stack, work, no_trace,
    )  # fmt: skip
    total = 0.0
    for q in range(start, stop):
        at_rank[rank[q]] += 1
        g = unit * (worst - rank[q])
        gradient[index[q]] = g
        total += g * mixed[q]
    share_among_ties(mixed, index, rank, start, stop, unit, worst, gradient)
    return total


@kernel
def solve_tie(weight, discount, tail, pos, score, j_start, size, low, high, at_rank, stack):
    """Algorithm 1 on `size` negatives of one score: adds to at_rank, returns their mean rank."""
    total = 0.0
    left, right = j_start, j_start + size - 1
    depth = 0
    while True:
        if low == high:
            at_rank[low] += right - left + 1
            total += float(low) * (right - left + 1)
        else:
            m = (left + right) >> 1
            opt = best_by_discount(weight, discount, tail, pos, score, m, low, high)
            at_rank[opt] += 1
            total += opt
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


@kernel
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
                total += rank[q]
                size += 1
        g = unit * (worst - total / size)
        for q in range(first, reach):
            if mixed[q] == tied:
                gradient[index[q]] = g
        first = last


@kernel
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
