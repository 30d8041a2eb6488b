"""The base class of losses: the form of a loss, its steps, and whether it is QS-suitable.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. A loss takes
one of two forms: a weight and a discount (discounted_loss.py), or a step function (step_loss.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.gains import Gain

__all__ = ["ROUNDING", "TINY", "Form", "Loss", "LossTables", "NotQSSuitableError", "Tail", "breaks_c2"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A second difference this small relative to the discount is rounding, not a violation of (C2).
ROUNDING = 8 * np.finfo(np.float64).eps
TINY = 1e-300  # the same for values that underflow


class NotQSSuitableError(ValueError):
    """Error for a loss that breaks a condition of the fast methods.

    The fast methods find the most violating ranking only for QS-suitable losses. A loss is QS-suitable if it is a sum
    over negatives (C1) and its steps do not fall from one negative to the next (C2). See `check_qs_suitable`.

    Parameters
    ----------
    message : str
        The reason, and what to do about it.
    i : int, optional
        Interleaving rank at which (C2) breaks. None if the error is not about one place.
    j : int, optional
        Number of the negative at which (C2) breaks. None if the error is not about one place.

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


class Tail(IntEnum):
    """Closed form of a discount beyond its table."""

    NONE = 0
    RECIPROCAL = 1  # 1/m
    LOG2 = 2  # 1/log2(1 + m)
    LINEAR = 3  # −m
    ZERO = 4  # 0: the discount is cut off


class Form(Enum):
    """What a loss is made of. This decides which methods can find its most violating output."""

    DISCOUNT = auto()  # a weight and a discount: it has `tables`, and every method works
    STEPS = auto()  # a loss of rankings, given by its steps alone
    THRESHOLD = auto()  # a loss of rankings at their best threshold: not a sum over negatives, has a separate method
    LABELS = auto()  # a loss of labellings, not of rankings: no ranking method applies


class LossTables(NamedTuple):
    """A loss as the kernels see it, as plain data.

    weight: w_1, w_2, …. discount: D(0), D(1), …. tail: the closed form beyond the table. per_pair: whether C = PN.
    """

    weight: FloatArray
    discount: FloatArray
    tail: int
    per_pair: bool


