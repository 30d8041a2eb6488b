"""One query as the ranking methods see it, and how their ranks become J, Δ and the gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.contract import AnyLoss
from rankwise.kernels.flags import all_within
from rankwise.kernels.positives import finish, middle_by_weight, scaled_weights
from rankwise.kernels.sorting import slots, sort_descending
from rankwise.kernels.walk import conclude_sorted
from rankwise.queries import FoundRanking, Solved, solved_alone


class Problem(NamedTuple):
    """Positives in descending order, negatives as given, the loss (see steps.py), and the positions of both."""

    pos: NDArray[np.float64]
    neg: NDArray[np.float64]
    weight: NDArray[np.float64]
    discount: NDArray[np.float64]
    tail: int
    pos_idx: NDArray[np.int64]
    neg_idx: NDArray[np.int64]
    loss: AnyLoss
    norm: float
    scale: float

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What methods are called with: pos, neg, weight, discount and tail."""
        return self[:5]


def as_problem(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], n_pos: int, loss: AnyLoss, scale: float
) -> Problem:
    """The problem of one query that has positives and negatives."""
    n_neg = scores.shape[0] - n_pos
    pos, pos_idx = np.empty(n_pos), np.empty(n_pos, np.int64)
    neg, neg_idx = np.empty(n_neg), np.empty(n_neg, np.int64)
    if not separate(scores, relevant, limit_of(scores), pos, pos_idx, neg, neg_idx):
        raise NotFiniteError
    tables, weight = loss.tables(n_pos, scores.shape[0]), np.empty(n_pos)
    norm = scaled_weights(*tables, n_pos, n_neg, scale, weight)
    return Problem(pos, neg, weight, tables.discount, tables.tail, pos_idx, neg_idx, loss, norm, scale)


@kernel
def separate(scores, relevant, limit, pos, pos_idx, neg, neg_idx):
    """Scores and positions of positives, in descending order, and of negatives; whether all are within ±limit."""
    if not all_within(scores, limit):
        return False
    p = q = 0
    for k in range(scores.shape[0]):
        if relevant[k]:
            pos[p], pos_idx[p] = scores[k], k
            p += 1
        else:
            neg[q], neg_idx[q] = scores[k], k
            q += 1
    sort_descending(pos.copy(), pos_idx.copy(), p, pos, pos_idx, slots(p))
    return True


def conclude(problem: Problem, ranks: NDArray[np.int64], dtype: np.dtype[np.floating]) -> Solved:
    """J, Δ and the gradient of the ranking in which the negatives, as given, have these interleaving ranks."""
    n_pos, n_neg = problem.pos.size, problem.neg.size
    gradient, at_rank = np.empty(n_pos + n_neg, dtype), np.zeros(n_pos + 2, np.int64)
    total, lost = conclude_ranks(
        problem.pos, problem.neg, problem.pos_idx, problem.neg_idx, ranks, problem.loss.tables(n_pos, 1).weight,
        problem.discount, problem.tail, problem.norm, at_rank, gradient,
    )  # fmt: skip
    ranking = FoundRanking(gradient, at_rank[: n_pos + 1], problem.pos_idx)
    return solved_alone(problem.scale * lost + total, lost, ranking)


@kernel
def conclude_ranks(pos, neg, pos_idx, neg_idx, ranks, weight, discount, tail, norm, at_rank, gradient):
    """Gradients of all samples, c_k in at_rank; Σ gradient·score, and Δ.

    A negative has 2(P+1−r)/(PN), shared among ties. The gradient sums to zero: scores are counted from one of them, so
    that a common offset costs no digits.
    """
    n_pos, n_neg, above = pos.shape[0], neg.shape[0], np.int64(0)
    unit, places = 2.0 / (float(n_pos) * float(n_neg)), np.empty(n_pos, np.int64)
    for r in ranks:
        at_rank[r] += 1
    for k in range(n_pos):
        above += at_rank[k + 1]
        places[k] = above
    ref, total = middle_by_weight(pos, places), 0.0
    if spans_ranks(neg, ranks, n_pos):
        at_rank[:] = 0
        sorted_neg, order = np.empty(n_neg), np.empty(n_neg, np.int64)
        sort_descending(neg.copy(), neg_idx.copy(), n_neg, sorted_neg, order, slots(n_neg))
        total = conclude_sorted(
            sorted_neg, order, places, np.int64(1), n_pos + 1, n_pos, unit, ref, at_rank, gradient
        )  # fmt: skip
    else:
        for q in range(n_neg):
            g = unit * (n_pos + 1 - ranks[q])
            gradient[neg_idx[q]] = g
            total += g * (neg[q] - ref)
    of_pos, lost = finish(weight, discount, tail, norm, pos, pos_idx, n_neg, at_rank, ref, gradient)
    return total + of_pos, lost


@part
def spans_ranks(neg, ranks, n_pos):
    """Whether negatives of equal score differ in rank. O(N + P).

    Ranks never fall as scores do, so this is where the least score of one rank is the greatest of the next.
    """
    least, most = np.full(n_pos + 2, np.inf), np.full(n_pos + 2, -np.inf)
    for q in range(neg.shape[0]):
        r = ranks[q]
        least[r], most[r] = min(least[r], neg[q]), max(most[r], neg[q])
    lowest, tied = np.inf, False
    for r in range(1, n_pos + 2):
        tied |= most[r] == lowest
        lowest = min(lowest, least[r])
    return tied
