"""Graded relevance as a weighted mean of binary relevance, one for each grade as a threshold.

    Δ = Σ_l α_l Δ_l,   α_l = (G(l) − G(l′))·C_l / Σ (G(l) − G(l′))·C_l

l runs through the different grades of a query, and l′ is the grade before l (G(l′) = 0 for the first). Δ_l is the loss
with the samples of grade l or more as positives, and C_l is its normaliser. The lowest grade is not a threshold (its Δ
is 0), but its gain counts in the denominator, so that NDCG becomes graded NDCG.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import raise_not_finite
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.gains import gains_of
from rankwise.metrics.loss import Loss
from rankwise.queries import Queries, Solved, compiled, part_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Most thresholds of a query. Each is solved separately.
MOST_LEVELS = 256


class Levels(NamedTuple):
    """The different grades of each query, ascending, one query after the other.

    starts: (Q + 1,) where the grades of each query begin. grade: (T,). members: (T,) number of samples of at least this
    grade.
    """

    starts: IntArray
    grade: FloatArray
    members: IntArray


# The t-th grade above the lowest as binary relevance: t; the queries that have such a grade, (Q′,); positions of their
# samples, (n′,), empty if all queries have one; these queries.
Threshold = tuple[int, IntArray, IntArray, Queries]


def levels_of(queries: Queries) -> Levels:
    """Return the different grades of graded queries."""

    def find() -> Levels:
        assert queries.grades is not None
        n, starts = queries.grades.shape[0], np.empty_like(queries.starts)
        grade, count = np.empty(n), np.empty(n, np.int64)
        compiled("levels").find_levels(queries.grades, queries.starts, starts, grade, count)
        return Levels(starts, grade[: starts[-1]].copy(), count[: starts[-1]].copy())

    return queries.once("levels", find)


def level_of_samples(queries: Queries) -> IntArray:
    """Return the level, 0 … T − 1, of each sample, (n,)."""
    levels, at = levels_of(queries), np.empty(queries.relevant.shape[0], np.int64)
    compiled("levels").number_levels(queries.grades, queries.starts, levels.starts, levels.grade, at)
    return at


def level_gains(levels: Levels, loss: Loss) -> tuple[FloatArray, FloatArray]:
    """Return G(l) and G(l) − G(l′) of every level, (T,) each, divided by the query's highest gain to avoid overflow."""
    gain = gains_of(levels.grade, loss.gain)
    n_levels = np.diff(levels.starts)
    used = n_levels > 0
    first, last = levels.starts[:-1][used], levels.starts[1:][used] - 1
    top = np.where(gain[last] > 0.0, gain[last], 1.0)
    gain = gain / np.repeat(top, n_levels[used])
    step = np.diff(gain, prepend=0.0)
    step[first] = gain[first]
    return gain, step


def check_levels(queries: Queries) -> int:
    """Return the largest number of different grades in a query; refuse more than `MOST_LEVELS` above the lowest."""
    return check_number(int(np.diff(levels_of(queries).starts).max(initial=0)))


def check_number(most: int) -> int:
    """Return this number of different grades in a query if it is not too large."""
    if most > MOST_LEVELS + 1:
        raise ValueError(
            f"a query has {most} different grades; this loss takes at most {MOST_LEVELS} above the lowest; bin them, "
            "e.g. np.round(grades, 1), or use smooth_loss with 'ndcg', which takes any number"
        )
    return most


def thresholds_of(queries: Queries) -> list[Threshold]:
    """Return all thresholds as binary queries, at most `MOST_LEVELS` per query."""
    return queries.once("thresholds", lambda: [_threshold(queries, t) for t in range(1, check_levels(queries))])


def _threshold(queries: Queries, t: int) -> Threshold:
    assert queries.grades is not None
    levels, grades, starts, samples = levels_of(queries), queries.grades, queries.starts, np.empty(0, np.int64)
    has = np.diff(levels.starts) > t
    if not has.all():
        own, starts = part_of(queries, has)
        samples, grades = np.flatnonzero(own), grades[own]
    relevant = np.empty(grades.shape[0], np.bool_)
    compiled("levels").at_least(grades, starts, levels.grade[levels.starts[:-1][has] + t], relevant)
    return t, np.flatnonzero(has), samples, Queries(relevant, starts)


def weigh_levels(levels: Levels, sizes: IntArray, loss: Loss) -> FloatArray:
    """Return α of every level, (T,), for queries of these sizes; 0 if no grade of a query has a gain."""
    if loss.judges_labels:
        raise ValueError(f"{loss.name} takes labels, not grades; pass relevant > 0, or choose a ranking loss")
    assert isinstance(loss, DiscountedLoss)
    step = level_gains(levels, loss)[1]
    shares = step * level_norms(levels, sizes, step, loss)
    n_levels = np.diff(levels.starts)
    whole = np.repeat(sums_of(shares, n_levels), n_levels)
    return np.divide(shares, whole, out=np.zeros_like(shares), where=whole > 0.0)


def level_norms(levels: Levels, sizes: IntArray, step: FloatArray, loss: DiscountedLoss) -> FloatArray:
    """Return C of every level with a step (T,) above 0, and 0 for the others, such as grade 0."""
    counts = (step > 0.0).nonzero()[0]
    n_neg = np.repeat(sizes, np.diff(levels.starts)) - levels.members
    norms = np.zeros_like(step)
    norms[counts] = loss.normaliser(levels.members[counts], n_neg[counts])
    return norms


def sums_of(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Return the sums of consecutive parts of these sizes, which may be 0."""
    result = np.zeros(sizes.size)
    used = sizes > 0
    if used.any():
        result[used] = np.add.reduceat(values, (np.cumsum(sizes) - sizes)[used])
    return result


def sum_over_levels(
    scores: NDArray[np.floating], queries: Queries, loss: Loss, solve: Callable[[NDArray[np.floating], Queries], Any]
) -> Solved:
    """Return Σ_l α_l of the results of `solve(scores, binary queries)`: per query, and gradients per sample."""
    thresholds, levels = thresholds_of(queries), levels_of(queries)
    weights = queries.once("weights", lambda: weigh_levels(levels, queries.sizes, loss), loss)
    value, lost = np.zeros(queries.sizes.size), np.zeros(queries.sizes.size)
    gradient = np.zeros_like(scores)
    if not thresholds or thresholds[0][2].size:
        raise_not_finite(scores)  # no threshold covers all scores
    for t, which, samples, binary in thresholds:
        found = solve(scores[samples] if samples.size else scores, binary)
        weight = weights[levels.starts[which] + t]
        value[which] += weight * found.value
        lost[which] += weight * found.loss
        compiled("levels").add_weighted(found.gradient, binary.starts, weight, samples, gradient)
        del found  # so that the next one reuses its memory
    return Solved(value, lost, gradient)
