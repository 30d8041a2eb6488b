"""The F-measure at the best threshold as a loss of rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.loss_forms import FloatArray, Form, IntArray, Loss, NotQSSuitableError

__all__ = ["FMeasure"]


class FMeasure(Loss):
    """One minus the F-measure at the best threshold: Δ = 1 − max_k 2k/(k + c_k + P).

    Called positive are the samples down to the k-th positive, k of P positives and c_k negatives: their precision is
    k/(k + c_k), their recall k/P. The k with the highest F₁ counts alone, so Δ is no sum over negatives: it breaks
    (C1), and has an exact method of its own.

    >>> import rankwise as rw
    >>> round(rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], "f1"), 4)
    0.2
    """

    name = "f1"
    form = Form.THRESHOLD

    @property
    def qs_suitable(self) -> bool:
        """It breaks (C1)."""
        return False

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        raise self._refusal()

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        counts: IntArray = np.asarray(above)
        n_pos = counts.shape[-1]
        k = np.arange(1, n_pos + 1)
        return np.asarray(((counts + (n_pos - k)) / (counts + (n_pos + k))).min(axis=-1))

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        raise self._refusal()

    def _refusal(self) -> NotQSSuitableError:
        return NotQSSuitableError(
            "f1 breaks (C1): its best threshold depends on all negatives together, so it is no sum over them; use "
            "method='auto', which is exact, or 'exhaustive'"
        )
