"""Losses that are given by a weight w and a discount D.

    Δ = (1/C) · Σ_k w_k · (D(k) − D(k + c_k)),   C = Σ_k w_k · D(k)

The compiled kernels receive them as two arrays, never as functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.gains import Gain, as_gain
from rankwise.inputs import as_cutoff
from rankwise.loss_forms import (
    ROUNDING,
    TINY,
    FloatArray,
    Form,
    IntArray,
    Tail,
    breaks_c2,
)
from rankwise.weighted_places import WeightedPlaces

__all__ = ["DiscountedLoss"]


class DiscountedLoss(WeightedPlaces):
    """Loss given by a weight for each positive and a discount for each place.

        Δ = (1/C) · Σ_k w_k · (D(k) − D(k + c_k)),   C = Σ_k w_k · D(k)

    The k-th positive from the top has c_k negatives above it, so it stands at place k + c_k instead of place k. D(m) is
    what a positive at place m is worth. Δ is 0 for a perfect ranking.

    Pass the functions, or override `weight` and `discount` in a subclass. They may take an array or one number at a
    time. Their values are tabulated once, so your own loss runs as fast as a built-in one.

    Parameters
    ----------
    weight : callable, optional
        Function w(k) ≥ 0 of the number k = 1, 2, … of a positive from the top. By default all weights are 1.
    discount : callable, optional
        Function D(m) of the place m = 1, 2, …. Required unless a subclass overrides `discount`.
    name : str, optional
        Name of the loss in messages. By default the `name` of the class.
    slope : callable, optional
        Derivative D′(m) for real m. Pass it if D is defined between whole places; the smooth loss then uses both.
        Otherwise D is taken to be linear between whole places.
    k : int, optional
        Last place that counts: D(m) = 0 for m > k, and C is the most that the first k places can hold. Such a loss is
        not QS-suitable. In the smooth loss, D falls linearly to 0 between k and k + 1. By default all places count.
    gain : {"exp2", "linear"} or callable, optional
        Worth G(y) of a grade y, if relevance is graded: 2^y − 1, y itself, or a non-decreasing function with G(0) = 0.
        By default "linear".

    Attributes
    ----------
    closed_form : Tail
        Closed form of the discount up to the cut-off, if it is a built-in one.

    See Also
    --------
    StepLoss : A loss given by its steps.
    AveragePrecision : The loss with w_k = k and D(m) = 1/m.
    NDCG : The loss with w_k = 1 and D(m) = 1/log2(1 + m).
    check_qs_suitable : Check whether a loss works with the fast methods.

    Notes
    -----
    The loss is QS-suitable, and so works with the fast methods, if w ≥ 0 and D is convex.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.DiscountedLoss(discount=lambda m: 1 / m**0.5, name="root")
    >>> round(rw.ranking_loss([3.0, 2.0, 1.0], [False, True, True], loss), 4)
    0.2476
    """

    name = "discounted"
    form = Form.DISCOUNT
    _suitable: bool | None = None  # whether (C2) is known to hold or to break, without a cut-off
    closed_form = Tail.NONE  # of the discount up to the cut-off

    def __init__(
        self,
        weight: Callable[[Any], Any] | None = None,
        discount: Callable[[Any], Any] | None = None,
        name: str | None = None,
        slope: Callable[[Any], Any] | None = None,
        *,
        k: int | None = None,
        gain: Gain | None = None,
    ) -> None:
        if type(self).weight is not DiscountedLoss.weight or type(self).discount is not DiscountedLoss.discount:
            if self._tail is not Tail.NONE:  # a built-in loss was overridden: no closed form is known
                slope = None
            self._tail, self._per_pair, self._suitable = Tail.NONE, False, None
        self.closed_form = self._tail
        self._suitable = True if self._tail is not Tail.NONE else self._suitable  # built in
        self.proven = self._tail is not Tail.NONE and k is None
        if k is not None:
            self.k = as_cutoff(k)
            self._tail, self._table_size = Tail.ZERO, self.k + 1
        if gain is not None:
            self.gain = as_gain(gain)
        self._weight = weight
        self._discount = discount
        self._slope = slope
        if name is not None:
            self.name = name
        self._lock = threading.Lock()
        self._kept = self._nothing_kept()
        self._convex_to = 0  # D is known to be convex up to this place

    @property
    def qs_suitable(self) -> bool | None:
        """Whether the loss is QS-suitable for queries of every size.

        None if this depends on the size of the query. `check_qs_suitable` then decides.
        """
        if self.k is None:
            return self._suitable
        return True if self.k == 1 else None if self._suitable is None else False

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """Return C, which brings Δ into [0, 1].

        Parameters
        ----------
        n_pos : int
            Number of positives P, at least 1.
        n_neg : int
            Number of negatives N.

        Returns
        -------
        float
            C = Σ_k w_k·D(k), or PN for "auc".

        Raises
        ------
        ValueError
            If C is not positive.
        """
        if self._per_pair:
            return float(n_pos) * float(n_neg)
        return self._positive(float(np.sum(self._ideal(n_pos))), n_pos)

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

        Raises
        ------
        ValueError
            If C is not positive for one of the queries.
        """
        if self._per_pair:
            return n_pos.astype(np.float64) * n_neg
        if n_pos.size == 1:
            return np.array([self.normaliser(int(n_pos[0]), int(n_neg[0]))])
        c = self.ideals(n_pos)
        for q in np.flatnonzero(~(c > 0.0))[:1]:
            self._positive(float(c[q]), int(n_pos[q]))
        return c

    def ideals(self, n_pos: IntArray) -> FloatArray:
        """Return Σ_{i ≤ P} w_i·D(i), the worth of a perfect ranking.

        Parameters
        ----------
        n_pos : ndarray of shape (Q,)
            Numbers of positives P, at least 1.

        Returns
        -------
        ndarray of shape (Q,)
            The sum for each P.
        """
        return np.asarray(np.cumsum(self._ideal(int(n_pos.max(initial=1))))[n_pos - 1])

    def _ideal(self, n_pos: int) -> FloatArray:
        """w_k·D(k), (n_pos,)."""
        w = self.tables(n_pos, n_pos).weight[:n_pos]
        return np.asarray(w * self.discounts(np.arange(1, n_pos + 1), n_pos))

    def _positive(self, c: float, n_pos: int) -> float:
        if not c > 0.0:
            raise ValueError(f"{self.name}: Σ w_k·D(k) over {n_pos} positives is {c:.6g}; it must be positive")
        return c

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """Compute the steps δ_j(i+1) − δ_j(i) = (w_i/C)·(D(i + j) − D(i + j − 1)).

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
        at, m = np.asarray(i) - 1, np.asarray(i) + np.asarray(j)
        n = n_pos + n_neg
        w = self.tables(n_pos, n).weight[at] / self.normaliser(n_pos, n_neg)
        return np.asarray(w * (self.discounts(m, n) - self.discounts(m - 1, n)))

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
        n = n_pos + n_neg
        w = self.tables(n_pos, n).weight[:n_pos] / self.normaliser(n_pos, n_neg)
        k = np.arange(1, n_pos + 1)
        return np.asarray((w * (self.discounts(k, n) - self.discounts(k + counts, n))).sum(axis=-1))

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise an error unless the loss is QS-suitable for these counts.

        Parameters
        ----------
        n_pos : int
            Number of positives P.
        n_neg : int
            Number of negatives N.
        thorough : bool, default True
            No effect here: the discount is always checked at every place.

        Raises
        ------
        NotQSSuitableError
            If a weight is negative, or the discount is not convex where it matters.
        """
        n = n_pos + n_neg
        if self.proven:
            return
        self.normaliser(n_pos, n_neg)
        if self._convex_to >= n or n_neg < 2:
            return
        w, d = self.tables(n_pos, n).weight[:n_pos], self.tables(n_pos, n).discount[: n + 1]
        bend = d[3:] - 2.0 * d[2:-1] + d[1:-2]  # at m = 2..n−1
        bends = np.flatnonzero(bend < -ROUNDING * np.abs(d[2:-1]) - TINY) + 2
        for m in bends.tolist():
            i_all = np.arange(max(1, m - n_neg + 1), min(n_pos, m - 1) + 1)
            i_bad = i_all[w[i_all - 1] > 0]
            if i_bad.size:
                i = int(i_bad[0])
                raise breaks_c2(self.name, i, m - i, *self.steps(i, [m - i, m - i + 1], n_pos, n_neg))
        if not bends.size:
            self._convex_to = n
