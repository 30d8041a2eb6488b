"""The smooth loss with grades, by soft ranks of all samples.

A comparison is softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). This softens every rank, and every place among
the samples of at least some grade l:

    r_d = 1 + Σ_{e≠d} H(s_e − s_d),   a_dl = 1 + Σ_{e≠d, y_e ≥ l} H(s_e − s_d)
    Δ = (1/Z) (Σ_l ΔG_l·I_l − Σ_d D(r_d)·W_d),   W_d = Σ_{l ≤ y_d} ΔG_l·w(a_dl)

I_l = Σ_{i ≤ P_l} w_i·D(i) is the best possible value, and Z = Σ_l ΔG_l·C_l. If all weights are 1, W_d is the gain of d,
and one sweep is enough for any number of grades: NDCG is 1 − Σ_d G_d·D(r_d)/ideal. Only samples with a gain are sorted.
The others are counted like negatives, by their position among the sorted ones.

This is for queries with several grades of different gains. In the others, at most one gain differs from 0:
they are binary, and `by_kind` sets them apart, so that the loss of a query depends on that query alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.thresholds import (
    Levels,
    check_levels,
    level_gains,
    level_norms,
    level_of_samples,
    levels_of,
    sums_of,
)
from rankwise.queries import Queries, Solved, as_queries, compiled, part_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Gains(NamedTuple):
    """The gains of the grades of queries, by a loss.

    step: (T,) ΔG_l. level, gain: (n,) the level and the gain of each sample. gained: queries in which samples with a
    gain are relevant. best: (Q,) Σ_l ΔG_l·I_l. norm: (Q,) Z; infinite if there is nothing to rank.
    """

    step: FloatArray
    level: IntArray
    gain: FloatArray
    gained: Queries
    best: FloatArray
    norm: FloatArray


def by_kind(queries: Queries, loss: Loss) -> list[tuple[Any, Any, Queries]]:
    """Return queries of at most one step of gain as binary ones, and the others: which of (Q,), which of (n,), they."""

    def find() -> list[tuple[Any, Any, Queries]]:
        gain, step = _level_gains(queries, loss)
        is_binary = has_one_step(levels_of(queries), step)
        if not is_binary.any():
            return [(..., ..., queries)]
        relevant = gain[level_of_samples(queries)] > 0.0
        if is_binary.all():
            return [(..., ..., as_queries(relevant, queries.starts))]
        assert queries.grades is not None
        found: list[tuple[Any, Any, Queries]] = []
        for which, truth in ((is_binary, relevant), (~is_binary, queries.grades)):
            samples, starts = part_of(queries, which)
            found.append((which, samples, as_queries(truth[samples], starts)))
        return found

    return queries.once("kinds", find, loss)


def _level_gains(queries: Queries, loss: Loss) -> tuple[FloatArray, FloatArray]:
    return queries.once("gains of levels", lambda: level_gains(levels_of(queries), loss), loss)


def has_one_step(levels: Levels, step: FloatArray) -> NDArray[np.bool_]:
    """Return which queries have at most one grade that has a higher gain than the one before it, (Q,)."""
    return sums_of((step > 0.0).astype(np.float64), np.diff(levels.starts)) <= 1.0


def solve_ranked(scores: NDArray[np.floating], queries: Queries, loss: Loss, width: float, n_threads: int) -> Solved:
    """Return the smooth loss of each graded query, and the gradient of their sum. Raises as `soften` does."""
    assert isinstance(loss, DiscountedLoss)
    pairs, gains = compiled("soft.pairs"), queries.once("gains", lambda: _find_gains(queries, loss), loss)
    soft = compiled("soft").soften(scores, gains.gained, width, n_threads)
    place, near = pairs.places(soft.level, soft.starts, width, n_threads)
    rank, n_gained = place + soft.above, np.diff(soft.starts)
    discount, slope = np.zeros((2, rank.size))
    seen = rank < (np.inf if loss.k is None else loss.k + 1.0)  # the others gain nothing at their places
    discount[seen], slope[seen] = loss.continued(rank[seen], int(queries.sizes.max(initial=1)))
    share = np.repeat(1.0 / gains.norm, n_gained)
    weight, own = gains.gain[soft.order], np.zeros(rank.size)
    if not loss.is_uniform:
        weight, own = _by_levels(queries, loss, n_threads, soft, gains, discount * share)
    rate = -slope * weight * share
    own += pairs.pull(soft.level, soft.starts, width, rate, near + soft.near, n_threads)
    gradient = compiled("soft").spread(scores, gains.gained, soft, rate, own, False, n_threads)
    value = gains.best / gains.norm - sums_of(discount * weight * share, n_gained)
    return Solved(value, value, gradient)


def _find_gains(queries: Queries, loss: DiscountedLoss) -> _Gains:
    levels = levels_of(queries)
    (gain, step), n_levels = _level_gains(queries, loss), np.diff(levels.starts)
    norm = sums_of(step * level_norms(levels, queries.sizes, step, loss), n_levels)
    norm[~(queries.can_rank & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, levels.members, 1)), n_levels)
    at = level_of_samples(queries)
    return _Gains(step, at, gain[at], as_queries(gain[at] > 0.0, queries.starts), best, norm)


def _by_levels(
    queries: Queries, loss: DiscountedLoss, n_threads: int, soft: Any, gains: _Gains, discount: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return W of samples with a gain, and their gradient by places among samples of at least some grade.

    soft: counts of samples that have a gain. discount: D/Z of these.
    """
    check_levels(queries)
    pairs, levels, n = compiled("soft.pairs"), levels_of(queries), soft.order.size
    n_levels = np.diff(levels.starts)
    height = gains.level[soft.order] - np.repeat(levels.starts[:-1], np.diff(soft.starts))
    most = int(levels.members.max(initial=1))
    table = loss.tables(most, int(queries.sizes.max(initial=1))).weight[:most]
    weight, own = np.zeros((2, n))
    for t in range(int(n_levels.max(initial=0))):
        at = np.flatnonzero(height >= t)
        starts, has = np.searchsorted(at, soft.starts), n_levels > t
        step = np.zeros(n_levels.size)
        step[has] = gains.step[levels.starts[:-1][has] + t]
        if not step.any():
            continue
        of_sample, level = np.repeat(step, np.diff(starts)), soft.level[at]
        place, near = pairs.places(level, starts, soft.width, n_threads)
        w, slope = _interpolated(table, place)
        weight[at] += of_sample * w
        own[at] += pairs.pull(level, starts, soft.width, -discount[at] * of_sample * slope, near, n_threads)
    return weight, own


def _interpolated(table: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return w and its slope at real places a ≥ 1: linear between whole places, constant from the last place on."""
    if table.size == 1:
        return np.full(place.shape, table[0]), np.zeros(place.shape)
    below = np.clip(place.astype(np.int64), 1, table.size - 1)
    slope = np.diff(table)[below - 1]
    return table[below - 1] + (place - below) * slope, slope
