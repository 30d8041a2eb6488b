"""Weights of positives and discounts of places: as functions, as tables, and between whole places."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise.loss_forms import FloatArray, IntArray, Loss, LossTables, NotQSSuitableError, Tail

__all__ = ["TABLE_SIZE", "WeightedPlaces"]

# Built-in discounts are tabulated up to this place by default, and evaluated in closed form beyond it.
TABLE_SIZE = 1 << 16

# Relative rounding error of sums of places.
_ROUNDING = 1e-13


class WeightedPlaces(Loss):
    """The part of a `DiscountedLoss` that evaluates its weight and its discount."""

    _tail = Tail.NONE
    _per_pair = False
    _table_size = TABLE_SIZE  # discounts with a closed form are tabulated up to this place
    _weight: Callable[[Any], Any] | None
    _discount: Callable[[Any], Any] | None
    _slope: Callable[[Any], Any] | None
    _lock: threading.Lock
    _kept: LossTables

    def weight(self, k: Any) -> Any:
        """Return w_k, the weight of the k-th positive from the top.

        Parameters
        ----------
        k : int or ndarray
            Numbers of positives, from 1.

        Returns
        -------
        float or ndarray
            The weights.
        """
        return np.ones(np.shape(k)) if self._weight is None else self._weight(k)

    def discount(self, m: Any) -> Any:
        """Return D(m), what a positive at place m is worth.

        Parameters
        ----------
        m : float or ndarray
            Places, from 1.

        Returns
        -------
        float or ndarray
            The discounts; 0 beyond the cut-off `k`.

        Raises
        ------
        TypeError
            If no discount was given.
        """
        if self._discount is None:
            raise TypeError(f"{type(self).__name__} has no discount; pass discount=, or override discount(self, m)")
        return self._discount(m) if self.k is None else np.where(np.less_equal(m, self.k), self._discount(m), 0.0)

    def slope(self, m: Any) -> Any:
        """Return D′(m), the derivative of the discount at real places m.

        Parameters
        ----------
        m : float or ndarray
            Places, real numbers from 1.

        Returns
        -------
        float or ndarray
            The derivatives.

        Raises
        ------
        TypeError
            If no slope was given.
        """
        if self._slope is None:
            raise TypeError(f"{type(self).__name__} has no slope; pass slope=, or override slope(self, m)")
        return self._slope(m)

    @property
    def is_continuous(self) -> bool:
        """Whether the discount is known between whole places."""
        return self._slope is not None or type(self).slope is not WeightedPlaces.slope

    @property
    def is_uniform(self) -> bool:
        """Whether all positives have the same weight."""
        return self._weight is None and type(self).weight is WeightedPlaces.weight

    def continued(self, m: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Return D(m) and D′(m) at real places m.

        D is linear between whole places unless `slope` is known. With a cut-off, D falls linearly from D(k) to 0
        between k and k + 1. A place that differs from a whole number only by rounding is taken as whole, so the order
        of a summation does not decide on which side of a kink it lies.

        Parameters
        ----------
        m : ndarray
            Places, 1 ≤ m ≤ n.
        n : int
            Last place.

        Returns
        -------
        value : ndarray
            D(m), in the shape of `m`.
        slope : ndarray
            D′(m), in the shape of `m`.
        """
        if self.k is not None or not self.is_continuous:
            whole = np.rint(m)
            m = np.where(np.abs(m - whole) <= _ROUNDING * whole, whole, m)
        if self.k is None or n <= self.k:
            return self._between(m, n)
        value, slope = self._between(np.minimum(m, self.k), self.k)
        left = self.k + 1.0 - m
        return value * np.clip(left, 0.0, 1.0), np.where(left >= 1.0, slope, np.where(left > 0.0, -value, 0.0))

    def _between(self, m: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """`continued` up to the cut-off."""
        if self.is_continuous:
            what = f"{self.name}: "
            return _evaluated(self.discount, m, what + "discount"), _evaluated(self.slope, m, what + "slope")
        d = self.tables(1, n).discount
        below = np.clip(m.astype(np.int64), 1, max(n - 1, 1))
        step = d[below + 1] - d[below]
        return d[below] + (m - below) * step, step

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.update(_lock=None, _kept=self._nothing_kept(), _convex_to=0)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _nothing_kept(self) -> LossTables:
        return LossTables(np.empty(0), np.empty(0), int(self._tail), self._per_pair)

    def tables(self, n_pos: int, n: int) -> LossTables:
        """Return the weights and discounts of the loss as arrays.

        They are computed once and kept.

        Parameters
        ----------
        n_pos : int
            Least number of weights.
        n : int
            Number of places. Fewer discounts are tabulated if the discount has a closed form.

        Returns
        -------
        LossTables
            The weights and discounts.
        """
        wanted = n if self._tail is Tail.NONE else min(n, self._table_size)
        kept = self._kept
        if kept.weight.size < n_pos or kept.discount.size <= wanted:
            return self._grown(n_pos, wanted)
        return kept

    def _grown(self, n_pos: int, wanted: int) -> LossTables:
        with self._lock:
            w, d = self._kept.weight, self._kept.discount
            if w.size < n_pos:
                size = max(n_pos, min(2 * w.size, TABLE_SIZE), 64)
                w = _tabulate(self.weight, size, f"{self.name}: weight")
                if (w < 0).any():
                    k = int(np.argmax(w < 0)) + 1
                    raise NotQSSuitableError(f"{self.name}: weight({k}) = {w[k - 1]:.6g} is negative; use w ≥ 0", i=k)
            if d.size <= wanted:
                size = max(wanted, min(2 * d.size, self._table_size), min(64, self._table_size))
                values = _tabulate(
                    self.discount, size if self.k is None else min(size, self.k), f"{self.name}: discount"
                )
                d = np.zeros(size + 1)  # D(0) is never used
                d[1 : values.size + 1] = values
            self._kept = self._kept._replace(weight=w, discount=d)
            return self._kept

    def discounts(self, m: IntArray, n: int) -> FloatArray:
        """Return D(m) for whole numbers m.

        Parameters
        ----------
        m : ndarray of int
            Places, 1 ≤ m ≤ n.
        n : int
            Last place.

        Returns
        -------
        ndarray of float
            The discounts, in the shape of `m`.
        """
        if self._tail is Tail.NONE or self.k is not None:
            return self.tables(1, n).discount[m if self.k is None else np.minimum(m, self.k + 1)]
        return np.asarray(self.discount(m.astype(np.float64)), dtype=np.float64)


def _tabulate(function: Callable[[Any], Any], size: int, what: str) -> FloatArray:
    """Return function(1), …, function(size)."""
    return _evaluated(function, np.arange(1, size + 1, dtype=np.float64), what)


def _evaluated(function: Callable[[Any], Any], numbers: FloatArray, what: str) -> FloatArray:
    """Evaluate the function at these numbers: in one call if it takes arrays, otherwise one by one."""
    try:
        values = np.asarray(function(numbers), dtype=np.float64)
    except (TypeError, ValueError):  # written for one number at a time
        values = np.empty(0)
    if values.shape != numbers.shape:
        values = np.array([function(float(number)) for number in numbers], dtype=np.float64)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{what}({numbers[at]:g}) = {values[at]} is not finite; return a finite number")
    return values
