"""Losses: metrics that can be trained for. The loss is one minus the metric, relative to that of the best ranking.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. A loss has a
weight and a discount (discounted.py), steps (step_loss.py), or neither (f1.py, zero_one.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.documenting import documented
from rankwise.kernels.contract import LossTables, Tail
from rankwise.metrics.base import FloatArray, IntArray, Metric
from rankwise.metrics.ranked import Ties

if TYPE_CHECKING:
    from rankwise.queries import Queries, Solved

__all__ = ["ROUNDING", "TINY", "Loss", "LossTables", "NotQSSuitableError", "SoftCounts", "Tail", "breaks_c2"]

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


class SoftCounts(NamedTuple):
    """Soft counts of the positives of queries, one query after the other, ascending by score within a query.

    above: (P,) c_k, the soft number of negatives above. place: (P,) k, from the top. n_pos: (Q,). norm: (P,) C of the
    query. n: the largest number of samples in a query.
    """

    above: FloatArray
    place: IntArray
    n_pos: IntArray
    norm: FloatArray
    n: int


@documented
class Loss(Metric):
    """Base class of losses Δ(R*, R) of a ranking of positives and negatives: metrics that can be trained for.

    Δ is 0 for a perfect ranking, and one minus the metric for "ap", "ndcg", "mrr", "auc" and "f1". To define your own
    loss, use `DiscountedLoss` or `StepLoss` rather than this class.

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
    proven : bool
        Whether the loss is known to be QS-suitable for all query sizes, so that nothing needs to be checked.
    breaks_c1 : str or None
        Why the loss is not a sum over negatives, so that the published methods do not apply. None if it is one and has
        `steps`.
    has_discount : bool
        Whether the loss has a weight and a discount, as `DiscountedLoss` has, and so `tables`.
    has_soft_counts : bool
        Whether it can be smoothed: it has `of_soft_counts`.
    has_grades : bool
        Whether grades mean anything to it, as thresholds.
    step : callable or None
        Step function of a `StepLoss`. It takes arrays and tensors alike.
    solve_hinge : callable or None
        Its own exact structured hinge, f(scores, queries, scale, exhaustive, n_threads), if no method applies.

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

    learns_intercept: bool = False
    proven: bool = False
    breaks_c1: str | None = None
    has_discount: bool = False
    has_soft_counts: bool = False
    has_grades: bool = True
    step: Callable[[Any, Any, int, int], Any] | None = None
    solve_hinge: Callable[[NDArray[np.floating], Queries, float, bool, int], Solved] | None = None
    # Only losses that say so have these.
    steps: Callable[[ArrayLike, ArrayLike, int, int], FloatArray]
    tables: Callable[[int, int], LossTables]
    of_soft_counts: Callable[[SoftCounts], tuple[FloatArray, FloatArray]]

    @property
    def qs_suitable(self) -> bool | None:
        """Whether the loss is QS-suitable for queries of every size.

        None if this depends on the size of the query. `check_qs_suitable` then decides.
        """
        return None if self.breaks_c1 is None else False

    @abstractmethod
    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        """Compute Δ of rankings that are given as counts.

        Parameters
        ----------
        above : array-like of shape (..., n_pos)
            Number of negatives above each positive; above[..., k−1] is c_k of the k-th positive from the top.
        {n_neg}

        Returns
        -------
        ndarray of shape (...)
            Δ of each ranking.
        """

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
        pos, neg = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
        above = neg.size - np.searchsorted(neg, pos, side="left" if worst else "right")
        return float(self.of_counts(above, neg.size))

    def of_ties(self, ties: Ties) -> FloatArray:
        # 1 − Δ; equal scores count as the mean of their best and their worst order.
        n_pos, n_neg = ties.total(ties.gain).astype(int), ties.total(ties.size - ties.gain).astype(int)
        best = ties.above(ties.size - ties.gain)
        worst, ends = best + ties.size - ties.gain, np.append(ties.first[1:], ties.size.size)
        values = np.full(n_pos.size, np.nan)
        for q in np.flatnonzero((n_pos > 0) & (n_neg > 0)):
            own = slice(ties.first[q], ends[q])
            lost = [self.of_counts(np.repeat(c[own], ties.gain[own].astype(int)), n_neg[q]) for c in (best, worst)]
            values[q] = 1.0 - 0.5 * float(lost[0] + lost[1])
        return values

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise an error unless the loss is QS-suitable for these counts.

        Parameters
        ----------
        {n_pos}
        {n_neg}
        thorough : bool, default True
            Whether to look at every pair (i, j). If False and there are very many pairs, only every j of some i is
            checked.

        Raises
        ------
        NotQSSuitableError
            If (C1) or (C2) does not hold.
        """
        if self.breaks_c1 is not None:
            raise NotQSSuitableError(f"{self.name} breaks (C1): {self.breaks_c1}")

    def check_many(self, n_pos: IntArray, n_neg: IntArray) -> None:
        """Run `check` for many queries, except those without positives or without negatives.

        Parameters
        ----------
        n_pos, n_neg : ndarray of shape (Q,)
            Numbers of positives and of negatives of each query.
        """
        if self.proven:
            return
        both = (n_pos > 0) & (n_neg > 0)
        pairs = np.unique(np.stack([n_pos[both], n_neg[both]], axis=1), axis=0)
        # The largest first: it often settles the others.
        for p, n in pairs[np.argsort(-pairs.sum(axis=1), kind="stable")]:
            self.check(int(p), int(n))

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """Return C, the number that Δ is divided by: 1 if it is not normalised.

        Parameters
        ----------
        {n_pos}
        {n_neg}

        Returns
        -------
        float
            C. An error is raised if it is not positive.
        """
        return 1.0

    def normalisers(self, n_pos: IntArray, n_neg: IntArray) -> FloatArray:
        """Return C for many queries.

        Parameters
        ----------
        n_pos, n_neg : ndarray of shape (Q,)
            Numbers of positives, at least 1, and of negatives of each query.

        Returns
        -------
        ndarray of shape (Q,)
            C of each query.
        """
        return np.array([self.normaliser(int(p), int(n)) for p, n in zip(n_pos, n_neg, strict=True)])


def breaks_c2(name: str, i: int, j: int, now: float, then: float) -> NotQSSuitableError:
    """Return the error that names where (C2) breaks: step_{j+1}(i) = then < step_j(i) = now."""
    return NotQSSuitableError(
        f"{name} breaks (C2) at (i, j) = ({i}, {j}): step_{j + 1}({i}) = {then:.6g} < step_{j}({i}) = {now:.6g}; "
        "the discount must be convex there (steps must not fall as j grows)",
        i,
        j,
    )
