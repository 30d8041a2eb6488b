"""Algorithm 1 depth by depth, O(log N) whole-array operations: for losses known only by a step function in Python.

The negatives are sorted; then all segments of one depth of the recursion are evaluated together, so that the step
function is called once a depth, with arrays. O(N log N) for the sort, O(P log N) steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.problem import Problem
from rankwise.kernels.steps import best_of_segments


def ranks(problem: Problem) -> NDArray[np.int64]:
    """The optimal interleaving rank of each negative."""
    n_pos, n_neg = problem.pos.size, problem.neg.size
    order = np.argsort(-problem.neg, kind="stable")
    neg = problem.neg[order]
    rank = np.zeros(n_neg, np.int64)
    left, right = np.array([0]), np.array([n_neg - 1])
    low, high = np.array([1]), np.array([n_pos + 1])
    filled: list[tuple[NDArray[np.int64], ...]] = []
    while left.size:
        m = (left + right) // 2
        opt = _best(problem, neg[m], m + 1, low, high)
        rank[m] = opt
        left, right = np.concatenate([left, m + 1]), np.concatenate([m - 1, right])
        low, high = np.concatenate([low, opt]), np.concatenate([opt, high])
        some = left <= right
        done = some & (low == high)
        filled.append((left[done], right[done], low[done]))
        go_on = some & (low < high)
        left, right, low, high = left[go_on], right[go_on], low[go_on], high[go_on]
    for begins, ends, values in filled:
        for begin, end, value in zip(begins, ends, values, strict=True):
            rank[begin : end + 1] = value
    result = np.empty_like(rank)
    result[order] = rank
    return result


def _best(problem: Problem, score: NDArray[np.float64], j, low, high):
    """best_rank of several negatives, each over its own range of ranks."""
    n_pos, n_neg = problem.pos.size, problem.neg.size
    sizes = high - low
    begin = np.cumsum(sizes) - sizes
    segment = np.repeat(np.arange(sizes.size), sizes)
    i = np.arange(sizes.sum()) - begin[segment] + low[segment]
    step = problem.pos[i - 1] - score[segment]
    step += problem.scale * n_pos * n_neg / 2.0 * problem.loss.steps(i, j[segment], n_pos, n_neg)
    return best_of_segments(step, begin, low, high)
