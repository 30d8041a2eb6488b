"""RankSort, a loss of detectors (Oksuz et al., ICCV 2021), at the cost of a sort.

Scores are compared by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). For a positive i of quality t_i, with sums over
positives k and negatives j of its query,

    a_i = Σ_k H(s_k − s_i), itself as ½;  FP_i = Σ_j H(s_j − s_i);  ranking_i = FP_i/(a_i + FP_i)
    sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), minus the same over those of t_k ≥ t_i

i passes its ranking error to negatives and its sorting error to positives of t_k < t_i, in proportion to H. What is
passed on is an update per sample, not the derivative of the value. It is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.metrics.loss import Loss
from rankwise.queries import Queries, Solved, compiled
from rankwise.surrogates.base import Surrogate
from rankwise.surrogates.softened import as_width

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankSort(Surrogate):
    """Ranking and sorting error of detections; grades are qualities, and a query has two values."""

    width: float = 0.5
    name: ClassVar[str] = "rank-sort"
    is_derivative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_width(self.width))

    def solve_binary(self, scores: NDArray[np.floating], queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        found = solve_rank_sort(scores, queries, queries.truth, self.width, n_threads)  # type: ignore[arg-type]
        return Solved(found.values, found.values, found.gradients)

    solve_graded = solve_binary


class SolvedParts(NamedTuple):
    """Ranking and sorting error: values (2, Q), each the mean over a query's positives; gradients (2, n) of their sums.

    A query without positives has value 0.
    """

    values: _Floats
    gradients: NDArray[np.floating]


def solve_rank_sort(
    scores: NDArray[np.floating], queries: Queries, quality: NDArray[np.floating], width: float, n_threads: int = 1
) -> SolvedParts:
    """Return the ranking and sorting error of every query; quality (n,) is positive where a sample is relevant.

    Raises `NotFiniteError` if a score is not finite or too large. Everything else was checked.
    """
    pairs = compiled("soft.pairs")
    soft = compiled("soft").soften(scores, queries, width, n_threads)
    n_pos = queries.counts[0]
    query = np.repeat(np.arange(n_pos.size), n_pos)  # of each positive
    share = 1.0 / n_pos[query]
    own, of_query = quality[soft.order].astype(np.float64), (soft.level, soft.starts, width)
    weight, key = np.stack([np.ones_like(own), 1.0 - own]), pairs.dense_keys(own, soft.starts)
    place, lost = pairs.places(*of_query, n_threads)[0] - 0.5, pairs.sums_above(*of_query, weight[1])
    missorted, lost_there = np.maximum(pairs.above_lesser(*of_query, key, weight), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(missorted > 0.0, np.minimum(lost_there / missorted, 1.0), 0.0)
    # place·(current − target), per missorted positive: those of lower quality are all worse than the mean of the rest.
    excess = np.maximum(there - (lost - lost_there) / (place - missorted), 0.0) / place
    ranking, sorting = soft.above / (place + soft.above), excess * missorted
    taken = pairs.below_greater(*of_query, key, (excess * share)[None])[0]
    gradients = np.zeros((2, scores.shape[0]), scores.dtype)
    weight_of_negatives = share / (place + soft.above)
    gradients[0] = compiled("soft").spread(
        scores, queries, soft, weight_of_negatives, -ranking * share, True, n_threads
    )
    gradients[1, soft.order] = taken - sorting * share
    values = [np.bincount(query, part * share, n_pos.size) for part in (ranking, sorting)]
    return SolvedParts(np.stack(values), gradients)
