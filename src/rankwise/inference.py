"""The methods that find the most violating ranking, and Algorithm 1 step by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arguments import as_relevant, as_scale, as_scores, raise_not_finite
from rankwise.documenting import documented
from rankwise.kernels.algorithm1 import run
from rankwise.kernels.contract import METHODS
from rankwise.kernels.problem import Problem, as_problem
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.registry import LossLike, as_loss

__all__ = ["METHODS", "Step", "Work", "count_work", "trace"]


class Work(NamedTuple):
    """Work that Algorithm 1 did on one query.

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
    >>> count_work([2.0, 1.0, 0.5, 0.0], [False, True, False, True]).evaluated
    2
    """

    evaluated: int
    moves: int


class Step(NamedTuple):
    """One call OptRanks(left, right, low, high) of Algorithm 1.

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
    >>> trace([1.0, 0.0], [False, True])[0]
    Step(left=1, right=1, low=1, high=2, m=1, opt=1)
    """

    left: int
    right: int
    low: int
    high: int
    m: int
    opt: int


@documented
def count_work(scores: ArrayLike, relevant: ArrayLike, loss: LossLike = "ap", scale: float = 1.0) -> Work:
    """Count the work that Algorithm 1 does on one query.

    {arguments_of_one_query}

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
    >>> count_work([2.0, 1.0, 0.5, 0.0], [False, True, False, True]).evaluated
    2
    """
    _, work, _ = run(_problem(scores, relevant, loss, scale), 0)
    return Work(int(work[0]), int(work[1]))


@documented
def trace(scores: ArrayLike, relevant: ArrayLike, loss: LossLike = "ap", scale: float = 1.0) -> list[Step]:
    """List the calls of Algorithm 1 on one query, in order: Figure 1 of the paper.

    {arguments_of_one_query}

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
    >>> for step in trace([2.0, 1.0, 0.5, 0.0], [False, True, False, True]):
    ...     print(step)
    Step(left=1, right=2, low=1, high=3, m=1, opt=1)
    Step(left=2, right=2, low=1, high=3, m=2, opt=2)
    """
    problem = _problem(scores, relevant, loss, scale)
    _, work, rows = run(problem, 2 * problem.neg.size + 1)
    return [Step(*(int(x) for x in row)) for row in rows[: work[2]]]


def _problem(scores: ArrayLike, relevant: ArrayLike, loss: LossLike, scale: float) -> Problem:
    array, _ = as_scores(scores)
    raise_not_finite(array)
    truth = as_relevant(relevant, array.shape[0])
    n_pos = int(np.count_nonzero(truth))
    if n_pos in (0, array.shape[0]):
        raise ValueError(f"the query has {n_pos} positives and {array.shape[0] - n_pos} negatives; it needs both")
    known = as_loss(loss)
    known.check(n_pos, array.shape[0] - n_pos)
    assert isinstance(known, DiscountedLoss)
    return as_problem(array, truth, n_pos, known, as_scale(scale))
