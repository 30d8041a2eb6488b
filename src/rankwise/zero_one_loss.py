"""The 0-1 loss of labels. See zero_one.py for its structured hinge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.loss_forms import FloatArray, Form, Loss, NotQSSuitableError

__all__ = ["ZeroOne"]


class ZeroOne(Loss):
    """Loss 0-1, the fraction of samples with the wrong label. Its name is "zero-one".

    It is decomposable: its output is a labelling, not a ranking, and its structured hinge is the mean hinge of the
    samples, with y = ±1:

        J = (1/n) Σ max(0, scale − y·s)

    The paper compares ranking losses with it.

    See Also
    --------
    FMeasure : A loss of labels at the best threshold.
    structured_hinge : The structured hinge of this or another loss.

    Notes
    -----
    As an interleaving, the most violating labelling reads, from the top: negatives called positive, positives called
    positive, negatives called negative, positives called negative.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.5, -0.2, 0.3, -1.0], [True, True, False, False], rw.ZeroOne())
    0.5
    """

    name = "zero-one"
    form = Form.LABELS
    learns_intercept = True

    @property
    def qs_suitable(self) -> bool:
        """False: the loss depends on labels, not on the interleaving, so it breaks (C1)."""
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
        """Raise an error, since this loss is not a function of a ranking.

        Parameters
        ----------
        above : array-like of int
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

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """Compute the fraction of samples on the wrong side of 0.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite scores of one query.
        relevant : ndarray of bool of shape (n,)
            Whether each sample is a positive.
        worst : bool
            Whether a score of exactly 0 counts as wrong.

        Returns
        -------
        float
            The loss.
        """
        y = np.where(relevant, 1.0, -1.0)
        return float(np.mean(y * scores <= 0.0 if worst else y * scores < 0.0))

    def _refusal(self) -> NotQSSuitableError:
        return NotQSSuitableError(
            "zero-one breaks (C1): it depends on each sample's label, not on how positives and negatives interleave; "
            "it is a sum over samples and needs no ranking method, use method='auto'"
        )
