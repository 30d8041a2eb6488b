"""How good candidates are on the samples that folds left out, and how sure that is.

A fold is judged by many values whose mean is the metric: the precision at each positive, the metric of each query; or
by one, where a metric has no such parts. Two candidates differ by the mean of their values' differences, whose standard
error is far smaller than that of either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.cross_validation import Fold
from rankwise.linear.features import Vector
from rankwise.metrics import Metric
from rankwise.metrics.ranking import values_of

__all__ = ["Judge", "shares", "worse_by"]

# A difference smaller than this is none.
_NONE = 1e-6


class Judge:
    """Values of scores on the samples left out, of one candidate: by fold, or with `scorer` one a fold.

    truth: (n,) relevance, or gains. n_units: of one repeat of the folds, for standard errors.
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
        """What a fold says of a candidate, from scores of the samples it leaves out: the mean is its score there."""
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
        """All values of a candidate, and the score of each fold; values that cannot be judged are left out."""
        means = np.array([np.nanmean(v) if np.isfinite(v).any() else np.nan for v in by_fold])
        return np.concatenate(by_fold), means

    def n_units(self, values: Vector) -> float:
        """How many independent values there are."""
        return max(float(np.isfinite(values).sum()) / self._repeats, 1.0)


def precisions(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """The precision at each positive, in order of rows; samples of equal score come together."""
    everyone, positives = np.sort(scores), np.sort(scores[relevant])
    above = everyone.size - np.searchsorted(everyone, scores[relevant], side="left")
    right = positives.size - np.searchsorted(positives, scores[relevant], side="left")
    return np.asarray(right / above)


def overtaken(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """The fraction of negatives below each positive, in order of rows; a tie counts as half."""
    negatives = np.sort(scores[~relevant])
    below = np.searchsorted(negatives, scores[relevant], side="left")
    until = np.searchsorted(negatives, scores[relevant], side="right")
    return np.asarray(0.5 * (below + until) / negatives.size)


def worse_by(judge: Judge, values: list[Vector]) -> Vector:
    """By how many standard errors of the difference each candidate is below the best."""
    seen = np.array(values)
    fine = np.isfinite(seen).all(axis=0)
    if not fine.any():
        return np.zeros(len(values))
    seen = seen[:, fine]
    gap = seen[np.argmax(seen.mean(axis=1))] - seen
    error = gap.std(axis=1) / np.sqrt(judge.n_units(values[0]))
    return np.asarray(gap.mean(axis=1) / (error + _NONE))


def shares(z: Vector, sharpness: float, negligible: float) -> Vector:
    """Weights exp(−z·sharpness), those below a part of the largest left out, that add up to 1."""
    weight = np.exp(-z * sharpness)
    weight[weight < negligible] = 0.0
    return np.asarray(weight / weight.sum())
