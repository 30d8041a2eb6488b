"""Algorithm 1 of the paper: the quicksort-flavoured search for all optimal interleaving ranks.

Scores are kept in descending order, as opt is indexed (the paper's precondition (i) is written for ascending
order). MEDIAN and SELECT are one call here, `divide`: a pass around a pivot near the median, and where that leaves less
than a sixteenth on one side, `select`, which finds the median itself: quickselect while it halves quickly, a sort when
an input resists. So the whole is O(N log P + P log N), and never more than O(N log N). The recursion is a stack: its
right half is kept for later, and the loop goes on with the left one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import inline, kernel, part
from rankwise.kernels.sorting import merge_run
from rankwise.kernels.steps import best_rank

if TYPE_CHECKING:
    from rankwise.kernels.problem import Problem

# Segments this short are sorted by insertion: their medians then cost nothing.
SHORT = 16
# What quickselect may look at, in segments, before it sorts what is left of one.
PATIENCE = 6
# Columns of `trace`, and of `stack`: ℓ⁻, r⁻, ℓ⁺, r⁺ and (trace) m, opt_m or (stack) whether sorted.
TRACE_COLUMNS, STACK_COLUMNS = 6, 5
# Segments that wait: each has at most 15/16 of the one before, or one half if selected; 80 are more than any query has.
STACK_ROWS = 80


def run(problem: Problem, trace_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranks, what was counted, and the calls, of which at most `trace_rows` are kept."""
    work, rows = np.zeros(3, np.int64), np.empty((trace_rows, TRACE_COLUMNS), np.int64)
    found = all_ranks(*problem.arrays, work, rows)
    return found, work, rows


@kernel
def all_ranks(pos, neg, weight, discount, tail, work, rows):
    """Algorithm 1 on a whole query: OptRanks(1, N, 1, P + 1)."""
    n = neg.shape[0]
    val, idx, rank, result = neg.copy(), np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    opt_ranks(weight, discount, tail, pos, val, idx, rank, 0, work, rows)
    for q in range(n):
        result[idx[q]] = rank[q]
    return result


@part
def opt_ranks(weight, discount, tail, pos, val, idx, rank, is_sorted, work, trace):
    """Fill rank, val being all negatives; in descending order if is_sorted is 1, else in some order.

    val and idx are rearranged together; afterwards rank ascends along them. work counts [evaluated
    negatives, elements moved, rows of trace written]. A row of trace is (ℓ⁻, r⁻, ℓ⁺, r⁺, m, opt_m), m = 0 where a
    segment was filled without evaluation; an empty trace records nothing.
    """
    stack, depth = np.empty((STACK_ROWS, STACK_COLUMNS), np.int64), 0
    left, right, low, high = 0, val.shape[0] - 1, 1, pos.shape[0] + 1
    while True:
        if low == high:  # Algorithm 1, line 2
            rank[left : right + 1] = low
            record(trace, work, left + 1, right + 1, low, high, 0, low)
        else:
            if is_sorted == 0 and right - left < SHORT:
                insertion_sort(val, idx, left, right, work)
                is_sorted = 1
            m = (left + right) >> 1
            if is_sorted == 0:
                m = divide(val, idx, left, right, work)  # lines 4 and 5
            opt = best_rank(weight, discount, tail, pos, val[m], m + 1, low, high)  # line 6
            rank[m] = opt
            work[0] += 1
            record(trace, work, left + 1, right + 1, low, high, m + 1, opt)
            if m < right:  # line 8, kept for later
                stack[depth, 0], stack[depth, 1] = m + 1, right
                stack[depth, 2], stack[depth, 3], stack[depth, 4] = opt, high, is_sorted
                depth += 1
            if left < m:  # line 7
                right, high = m - 1, opt
                continue
        if depth == 0:
            return
        depth -= 1
        left, right = stack[depth, 0], stack[depth, 1]
        low, high, is_sorted = stack[depth, 2], stack[depth, 3], stack[depth, 4]


@part
def divide(val, idx, left, right, work):
    """Rearrange val[left..right] around an element near its median; where that element then is."""
    middle = (left + right) >> 1
    third = (right - left) // 3
    swap(val, idx, median_position(val, left + third, middle, right - third), right)
    pivot = val[right]
    end = np.uint64(left)
    for k in range(np.uint64(left), np.uint64(right)):  # no branch depends on a score
        v, i = val[k], idx[k]
        val[k], idx[k] = val[end], idx[end]
        val[end], idx[end] = v, i
        end += np.uint64(v > pivot)
    m = np.int64(end)
    swap(val, idx, m, right)
    work[1] += right - left + 1
    if 16 * min(m - left, right - m) < right - left:
        select(val, idx, left, right, middle, work)
        return middle
    return m


@inline
def median_position(val, a, b, c):
    """Which of three positions holds the middle value."""
    if val[a] > val[b]:
        a, b = b, a
    if val[b] > val[c]:
        b = c if val[c] > val[a] else a
    return b


@inline
def record(trace, work, left, right, low, high, m, opt):
    """Append a row to trace, while it has room."""
    row = work[2]
    if row < trace.shape[0]:
        trace[row, 0], trace[row, 1], trace[row, 2] = left, right, low
        trace[row, 3], trace[row, 4], trace[row, 5] = high, m, opt
        work[2] = row + 1


@inline
def swap(val, idx, a, b):
    """Exchange two elements of val, and of idx."""
    v, i = val[a], idx[a]
    val[a], idx[a] = val[b], idx[b]
    val[b], idx[b] = v, i


@part
def insertion_sort(val, idx, left, right, work):
    """Sort val[left..right] in descending order, idx along with it."""
    for a in range(left + 1, right + 1):
        v, i = val[a], idx[a]
        b = a - 1
        while b >= left and val[b] < v:
            val[b + 1], idx[b + 1] = val[b], idx[b]
            b -= 1
        val[b + 1], idx[b + 1] = v, i
        work[1] += a - b


@part
def select(val, idx, left, right, k, work):
    """Rearrange val[left..right] so that val[k] is in its place: nothing smaller before it, nothing larger after."""
    budget = PATIENCE * (right - left + 1)
    while right - left >= SHORT:
        if budget < 0:
            merge_run(val, idx, left, right + 1)
            work[1] += right - left + 1
            return
        budget -= right - left
        pivot = val[median_position(val, left, (left + right) >> 1, right)]
        left, right = narrow(val, idx, left, right, k, pivot, work)
    insertion_sort(val, idx, left, right, work)


@inline
def narrow(val, idx, left, right, k, pivot, work):
    """Partition val[left..right] around a value of it; the side that holds position k, or (k, k) if neither does."""
    a, b = left, right
    while a <= b:
        while val[a] > pivot:
            a += 1
        while val[b] < pivot:
            b -= 1
        if a <= b:
            swap(val, idx, a, b)
            work[1] += 2
            a += 1
            b -= 1
    return (left, b) if k <= b else (a, right) if k >= a else (k, k)
