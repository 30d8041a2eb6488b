"""F₁ at the best threshold: a metric only, for it cannot be trained for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, Metric
from rankwise.metrics.ranked import Ties


@documented
class FMeasure(Metric):
    """F₁ at the best threshold; see `f_measure`. Its name is "f1". It cannot be trained for."""

    name = "f1"
    train_instead = "train for 'ap' and choose the threshold, e.g. with scikit-learn's TunedThresholdClassifierCV"

    def __init__(self) -> None:
        super().__init__()

    def of_ties(self, ties: Ties) -> FloatArray:
        # The highest 2(P + p)/(T + t + n_pos) of all ties: thresholds lie only between different scores.
        n_pos = ties.total(ties.gain)
        found, seen = ties.above(ties.gain) + ties.gain, ties.above(ties.size) + ties.size
        whole = np.maximum(seen + ties.repeat(n_pos), 1.0)
        return np.where(n_pos > 0.0, np.maximum.reduceat(2.0 * found / whole, ties.first), np.nan)


@documented
def f_measure(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """Compute F₁ at the best threshold.

    It is the highest 2(P + p)/(T + t + n_pos) of all thresholds, where P + p of the T + t samples above are positive.
    Thresholds lie between different scores, as in scikit-learn's `precision_recall_curve`.

    {judging}

    Examples
    --------
    >>> f_measure([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8
    """
    return FMeasure()(scores, relevant, qid=qid, empty=empty)