class Loss(ABC):
    """Base class of losses Δ(R*, R) of a ranking of positives and negatives.

    Δ is 0 for a perfect ranking. To define your own loss, use `DiscountedLoss` or `StepLoss` rather than this class.

    Attributes
    ----------
    name : str
        Name of the loss in messages and reports.
    form : Form
        What the loss is made of: a weight and a discount, steps, a threshold, or labels.
    learns_intercept : bool
        Whether the loss changes if all scores are shifted by the same amount.
    proven : bool
        Whether the loss is known to be QS-suitable for all query sizes, so that nothing needs to be checked.
    k : int or None
        Last place that counts. None if all places count.
    gain : {"exp2", "linear"} or callable
        Worth of a grade: 2^y − 1, y itself, or a function of y.
    step : callable or None
        Step function of a `StepLoss`. It takes arrays and tensors alike.

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount.
    StepLoss : A loss given by its steps.
    AveragePrecision : The loss 1 − AP.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.AveragePrecision()
    >>> isinstance(loss, rw.Loss), loss.name, loss.qs_suitable
    (True, 'ap', True)
    """

    name: str
    form: Form = Form.STEPS
    learns_intercept: bool = False
    proven: bool = False
    k: int | None = None
    gain: Gain = "linear"
    step: Callable[[Any, Any, int, int], Any] | None = None

    @property
    def qs_suitable(self) -> bool | None:
        """Whether the loss is QS-suitable for queries of every size.

        None if this depends on the size of the query. `check_qs_suitable` then decides.
        """
        return None

    @abstractmethod
    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """Compute the steps δ_j(i+1) − δ_j(i) of the loss.

        δ_j(i) is what the j-th negative from the top adds to the loss if it has interleaving rank i, that is, if i − 1
        positives are above it.

        Parameters
        ----------
        i : array-like of int
            Interleaving ranks, 1 ≤ i ≤ n_pos. Broadcast against `j`.
        j : array-like of int
            Numbers of negatives from the top, 1 ≤ j ≤ n_neg.
        n_pos : int
            Number of positives P.
        n_neg : int
            Number of negatives N.

        Returns
        -------
        ndarray of float
            The steps, in the broadcast shape of `i` and `j`.
        """

    @abstractmethod
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

    @abstractmethod
    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise an error unless the loss is QS-suitable for these counts.

        Parameters
        ----------
        n_pos : int
            Number of positives P.
        n_neg : int
            Number of negatives N.
        thorough : bool, default True
            Whether to look at every pair (i, j). If False and there are very many pairs, only every j of some i is
            checked.

        Raises
        ------
        NotQSSuitableError
            If (C1) or (C2) does not hold.
        """

    def check_many(self, n_pos: IntArray, n_neg: IntArray) -> None:
        """Run `check` for queries of these counts.

        Queries without positives or without negatives are skipped.

        Parameters
        ----------
        n_pos : ndarray of shape (Q,)
            Number of positives of each query.
        n_neg : ndarray of shape (Q,)
            Number of negatives of each query.

        Raises
        ------
        NotQSSuitableError
            If (C1) or (C2) does not hold for one of the queries.
        """
        if self.proven:
            return
        both = (n_pos > 0) & (n_neg > 0)
        pairs = np.unique(np.stack([n_pos[both], n_neg[both]], axis=1), axis=0)
        # The largest first: it often settles the others.
        for p, n in pairs[np.argsort(-pairs.sum(axis=1), kind="stable")]:
            self.check(int(p), int(n))

    def tables(self, n_pos: int, n: int) -> LossTables:
        """Return the weights and discounts of the loss as arrays.

        Parameters
        ----------
        n_pos : int
            Least number of weights.
        n : int
            Least number of places with a discount.

        Returns
        -------
        LossTables
            The weights and discounts.

        Raises
        ------
        TypeError
            If the loss has no weight and no discount.
        """
        raise TypeError(f"{self.name} has no weight and no discount")

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """Return C, the number that Δ is divided by.

        Parameters
        ----------
        n_pos : int
            Number of positives P, at least 1.
        n_neg : int
            Number of negatives N.

        Returns
        -------
        float
            C. It is 1 for losses that are not normalised.

        Raises
        ------
        ValueError
            If C is not positive.
        """
        return 1.0

    def normalisers(self, n_pos: IntArray, n_neg: IntArray) -> FloatArray:
        """Return C for many queries.

        Parameters
        ----------
        n_pos : ndarray of shape (Q,)
            Number of positives of each query, at least 1.
        n_neg : ndarray of shape (Q,)
            Number of negatives of each query.

        Returns
        -------
        ndarray of shape (Q,)
            C of each query.
        """
        return np.array([self.normaliser(int(p), int(n)) for p, n in zip(n_pos, n_neg, strict=True)])

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """Compute Δ of the ranking that the scores induce.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite scores of one query.
        relevant : ndarray of bool of shape (n,)
            Whether each sample is a positive.
        worst : bool
            Whether a positive and a negative with equal scores count as misranked.

        Returns
        -------
        float
            The loss.
        """
        pos, neg = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
        above = neg.size - np.searchsorted(neg, pos, side="left" if worst else "right")
        return float(self.of_counts(above, neg.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def breaks_c2(name: str, i: int, j: int, now: float, then: float) -> NotQSSuitableError:
    """Return the error that names where (C2) breaks: step_{j+1}(i) = then < step_j(i) = now."""
    return NotQSSuitableError(
        f"{name} breaks (C2) at (i, j) = ({i}, {j}): step_{j + 1}({i}) = {then:.6g} < step_{j}({i}) = {now:.6g}; "
        "the discount must be convex there (steps must not fall as j grows)",
        i,
        j,
    )
