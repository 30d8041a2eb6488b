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
from rankwise.queries import Queries, Solved, as_queries, compiled

__all__ = ["Kind", "by_kind", "has_one_step", "solve_ranked"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Kind(NamedTuple):
    """Queries of one kind, binary or graded. which: (Q,) those of this kind. samples: (n,) their samples."""

    which: NDArray[np.bool_]
    samples: NDArray[np.bool_]
    queries: Queries


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


def by_kind(queries: Queries, loss: Loss) -> list[Kind]:
    """Return queries with at most one step of gain as binary ones, and the others; nothing if all are others."""

    def find() -> list[Kind]:
        levels = levels_of(queries)
        gain, step = level_gains(levels, loss)
        is_binary = has_one_step(levels, step)
        if not is_binary.any():
            return []
        binary = _kind(queries, is_binary, gain[level_of_samples(queries)] > 0.0)
        return [binary] if is_binary.all() else [binary, _kind(queries, ~is_binary, queries.grades)]

    return queries.once("kinds", find, loss)


def _kind(queries: Queries, which: NDArray[np.bool_], truth: Any) -> Kind:
    samples, starts = np.repeat(which, queries.sizes), queries.starts
    if not which.all():
        truth, starts = truth[samples], np.concatenate([[0], np.cumsum(queries.sizes[which])])
    return Kind(which, samples, as_queries(truth, starts))


def has_one_step(levels: Levels, step: FloatArray) -> NDArray[np.bool_]:
    """Return which queries have at most one grade that has a higher gain than the one before it, (Q,)."""
    return sums_of((step > 0.0).astype(np.float64), np.diff(levels.starts)) <= 1.0


def solve_ranked(scores: NDArray[np.floating], queries: Queries, loss: Loss, width: float, n_threads: int) -> Solved:
    """Return the smooth loss of each graded query, and the gradient of their sum. Raises as `soften` does."""
    assert isinstance(loss, DiscountedLoss)
    gains = queries.once("gains", lambda: _find_gains(queries, loss), loss)
    last = np.inf if loss.k is None else loss.k + 1.0
    soft = compiled("soft").soften(scores, gains.gained, width, n_threads)
    rank = np.maximum(compiled("soft").places(soft.level, soft.starts, width, n_threads) + soft.above, 1.0)
    active = np.flatnonzero(rank < last)  # the others gain nothing at their places
    n_active = np.diff(np.searchsorted(active, soft.starts))
    discount, slope = loss.continued(rank[active], int(queries.sizes.max(initial=1)))
    share = np.repeat(1.0 / gains.norm, n_active)
    gradient = np.zeros(scores.shape[0])
    if loss.is_uniform:
        weight = gains.gain[soft.order[active]]
    else:
        weight = _by_levels(queries, loss, n_threads, soft, gains, active, discount * share, gradient)
    value = gains.best / gains.norm - sums_of(discount * weight * share, n_active)
    rate = np.zeros(rank.shape[0])
    rate[active] = -slope * weight * share
    compiled("soft.ranks").pull(soft.level, soft.order, soft.starts, width, rate, gradient, n_threads)
    gradient += compiled("soft").spread(
        scores, gains.gained, soft, rate, rate * soft.near * (-0.5 / width), False, n_threads
    )
    return Solved(value, value, queries.counts[0], queries.counts[1], gradient.astype(scores.dtype, copy=False))


def _find_gains(queries: Queries, loss: DiscountedLoss) -> _Gains:
    levels = levels_of(queries)
    (gain, step), n_levels = level_gains(levels, loss), np.diff(levels.starts)
    norm = sums_of(step * level_norms(levels, queries.sizes, step, loss), n_levels)
    norm[~(queries.can_rank & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, levels.members, 1)), n_levels)
    at = level_of_samples(queries)
    return _Gains(step, at, gain[at], as_queries(gain[at] > 0.0, queries.starts), best, norm)


def _by_levels(
    queries: Queries,
    loss: DiscountedLoss,
    n_threads: int,
    soft: Any,
    gains: _Gains,
    active: IntArray,
    discount: FloatArray,
    gradient: FloatArray,
) -> FloatArray:
    """Return W of active samples, and add their part of the gradient from places among samples of at least some grade.

    soft: counts of samples that have a gain. discount: D/Z of active samples.
    """
    check_levels(queries)
    levels, n = levels_of(queries), soft.order.size
    n_levels = np.diff(levels.starts)
    height = gains.level[soft.order] - np.repeat(levels.starts[:-1], np.diff(soft.starts))
    most = int(levels.members.max(initial=1))
    table = loss.tables(most, int(queries.sizes.max(initial=1))).weight[:most]
    weight, discount_there = np.zeros(n), np.zeros(n)
    discount_there[active] = discount
    for t in range(int(n_levels.max(initial=0))):
        at = np.flatnonzero(height >= t)
        starts, has = np.searchsorted(at, soft.starts), n_levels > t
        step = np.zeros(n_levels.size)
        step[has] = gains.step[levels.starts[:-1][has] + t]
        if not step.any():
            continue
        of_sample = np.repeat(step, np.diff(starts))
        level = soft.level[at]
        place = compiled("soft").places(level, starts, soft.width, n_threads)
        w, slope = _interpolated(table, place)
        weight[at] += of_sample * w
        rate = -discount_there[at] * of_sample * slope
        compiled("soft.ranks").pull(level, soft.order[at], starts, soft.width, rate, gradient, n_threads)
    return weight[active]


def _interpolated(table: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return w and its slope at real places a ≥ 1: linear between whole places, constant from the last place on."""
    if table.size == 1:
        return np.full(place.shape, table[0]), np.zeros(place.shape)
    below = np.clip(place.astype(np.int64), 1, table.size - 1)
    slope = np.diff(table)[below - 1]
    return table[below - 1] + (np.maximum(place, 1.0) - below) * slope, slope
