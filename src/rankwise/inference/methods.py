"""The methods by name, and which of them serves a query."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.inference import chakrabarti, dynamic, exhaustive, mohapatra2014, quicksort, rounds, yue
from rankwise.inference.large import solve_large
from rankwise.inference.problem import Problem, Solution, conclude, pose
from rankwise.inference.small import solve_queries
from rankwise.inference.threads import run, worth
from rankwise.loss_forms import DiscountedLoss, Loss

# A query of so many samples, and so many more for each positive, takes less time by buckets than by a sort.
LARGE, A_POSITIVE = 1 << 13, 12
_RANKS: dict[str, Callable[[Problem], NDArray[np.int64]]] = {
    "quicksort": quicksort.ranks,
    "yue": yue.ranks,
    "mohapatra2014": mohapatra2014.ranks,
    "dynamic": dynamic.ranks,
}
_WITHOUT_C2 = ("dynamic", "chakrabarti", "exhaustive")
METHODS = ("auto", "bucketed", *_RANKS, "chakrabarti", "exhaustive")


def solve(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    n_pos: int,
    loss: Loss,
    scale: float,
    method: str,
    cutoff: int | None,
    limit: float,
    n_threads: int,
) -> Solution | None:
    """Solve one query with positives and negatives; None if a score is not within ±limit."""
    n_neg = scores.shape[0] - n_pos
    if method not in _WITHOUT_C2:
        loss.check(n_pos, n_neg, thorough=False)
    elif isinstance(loss, DiscountedLoss):
        loss.normaliser(n_pos, n_neg)
    if method in ("auto", "bucketed") and isinstance(loss, DiscountedLoss):
        tables = loss.tables(n_pos, scores.shape[0])
        if scores.shape[0] >= LARGE + A_POSITIVE * n_pos:
            return solve_large(scores, relevant, n_pos, tables, scale, limit, n_threads)
        return _solve_alone(scores, relevant, tables, scale, limit, n_pos)
    lay_out = method in _RANKS or method == "chakrabarti"
    problem = pose(scores, relevant, n_pos, loss, scale, limit, lay_out)
    return None if problem is None else conclude(problem, _ranks(problem, method, cutoff), scores.dtype)


def _solve_alone(scores, relevant, tables, scale, limit, n_pos):
    gradient, starts, out, counts = np.empty_like(scores), _empty(2), np.empty((1, 2)), _empty((1, 2))
    above, positives = _empty((1, n_pos + 1)), _empty((1, n_pos))
    starts[0], starts[1] = 0, scores.shape[0]
    found = (gradient, out, counts, above, positives)
    solved = solve_queries(scores, relevant, starts, 0, 1, limit, *tables, scale, *found, *_room(scores.shape[0]))
    return Solution(float(out[0, 0]), float(out[0, 1]), gradient, above[0], positives[0]) if solved else None


def _room(size: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Room for `solve_queries` of queries of at most so many samples; NumPy asks for large pages, kernels do not."""
    return np.empty((2, size)), np.empty((3, size + 2), np.int64)


def _empty(shape: int | tuple[int, ...]) -> NDArray[np.int64]:
    return np.empty(shape, np.int64)


def _ranks(problem: Problem, method: str, cutoff: int | None) -> NDArray[np.int64]:
    n_neg = problem.neg.size
    if method == "exhaustive":
        above = exhaustive.best_above(problem.pos, problem.neg, problem.loss, problem.scale)
        ranks = np.empty(n_neg, np.int64)
        ranks[np.argsort(-problem.neg, kind="stable")] = 1 + np.searchsorted(above, np.arange(n_neg), side="right")
        return ranks
    if method in ("auto", "bucketed"):  # a loss known only by its steps
        return rounds.ranks(problem)
    if method == "chakrabarti":
        return chakrabarti.ranks(problem, cutoff)
    return _RANKS[method](problem)


class Batch(NamedTuple):
    """Per query J and Δ (Q, 2), P and N (Q, 2), and the gradient of their sum."""

    out: NDArray[np.float64]
    counts: NDArray[np.int64]
    gradient: NDArray[np.floating]


def solve_many(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    starts: NDArray[np.int64],
    loss: Loss,
    scale: float,
    method: str,
    cutoff: int | None,
    limit: float,
    n_threads: int,
) -> Batch | int:
    """Solve queries that lie one after the other; or the number of one whose scores are not within ±limit."""
    n_queries = starts.size - 1
    sizes = np.diff(starts)
    batch = Batch(np.zeros((n_queries, 2)), np.zeros((n_queries, 2), np.int64), np.empty_like(scores))
    fast = method in ("auto", "bucketed") and isinstance(loss, DiscountedLoss)
    alone = np.flatnonzero(sizes >= LARGE) if fast else np.arange(n_queries)
    for q in alone:
        part = slice(starts[q], starts[q + 1])
        n_pos = int(np.count_nonzero(relevant[part]))
        batch.counts[q] = n_pos, sizes[q] - n_pos
        if batch.counts[q].min() == 0:
            if not (np.abs(scores[part]) <= limit).all():
                return int(q)
            batch.gradient[part] = 0.0
            continue
        solution = solve(scores[part], relevant[part], n_pos, loss, scale, method, cutoff, limit, n_threads)
        if solution is None:
            return int(q)
        batch.out[q] = solution.value, solution.loss
        batch.gradient[part] = solution.gradient
    if fast:
        edges = np.concatenate([[-1], alone, [n_queries]])
        for first, last in zip(edges[:-1] + 1, edges[1:], strict=True):
            stopped = _solve_run(scores, relevant, starts, int(first), int(last), loss, scale, limit, n_threads, batch)
            if stopped < last:
                return stopped
    return batch


def _solve_run(scores, relevant, starts, first, last, loss, scale, limit, n_threads, batch):
    """The small queries first ≤ q < last, divided evenly among threads; the first not solved, or last."""
    if first == last:
        return last
    sizes = np.diff(starts[first : last + 1])
    loss.check_many(relevant, starts[first : last + 1])
    tables = loss.tables(int(sizes.max()), int(sizes.max()))
    n_threads = worth(int(starts[last] - starts[first]), n_threads)
    goals = np.linspace(starts[first], starts[last], n_threads + 1)
    cuts = np.unique(np.clip(np.searchsorted(starts, goals), first, last))
    cuts[0], cuts[-1] = first, last
    found = (batch.gradient, batch.out, batch.counts, _empty((0, 0)), _empty((0, 0)))
    jobs: list[tuple[Any, ...]] = [
        (scores, relevant, starts, a, b, limit, *tables, scale, *found, *_room(int(sizes.max())))
        for a, b in pairwise(cuts)
    ]
    stops = run(solve_queries, jobs)
    return next((stop for stop, b in zip(stops, cuts[1:], strict=True) if stop < b), last)
