"""Algorithm 1 of the paper: the quicksort-flavoured search for all optimal interleaving ranks.

Scores are kept in descending order, as opt is indexed (the paper's precondition (i) is written for ascending
order). MEDIAN and SELECT are one call here, `divide`: a pass around a pivot near the median, and where that leaves less
than a sixteenth on one side, `select`, which finds the median itself: quickselect while it halves quickly, medians of
medians when an input resists. So the whole is O(N log P + P log N) on every input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inference.compiled import inline, kernel, part
from rankwise.inference.steps import best_rank

if TYPE_CHECKING:
    from rankwise.inference.problem import Problem
    from rankwise.metrics.registry import LossLike

# Segments this short are sorted by insertion: their medians then cost nothing.
SHORT = 16
# Columns of `trace`, and columns of `stack`: ℓ⁻, r⁻, ℓ⁺, r⁺ and (trace) m, opt_m or (stack) whether sorted.
TRACE_COLUMNS = 6
STACK_ROWS = 80


class Work(NamedTuple):
    """
    Work that Algorithm 1 did on one query.

    Parameters
    ----------
    evaluated : int
        Number of negatives whose best rank was searched for.
    moves : int
        Number of elements that the steps MEDIAN and SELECT moved.

    See Also
    --------
    count_work : Counts the work on a query.

    Examples
    --------
    >>> from rankwise.inference import Work
    >>> Work(evaluated=3, moves=8).evaluated
    3
    """

    evaluated: int
    moves: int


class Step(NamedTuple):
    """
    One call OptRanks(left, right, low, high) of Algorithm 1.

    Negatives and ranks are counted from 1, negatives by descending score. A rank says how many positives, plus 1, a
    negative stands behind.

    Parameters
    ----------
    left, right : int
        First and last negative of the segment.
    low, high : int
        Lowest and highest rank that its negatives can have.
    m : int
        Negative whose best rank was searched for; 0 if low = high, so that there was nothing to search.
    opt : int
        Best rank of that negative, or of all negatives of the segment where m = 0.

    See Also
    --------
    trace : Lists the calls on a query.

    Examples
    --------
    >>> from rankwise.inference import Step
    >>> Step(left=1, right=1, low=2, high=2, m=0, opt=2).opt
    2
    """

    left: int
    right: int
    low: int
    high: int
    m: int
    opt: int


def ranks(problem: Problem) -> NDArray[np.int64]:
    """The optimal interleaving rank of each negative."""
    return _run(problem, 0)[0]


def count_work(scores: ArrayLike, relevant: ArrayLike, loss: LossLike = "ap", scale: float = 1.0) -> Work:
    """
    Count the work that Algorithm 1 does on one query.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the samples.
    relevant : array-like of shape (n,)
        True for positives, False for negatives.
    loss : str or Loss, default "ap"
        Ranking loss, as in `rankwise.structured_hinge`.
    scale : float, default 1.0
        Weight of the loss beside the scores.

    Returns
    -------
    Work
        Number of searches and of moved elements.

    See Also
    --------
    trace : Lists the calls themselves.
    rankwise.most_violating_ranking : Returns the ranking that the algorithm finds.

    Examples
    --------
    >>> from rankwise.inference import count_work
    >>> count_work([2.0, 1.0, 0.5, 0.0], [False, True, False, True]).evaluated
    2
    """
    _, work, _ = _run(_problem(scores, relevant, loss, scale), 0)
    return Work(int(work[0]), int(work[1]))


def trace(scores: ArrayLike, relevant: ArrayLike, loss: LossLike = "ap", scale: float = 1.0) -> list[Step]:
    """
    List the calls of Algorithm 1 on one query, in order: Figure 1 of the paper.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the samples.
    relevant : array-like of shape (n,)
        True for positives, False for negatives.
    loss : str or Loss, default "ap"
        Ranking loss, as in `rankwise.structured_hinge`.
    scale : float, default 1.0
        Weight of the loss beside the scores.

    Returns
    -------
    list of Step
        Segment, range of ranks and result of each call.

    See Also
    --------
    count_work : Counts what the calls cost.
    rankwise.most_violating_ranking : Returns the ranking that the algorithm finds.

    Examples
    --------
    >>> from rankwise.inference import trace
    >>> for step in trace([2.0, 1.0, 0.5, 0.0], [False, True, False, True]):
    ...     print(step)
    Step(left=1, right=2, low=1, high=3, m=1, opt=1)
    Step(left=2, right=2, low=1, high=3, m=2, opt=2)
    """
    problem = _problem(scores, relevant, loss, scale)
    _, work, rows = _run(problem, 2 * problem.neg.size + 1)
    return [Step(*(int(x) for x in row)) for row in rows[: work[2]]]


def _problem(scores: ArrayLike, relevant: ArrayLike, loss: LossLike, scale: float) -> Problem:
    from rankwise.arguments import as_relevant, as_scale, as_scores, raise_not_finite
    from rankwise.inference.problem import as_problem
    from rankwise.metrics.registry import as_loss

    array, _ = as_scores(scores)
    raise_not_finite(array)
    truth = as_relevant(relevant, array.shape[0])
    n_pos = int(np.count_nonzero(truth))
    if n_pos in (0, array.shape[0]):
        raise ValueError(f"the query has {n_pos} positives and {array.shape[0] - n_pos} negatives; it needs both")
    loss = as_loss(loss)
    loss.check(n_pos, array.shape[0] - n_pos, thorough=False)
    return as_problem(array, truth, n_pos, loss, as_scale(scale))


def _run(problem: Problem, trace_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    work, rows = np.zeros(3, np.int64), np.empty((trace_rows, TRACE_COLUMNS), np.int64)
    found = all_ranks(
        problem.pos, problem.neg, problem.weight, problem.discount, problem.tail, problem.table, work, rows
    )
    return found, work, rows


@kernel
def all_ranks(pos, neg, weight, discount, tail, table, work, rows):
    """Algorithm 1 on a whole query: OptRanks(1, N, 1, P + 1)."""
    return ranks_between(pos, neg, weight, discount, tail, table, 1, 1, pos.shape[0] + 1, work, rows)


@kernel
def ranks_between(pos, neg, weight, discount, tail, table, j, low, high, work, rows):
    """Algorithm 1 on negatives j, j + 1, … that have ranks low … high: OptRanks(j, j + N − 1, low, high)."""
    n = neg.shape[0]
    val, idx, rank, result = neg.copy(), np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    stack = np.empty((STACK_ROWS, 5), np.int64)
    opt_ranks(weight, discount, tail, table, pos, val, idx, rank, 0, n, j, low, high, 0, stack, work, rows)
    for q in range(n):
        result[idx[q]] = rank[q]
    return result


@part
def opt_ranks(
    weight, discount, tail, table, pos, val, idx, rank, start, stop, j_start, low, high, is_sorted,
    stack, work, trace,
):  # fmt: skip
    """Fill rank[start:stop], val[start:stop] being the negatives j_start, j_start+1, … in some order (is_sorted = 0).

    val and idx are rearranged together; afterwards rank ascends along them. work counts [evaluated
    negatives, elements moved, rows of trace written]. A row of trace is (ℓ⁻, r⁻, ℓ⁺, r⁺, m, opt_m), m = 0 where a
    segment was filled without evaluation; an empty trace records nothing.
    """
    shift = j_start - start
    depth = 0
    left, right = start, stop - 1
    while True:
        if low == high:  # Algorithm 1, line 2
            rank[left : right + 1] = low
            record(trace, work, left + shift, right + shift, low, high, 0, low)
        else:
            if is_sorted == 0 and right - left < SHORT:
                insertion_sort(val, idx, left, right, work)
                is_sorted = 1
            m = (left + right) >> 1
            if is_sorted == 0:
                m = divide(val, idx, left, right, work)  # lines 4 and 5
            opt = best_rank(weight, discount, tail, table, pos, val[m], m + shift, low, high)  # line 6
            rank[m] = opt
            work[0] += 1
            record(trace, work, left + shift, right + shift, low, high, m + shift, opt)
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
    budget = 6 * (right - left + 1)  # what quickselect may look at before it must be sure of halving
    while right - left >= SHORT:
        if budget < 0:
            select_surely(val, idx, left, right, k, work)
            return
        budget -= right - left
        pivot = median_of_three(val[left], val[(left + right) >> 1], val[right])
        left, right = narrow(val, idx, left, right, k, pivot, work)
    insertion_sort(val, idx, left, right, work)


@part
def select_surely(val, idx, left, right, k, work):
    """`select` around medians of medians: linear whatever the input (Blum et al. 1973).

    The pivot of a segment is the median of its groups' medians, found likewise: the segment waits on a stack meanwhile.
    """
    waiting = np.empty((40, 3), np.int64)
    depth = 0
    while True:
        if right - left >= SHORT:
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = left, right, k
            depth += 1
            right = gather_medians(val, idx, left, right, work)
            k = (left + right) >> 1
            continue
        insertion_sort(val, idx, left, right, work)
        if depth == 0:
            return
        depth -= 1
        pivot = val[k]
        left, right, k = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        left, right = narrow(val, idx, left, right, k, pivot, work)


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


@part
def gather_medians(val, idx, left, right, work):
    """Bring the median of each group of five to the front of val[left..right]; the position of the last one."""
    end = left - 1
    for group in range(left, right + 1, 5):
        last = min(group + 4, right)
        insertion_sort(val, idx, group, last, work)
        end += 1
        swap(val, idx, end, (group + last) >> 1)
        work[1] += 2
    return end


@inline
def median_of_three(a, b, c):
    """The middle one of three values."""
    return max(min(a, b), min(max(a, b), c))
