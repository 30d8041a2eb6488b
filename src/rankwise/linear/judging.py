"""How good candidates are on the samples that folds leave out, and how certain this is.

On a fold, a candidate gets many values whose mean is the metric: the precision at each positive, or the metric of each
query. If the metric has no such parts, it gets one value. Two candidates differ by the mean difference of their values,
whose standard error is much smaller than that of either candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.cross_validation import Fold
from rankwise.linear.features import Vector
from rankwise.metrics import Metric
from rankwise.metrics.base import values_of

__all__ = ["Judge", "shares", "worse_by"]

# Differences below this do not count.
_NONE = 1e-6


class Judge:
    """Judge of candidates on the samples that folds leave out. With `scorer`, it returns one value per fold.

    truth: (n,) relevance, or gains.
    """

    def __init__(
        self,
        metric: Metric | None,
        truth: NDArray[Any],
        qid: NDArray[Any] | None,
        folds: list[Fold],
        repeats: int,
        scorer: Callable[[Vector, Fold], float] | None = None,
    ) -> None:
        self._metric, self._truth, self._qid, self._scorer = metric, truth, qid, scorer
        self.folds, self._repeats = folds, repeats

    def values(self, coef: Vector, scores: Vector, fold: Fold) -> Vector:
        """Return the values of a candidate on the samples that a fold leaves out. Their mean is its score there."""
        if self._scorer is not None:
            return np.array([self._scorer(coef, fold)])
        assert self._metric is not None
        truth = self._truth[fold.test]
        if self._qid is not None:
            return values_of(self._metric, scores, truth, self._qid[fold.test], "skip")[1]
        by_positive = {"ap": precisions, "auc": overtaken}.get(self._metric.name)
        if by_positive is not None and truth.dtype == np.bool_ and 0 < truth.sum() < truth.size:
            return by_positive(scores, truth)
        return np.array([self._metric(scores, truth, empty="skip")])

    def gather(self, by_fold: list[Vector]) -> tuple[Vector, Vector]:
        """Return all values of a candidate, and its score on each fold. NaN values are left out of the scores."""
        means = np.array([np.nanmean(v) if np.isfinite(v).any() else np.nan for v in by_fold])
        return np.concatenate(by_fold), means

    def n_units(self, values: Vector) -> float:
        """Return how many independent values there are."""
        return max(float(np.isfinite(values).sum()) / self._repeats, 1.0)


def precisions(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """Return the precision at each positive, in the order of rows; tied samples count as one step."""
    everyone, positives = np.sort(scores), np.sort(scores[relevant])
    above = everyone.size - np.searchsorted(everyone, scores[relevant], side="left")
    right = positives.size - np.searchsorted(positives, scores[relevant], side="left")
    return np.asarray(right / above)


def overtaken(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """Return the fraction of negatives below each positive, in the order of rows; a tie counts half."""
    negatives = np.sort(scores[~relevant])
    below = np.searchsorted(negatives, scores[relevant], side="left")
    until = np.searchsorted(negatives, scores[relevant], side="right")
    return np.asarray(0.5 * (below + until) / negatives.size)


def worse_by(judge: Judge, values: list[Vector]) -> Vector:
    """Return by how many standard errors of the difference each candidate is worse than the best."""
    seen = np.array(values)
    fine = np.isfinite(seen).all(axis=0)
    if not fine.any():
        return np.zeros(len(values))
    seen = seen[:, fine]
    gap = seen[np.argmax(seen.mean(axis=1))] - seen
    error = gap.std(axis=1) / np.sqrt(judge.n_units(values[0]))
    return np.asarray(gap.mean(axis=1) / (error + _NONE))


def shares(z: Vector, sharpness: float, negligible: float) -> Vector:
    """Return weights exp(−z·sharpness) that add up to 1; weights below `negligible` are set to 0."""
    weight = np.exp(-z * sharpness)
    weight[weight < negligible] = 0.0
    return np.asarray(weight / weight.sum())
