"""The F-measure at the best threshold as a loss of rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.loss_forms import FloatArray, Form, IntArray, Loss, NotQSSuitableError

__all__ = ["FMeasure"]


class FMeasure(Loss):
    """Loss 1 − F₁ at the best threshold.

        Δ = 1 − max_k 2k/(k + c_k + P)

    With the threshold at the k-th positive, the k positives and c_k negatives down to it are called positive. Their
    precision is k/(k + c_k) and their recall is k/P. Only the threshold with the highest F₁ counts.

    See Also
    --------
    metrics.f_measure : The metric that this loss optimises.
    AveragePrecision : A loss over all thresholds.

    Notes
    -----
    Because only the best k counts, Δ is not a sum over negatives. So it is not QS-suitable (it breaks (C1)), but it has
    an exact method, which method="auto" selects.

    Examples
    --------
    >>> import rankwise as rw
    >>> round(rw.ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], "f1"), 4)
    0.2
    """

    name = "f1"
    form = Form.THRESHOLD

    @property
    def qs_suitable(self) -> bool:
        """False: the loss is not a sum over negatives, so it breaks (C1)."""
        return False

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """Raise an error, since this loss has no steps.

        Parameters
        ----------
        i : array-like of int
            Not used.
        j : array-like of int
            Not used.
        n_pos : int
            Not used.
        n_neg : int
            Not used.

        Returns
        -------
        ndarray of float
            Never returned.

        Raises
        ------
        NotQSSuitableError
            Always.
        """
        raise self._refusal()

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        """Compute Δ of rankings that are given as counts.

        Parameters
        ----------
        above : array-like of shape (..., n_pos)
            Number of negatives above each positive; above[..., k−1] is c_k of the k-th positive from the top.
        n_neg : int
            Number of negatives N.

        Returns
        -------
        ndarray of shape (...)
            Δ of each ranking.
        """
        counts: IntArray = np.asarray(above)
        n_pos = counts.shape[-1]
        k = np.arange(1, n_pos + 1)
        return np.asarray(((counts + (n_pos - k)) / (counts + (n_pos + k))).min(axis=-1))

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise an error, since this loss is never QS-suitable.

        Parameters
        ----------
        n_pos : int
            Not used.
        n_neg : int
            Not used.
        thorough : bool, default True
            Not used.

        Raises
        ------
        NotQSSuitableError
            Always.
        """
        raise self._refusal()

    def _refusal(self) -> NotQSSuitableError:
        return NotQSSuitableError(
            "f1 breaks (C1): its best threshold depends on all negatives together, so it is not a sum over them; use "
            "method='auto', which is exact, or method='exhaustive'"
        )
