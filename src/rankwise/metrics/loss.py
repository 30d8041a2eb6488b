"""Losses: metrics that can be trained for. The loss is one minus the metric, relative to that of the best ranking.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. A loss has a
weight and a discount (discounted.py), or is the 0-1 loss of labels (zero_one.py).
"""

from __future__ import annotations

from abc import abstractmethod

from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.base import Metric


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

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount.
    ZeroOne : The fraction of samples with the wrong label.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.AveragePrecision()
    >>> isinstance(loss, rw.Loss), loss.name
    (True, 'ap')
    """

    @abstractmethod
    def check(self, n_pos: ArrayLike, n_neg: ArrayLike) -> None:
        """Raise a `NotQSSuitableError` unless the loss is QS-suitable for queries of these counts.

        Queries without positives or without negatives are passed over.

        Parameters
        ----------
        n_pos, n_neg : int or array-like of shape (Q,)
            Numbers of positives and of negatives.
        """
