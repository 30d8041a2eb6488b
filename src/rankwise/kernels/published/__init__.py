"""The published methods and the oracle, one query at a time: ranks of the negatives by the method of that name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.kernels import algorithm1
from rankwise.kernels.contract import AnyLoss
from rankwise.kernels.problem import Problem, as_problem, conclude
from rankwise.kernels.published import chakrabarti, dynamic, exhaustive, mohapatra2014, yue
from rankwise.queries import Queries, Solved


def solve(
    scores: NDArray[np.floating],
    queries: Queries,
    loss: AnyLoss,
    scale: float,
    method: str,
    cutoff: int | None,
) -> Solved:
    """Solve queries one after the other by one method. cutoff: D(m) = 0 from there on, for Chakrabarti's; or None."""
    starts = queries.starts
    n_queries = starts.shape[0] - 1
    solved = Solved(np.zeros(n_queries), np.zeros(n_queries), np.empty_like(scores))
    for q, (n_pos, n_neg) in enumerate(queries.counts.T.tolist()):
        part = slice(starts[q], starts[q + 1])
        own = scores[part]
        if n_pos == 0 or n_neg == 0:
            if not (np.abs(own) <= limit_of(own)).all():
                raise NotFiniteError
            solved.gradient[part] = 0.0
            continue
        problem = as_problem(own, queries.relevant[part], n_pos, loss, scale)
        found = conclude(problem, _RANKS[method](problem, cutoff), scores.dtype)
        if n_queries == 1:
            return found
        solved.value[q], solved.loss[q], solved.gradient[part] = found.value[0], found.loss[0], found.gradient
    return solved


def _by_every_interleaving(problem: Problem) -> NDArray[np.int64]:
    above = exhaustive.best_above(problem.pos, problem.neg, problem.loss, problem.scale)
    ranks = np.empty(problem.neg.size, np.int64)
    by_score = np.argsort(-problem.neg, kind="stable")
    ranks[by_score] = 1 + np.searchsorted(above, np.arange(problem.neg.size), side="right")
    return ranks


_RANKS: dict[str, Callable[[Problem, int | None], NDArray[np.int64]]] = {
    "quicksort": lambda problem, _: algorithm1.run(problem, 0)[0],
    "yue": lambda problem, _: yue.scan_all(*problem.arrays),
    "mohapatra2014": lambda problem, _: mohapatra2014.fill_sorted(*problem.arrays),
    "dynamic": lambda problem, _: dynamic.ranks(problem),
    "chakrabarti": lambda problem, cutoff: chakrabarti.greedy(
        *problem.arrays, cutoff or problem.pos.size + problem.neg.size + 1
    ),
    "exhaustive": lambda problem, _: _by_every_interleaving(problem),
}
