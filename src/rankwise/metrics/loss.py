"""Losses: metrics that can be trained for. The loss is one minus the metric, relative to that of the best ranking.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. A loss has a
weight and a discount (discounted.py), or is the 0-1 loss of labels (zero_one.py).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from rankwise.documenting import documented
from rankwise.kernels.contract import LossTables, Tail
from rankwise.metrics.base import Metric

__all__ = ["Loss", "LossTables", "NotQSSuitableError", "Tail"]


class NotQSSuitableError(ValueError):
    """Error for a loss that breaks a condition of the fast methods: it is not QS-suitable, see `check_qs_suitable`.

    Parameters
    ----------
    message : str
        The reason, and what to do about it.
    i, j : int, optional
        Interleaving rank and number of the negative at which (C2) breaks. None if the error is not about one place.

    See Also
    --------
    check_qs_suitable : Raise this error if a loss is not QS-suitable.

    Examples
    --------
    >>> import rankwise as rw
    >>> try:
    ...     rw.check_qs_suitable(rw.NDCG(discount="chakrabarti"), n_pos=3, n_neg=5)
    ... except rw.NotQSSuitableError as error:
    ...     print(error.i, error.j)
    1 1
    """

    def __init__(self, message: str, i: int | None = None, j: int | None = None) -> None:
        super().__init__(message)
        self.i = i
        self.j = j


@documented
class Loss(Metric):
    """Base class of losses Δ(R*, R) of a ranking of positives and negatives: metrics that can be trained for.

    Δ is 0 for a perfect ranking, and one minus the metric for "ap", "ndcg", "mrr" and "auc". A loss is a
    `DiscountedLoss`, which is also how to define your own, or the 0-1 loss of labels, `ZeroOne`.

    Parameters
    ----------
    {k}
    {gain}
    {options}

    Attributes
    ----------
    name : str
        Name of the loss in messages and reports.
    learns_intercept : bool
        Whether the loss changes if all scores are shifted by the same amount.
    has_discount : bool
        Whether the loss has a weight and a discount, and so judges rankings. Otherwise it is a loss of labels.

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount.
    ZeroOne : The fraction of samples with the wrong label.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.AveragePrecision()
    >>> isinstance(loss, rw.Loss), loss.name, loss.qs_suitable
    (True, 'ap', True)
    """

    learns_intercept: bool = False
    has_discount: bool = False

    @property
    @abstractmethod
    def qs_suitable(self) -> bool | None:
        """Whether the loss is QS-suitable for queries of every size; None if `check_qs_suitable` decides by size."""

    @abstractmethod
    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """Compute Δ of the ranking that the scores induce.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite scores of one query.
        relevant : ndarray of bool of shape (n,)
            Whether each sample is a positive.
        worst : bool
            Whether a tie of a positive and a negative, or for labels a score of 0, counts as wrong.

        Returns
        -------
        float
            The loss.
        """

    @abstractmethod
    def check(self, n_pos: int, n_neg: int) -> None:
        """Raise a `NotQSSuitableError` unless the loss is QS-suitable for these counts.

        {arguments}
        """
