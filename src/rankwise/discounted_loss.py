"""Losses that are a weight w and a discount D, given as functions or as built in.

    Δ = (1/C) · Σ_k w_k · (D(k) − D(k + c_k)),   C = Σ_k w_k · D(k)

They reach the compiled kernels as two arrays, never as a function.
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
    Loss,
    LossTables,
    NotQSSuitableError,
    Tail,
    breaks_c2,
)

__all__ = ["TABLE_SIZE", "DiscountedLoss"]

# Built-in discounts are tabulated up to here, unless asked otherwise, and evaluated in closed form beyond.
TABLE_SIZE = 1 << 16

# What sums of places may be off by, relatively.
_ROUNDING = 1e-13


class DiscountedLoss(Loss):
    """Δ = (1/C) · Σ_k w_k (D(k) − D(k + c_k)): a weight for the k-th positive, a discount for the m-th place.

    Give the two functions, or override `weight` and `discount` in a subclass. They may take an array or one number
    at a time; their values are tabulated once and kept, so that a loss of your own runs as fast as a built-in one.
    w ≥ 0 and a convex D make it QS-suitable.

    The smooth loss asks for D at places that are no whole numbers. Give its derivative, slope, or override `slope`, if
    your discount is a function of real numbers; else D is taken to be linear between whole places.

    With k, D(m) = 0 for m > k: only the first k places count, and C is the most that they can hold. Such a loss is not
    QS-suitable; between k and k + 1, the smooth loss lets D fall to 0 on a line. gain: what a grade is worth, "linear",
    "exp2" or a function with G(0) = 0 that does not fall.

    >>> import rankwise as rw
    >>> loss = rw.DiscountedLoss(discount=lambda m: 1 / m**0.5, name="root")
    >>> round(rw.ranking_loss([3.0, 2.0, 1.0], [False, True, True], loss), 4)
    0.2476
    """

    name = "discounted"
    form = Form.DISCOUNT
    _tail = Tail.NONE
    _per_pair = False
    _table_size = TABLE_SIZE  # discounts with a closed form are tabulated up to here
    _suitable: bool | None = None  # whether (C2) is known to hold, or to break, without a cut-off
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
            if self._tail is not Tail.NONE:  # a built-in loss, overridden: no closed form is known
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
        self._convex_to = 0  # D is known to be convex on 1..this

    def weight(self, k: Any) -> Any:
        """w_k, the weight of the k-th positive from the top."""
        return np.ones(np.shape(k)) if self._weight is None else self._weight(k)

    def discount(self, m: Any) -> Any:
        """D(m), what a positive at place m is worth."""
        if self._discount is None:
            raise TypeError(f"{type(self).__name__} has no discount: pass discount=, or override discount(self, m)")
        return self._discount(m) if self.k is None else np.where(np.less_equal(m, self.k), self._discount(m), 0.0)

    def slope(self, m: Any) -> Any:
        """D′(m) at real places m, where the discount is a function of real numbers."""
        if self._slope is None:
            raise TypeError(f"{type(self).__name__} has no slope: pass slope=, or override slope(self, m)")
        return self._slope(m)

    @property
    def qs_suitable(self) -> bool | None:
        """Whether (C2) holds for queries of every size; None where `check_qs_suitable` must look at sizes."""
        if self.k is None:
            return self._suitable
        return True if self.k == 1 else None if self._suitable is None else False

    @property
    def is_continuous(self) -> bool:
        """Whether D is known between whole places."""
        return self._slope is not None or type(self).slope is not DiscountedLoss.slope

    @property
    def is_uniform(self) -> bool:
        """Whether all positives weigh alike."""
        return self._weight is None and type(self).weight is DiscountedLoss.weight

    def continued(self, m: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """D(m) and D′(m) at real places 1 ≤ m ≤ n; linear between whole places unless `slope` is known.

        With a cut-off, D falls from D(k) to 0 on a line between k and k + 1. A place that is whole but for rounding is
        taken as whole: so no sum in another order falls to the other side of a kink.
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
        """Weights for at least n_pos positives and discounts for n places, computed once and kept."""
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
        """D(m) for whole numbers 1 ≤ m ≤ n."""
        if self._tail is Tail.NONE or self.k is not None:
            return self.tables(1, n).discount[m if self.k is None else np.minimum(m, self.k + 1)]
        return np.asarray(self.discount(m.astype(np.float64)), dtype=np.float64)

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """C, which brings Δ into [0, 1]."""
        if self._per_pair:
            return float(n_pos) * float(n_neg)
        return self._positive(float(np.sum(self._ideal(n_pos))), n_pos)

    def normalisers(self, n_pos: IntArray, n_neg: IntArray) -> FloatArray:
        """C of queries of these counts, (Q,), all with positives."""
        if self._per_pair:
            return n_pos.astype(np.float64) * n_neg
        if n_pos.size == 1:
            return np.array([self.normaliser(int(n_pos[0]), int(n_neg[0]))])
        c = self.ideals(n_pos)
        for q in np.flatnonzero(~(c > 0.0))[:1]:
            self._positive(float(c[q]), int(n_pos[q]))
        return c

    def ideals(self, n_pos: IntArray) -> FloatArray:
        """Σ_{i ≤ P} w_i·D(i) for these P, all at least 1."""
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
        at, m = np.asarray(i) - 1, np.asarray(i) + np.asarray(j)
        n = n_pos + n_neg
        w = self.tables(n_pos, n).weight[at] / self.normaliser(n_pos, n_neg)
        return np.asarray(w * (self.discounts(m, n) - self.discounts(m - 1, n)))

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        counts: IntArray = np.asarray(above)
        n_pos = counts.shape[-1]
        n = n_pos + n_neg
        w = self.tables(n_pos, n).weight[:n_pos] / self.normaliser(n_pos, n_neg)
        k = np.arange(1, n_pos + 1)
        return np.asarray((w * (self.discounts(k, n) - self.discounts(k + counts, n))).sum(axis=-1))

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
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


def _tabulate(function: Callable[[Any], Any], size: int, what: str) -> FloatArray:
    """function(1), …, function(size)."""
    return _evaluated(function, np.arange(1, size + 1, dtype=np.float64), what)


def _evaluated(function: Callable[[Any], Any], numbers: FloatArray, what: str) -> FloatArray:
    """The function at these numbers: in one call if it takes arrays, else one by one."""
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
