"""Losses of detectors at the cost of a sort: RankSort (Oksuz et al., ICCV 2021) and aLRP (Oksuz et al., 2020).

Scores are compared by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). For a positive i, with sums over positives k and
negatives j of its query, FP_i = Σ_j H(s_j − s_i), and

    RankSort, qualities t:  a_i = Σ_k H(s_k − s_i), itself as ½;  ranking_i = FP_i/(a_i + FP_i)
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), minus the same over those of t_k ≥ t_i
        i passes its ranking error to negatives, its sorting error to positives of t_k < t_i, in proportion to H
    aLRP, localisation losses ℓ:  a_i = 1 + Σ_{k≠i} H(s_k − s_i);  r_i = a_i + FP_i;  classification_i = FP_i/r_i
        i passes (Σ_{k≠i} H(s_k − s_i)·ℓ_k + FP_i)/r_i to the negatives in proportion to H(s_j − s_i)
        localisation_i = (Σ ℓ over positives that score at least as high)/r_i

What is passed on is an update per sample, not the derivative of the value. It is bounded. The gradient of the
localisation loss in ℓ is its derivative, with ranks held constant.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.queries import Queries

__all__ = ["LEAST_ERROR", "SolvedParts", "solve_alrp", "solve_rank_sort"]

# aLRP skips positives with at most this many false positives, as published.
LEAST_ERROR = 1e-5

_Floats = NDArray[np.float64]


class SolvedParts(NamedTuple):
    """A loss in two parts: values (2, Q) per query, each the mean over its positives; gradients (2, n) of their sums.

    A query without positives has value 0. RankSort: ranking and sorting, both with gradients in the scores. aLRP:
    classification with a gradient in the scores, localisation with a gradient in the localisation losses.
    """

    values: _Floats
    gradients: NDArray[np.floating]


def solve_rank_sort(
    scores: NDArray[np.floating], queries: Queries, quality: NDArray[np.floating], width: float, n_threads: int = 1
) -> SolvedParts:
    """Return the ranking and sorting error of every query; quality (n,) is positive where a sample is relevant.

    Raises `NotFiniteError` if a score is not finite or too large. Everything else was checked.
    """
    soft, pairs = _soft().soften(scores, queries, width, n_threads), _pairs()
    query, share = _shares(queries)
    own = quality[soft.order].astype(np.float64)
    weight, key = np.stack([np.ones_like(own), 1.0 - own]), pairs.dense_keys(own, soft.starts)
    place, lost = pairs.sums_above(soft, weight)
    missorted, lost_there = np.maximum(pairs.sums_above_lesser(soft, key, weight), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(missorted > 0.0, np.minimum(lost_there / missorted, 1.0), 0.0)
    # place·(current − target), per missorted positive: those of lower quality are all worse than the mean of the rest.
    excess = np.maximum(there - (lost - lost_there) / (place - missorted), 0.0) / place
    ranking, sorting = soft.above / (place + soft.above), excess * missorted
    taken = pairs.sums_below_greater(soft, key, (excess * share)[None])[0]
    gradients = np.zeros((2, scores.shape[0]), scores.dtype)
    weight_of_negatives = share / (place + soft.above)
    gradients[0] = _soft().spread(scores, queries, soft, weight_of_negatives, -ranking * share, True, n_threads)
    gradients[1, soft.order] = taken - sorting * share
    return SolvedParts(_by_query(query, queries, ranking * share, sorting * share), gradients)


def solve_alrp(
    scores: NDArray[np.floating], queries: Queries, localisation: NDArray[np.floating], width: float, n_threads: int = 1
) -> SolvedParts:
    """Return the classification and localisation error of every query; localisation (n,) is used for positives only.

    Positives with equal scores may come in any order: localisation is the mean over these orders. Raises as
    `solve_rank_sort` does.
    """
    soft = _soft().soften(scores, queries, width, n_threads)
    query, share = _shares(queries)
    lost = localisation[soft.order].astype(np.float64)
    weight = np.stack([np.ones_like(lost), lost])
    others, lost_above = _pairs().sums_above(soft, weight) - 0.5 * weight
    rank = 1.0 + others + soft.above
    counted = soft.above > LEAST_ERROR
    update = np.where(counted, (lost_above + soft.above) / rank, 0.0) * share
    weight_of_negatives = update / np.where(counted, soft.above, 1.0)
    held = np.cumsum(1.0 / rank)
    first = soft.starts[:-1][queries.counts[0] > 0]
    held = (held - np.repeat(held[first] - 1.0 / rank[first], np.diff(np.append(first, rank.size)))) * share
    _soft().share(soft, held)
    gradients = np.zeros((2, scores.shape[0]), scores.dtype)
    gradients[0] = _soft().spread(scores, queries, soft, weight_of_negatives, -update, True, n_threads)
    gradients[1, soft.order] = held
    return SolvedParts(_by_query(query, queries, soft.above / rank * share, held * lost), gradients)


def _shares(queries: Queries) -> tuple[NDArray[np.int64], _Floats]:
    """Return, for each positive, query after query: its query, and 1/P of that query."""
    n_pos = queries.counts[0]
    query = np.repeat(np.arange(n_pos.size), n_pos)
    return query, 1.0 / n_pos[query]


def _by_query(query: NDArray[np.int64], queries: Queries, *parts: _Floats) -> _Floats:
    """Return the sums of each part over the positives of a query."""
    n_queries = queries.starts.size - 1
    return np.stack([np.bincount(query, part, n_queries) for part in parts])


@cache
def _soft() -> ModuleType:
    """Return the compiled module, imported at the first use."""
    from rankwise.kernels import soft

    return soft


@cache
def _pairs() -> ModuleType:
    from rankwise.kernels import pairs

    return pairs
