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

from rankwise.documenting import documented
from rankwise.kernels.contract import LossTables, Tail
from rankwise.metrics.base import FloatArray, IntArray, over
from rankwise.metrics.gains import Gain, evaluated
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.metrics.ranked import Ties

# Built-in discounts are tabulated up to this place by default, and evaluated in closed form beyond it.
TABLE_SIZE = 1 << 16
# Relative rounding error of sums of places.
_ROUNDING = 1e-13
# A second difference this small relative to the discount is rounding, not a violation of (C2); or if values underflow.
_NO_BEND, _TINY = 8 * np.finfo(np.float64).eps, 1e-300
# One thread at a time makes tables larger. The function of a user may use other losses.
_LOCK = threading.RLock()


@documented
class DiscountedLoss(Loss):
    """Loss given by a weight for each positive and a discount for each place.

        Δ = (1/C) · Σ_k w_k · (D(k) − D(k + c_k)),   C = Σ_k w_k · D(k)

    The k-th positive from the top has c_k negatives above it, so it stands at place k + c_k instead of k. Pass the
    functions, or override `weight` and `discount` in a subclass. They may take an array or one number at a time. The
    loss is QS-suitable, and so works with the fast methods, if w ≥ 0 and D is convex.

    Parameters
    ----------
    weight : callable, optional
        Function w(k) ≥ 0 of the number k = 1, 2, … of a positive from the top. By default all weights are 1.
    discount : callable, optional
        Function D(m), the worth of a positive at place m = 1, 2, …. Required unless a subclass overrides it.
    name : str, optional
        Name of the loss in messages. By default the `name` of the class.
    slope : callable, optional
        Derivative D′(m) for real m, if D is defined there. Otherwise D is linear between whole places.
    k : int, optional
        Last place that counts: D(m) = 0 for m > k, and C is the most that the first k places can hold. Such a loss is
        not QS-suitable. Between places k and k + 1, D falls linearly. By default all places count.
    {gain}

    Attributes
    ----------
    proven : bool
        Whether the loss is known to be QS-suitable for all query sizes.
    is_uniform : bool
        Whether all positives have the same weight.
    is_continuous : bool
        Whether the discount is known between whole places.
    closed_form : Tail
        Closed form of the discount up to the cut-off, if it is a built-in one.
    table_size : int
        Last place that is tabulated of a discount with a closed form.

    See Also
    --------
    AveragePrecision : The loss with w_k = k and D(m) = 1/m.
    check_qs_suitable : Check whether a loss works with the fast methods.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.DiscountedLoss(discount=lambda m: 1 / m**0.5, name="root")
    >>> round(rw.ranking_loss([3.0, 2.0, 1.0], [False, True, True], loss), 4)
    0.2476
    """

    name = "discounted"
    proven: bool = False
    closed_form: Tail = Tail.NONE
    table_size = TABLE_SIZE

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
        super().__init__(k=k, gain=gain, weight=weight, discount=discount, name=name, slope=slope)
        if name is not None:
            self.name = name
        for method, function in {"weight": weight, "discount": discount, "slope": slope}.items():
            if function is not None and getattr(type(self), method) is getattr(DiscountedLoss, method):
                setattr(self, method, function)  # not in place of a subclass's own
        if not self._is_as_declared("closed_form", "weight", "discount"):
            self.closed_form = Tail.NONE
        self.is_uniform = type(self).weight is DiscountedLoss.weight and "weight" not in vars(self)
        overridden = type(self).slope is not DiscountedLoss.slope and self._is_as_declared("slope", "discount")
        self.is_continuous = overridden or "slope" in vars(self)
        self._per_pair = self.closed_form is Tail.LINEAR
        self.proven = self.closed_form is not Tail.NONE and k is None
        self._tail = self.closed_form if k is None else Tail.ZERO
        if self.k is not None:
            self.table_size = self.k + 1
        self.graded = self._needs_ideal = self.graded or (gain is not None and self.is_uniform)
        self._kept = self._nothing_kept()
        self._convex_to = 0  # D is known to be convex up to this place

    def _is_as_declared(self, attribute: str, *methods: str) -> bool:
        """Whether the class that sets an attribute is also the last one to define these methods."""
        owner = next(c for c in type(self).__mro__ if attribute in vars(c))
        return all(getattr(type(self), method) is getattr(owner, method) for method in methods)

    def weight(self, k: Any) -> Any:
        """Return w_k, the weight of the k-th positive from the top.

        {values}
        """
        return np.ones(np.shape(k))

    def discount(self, m: Any) -> Any:
        """Return D(m), what a positive at place m is worth, as if there were no cut-off.

        {values}
        """
        raise TypeError(f"{type(self).__name__} has no discount; pass discount=, or override discount(self, m)")

    def slope(self, m: Any) -> Any:
        """Return D′(m), the derivative of the discount, if it is continuous.

        {values}
        """
        raise TypeError(f"{type(self).__name__} has no slope; pass slope=, or override slope(self, m)")

    def continued(self, m: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Return D(m) and D′(m) at real places m ≤ n; D is linear from k to k + 1, and wherever `slope` is not known.

        {values}
        """
        if self.k is not None or not self.is_continuous:
            # A place that is whole but for rounding must not lie on one side of a kink by the order of a summation.
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
            return self._at("discount", m), self._at("slope", m)
        d = self.tables(1, n).discount
        below = np.clip(m.astype(np.int64), 1, max(n - 1, 1))
        rise = d[below + 1] - d[below]
        return d[below] + (m - below) * rise, rise

    def _at(self, what: str, numbers: FloatArray) -> FloatArray:
        """Return weight, discount or slope at these numbers."""
        values = evaluated(getattr(self, what), numbers)
        if not np.isfinite(values).all():
            at = int(np.argmin(np.isfinite(values)))
            found = f"{what}({numbers[at]:g}) = {values[at]}"
            raise ValueError(f"{self.name}: {found} is not finite; return a finite number")
        return values

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": self._nothing_kept(), "_convex_to": 0}

    def _nothing_kept(self) -> LossTables:
        return LossTables(np.empty(0), np.empty(0), int(self._tail), self._per_pair)

    def tables(self, n_pos: int, n: int) -> LossTables:
        """Return at least so many weights and discounts, fewer of a closed form; they are computed once and kept.

        {values}
        """
        wanted = n if self._tail is Tail.NONE else min(n, self.table_size)
        if self._kept.weight.size < n_pos or self._kept.discount.size <= wanted:
            with _LOCK:
                self._grow(n_pos, wanted)
        return self._kept

    def _grow(self, n_pos: int, wanted: int) -> None:
        w, d = self._kept.weight, self._kept.discount
        if w.size < n_pos:
            w = self._at("weight", np.arange(1.0, max(n_pos, min(2 * w.size, TABLE_SIZE), 64) + 1.0))
            if (w < 0).any():
                k = int(np.argmax(w < 0)) + 1
                raise NotQSSuitableError(f"{self.name}: weight({k}) = {w[k - 1]:.6g} is negative; use w ≥ 0", i=k)
        if d.size <= wanted:
            size = max(wanted, min(2 * d.size, self.table_size), min(64, self.table_size))
            last = size if self.k is None else min(size, self.k)
            d = np.zeros(size + 1)  # D(0) is never used
            d[1 : last + 1] = self._at("discount", np.arange(1.0, last + 1.0))
        self._kept = self._kept._replace(weight=w, discount=d)

    def discounts(self, m: IntArray, n: int) -> FloatArray:
        """Return D(m) for whole numbers m ≤ n, 0 beyond the cut-off.

        {values}
        """
        if self._tail is Tail.NONE or self.k is not None:
            return self.tables(1, n).discount[m if self.k is None else np.minimum(m, self.k + 1)]
        return np.asarray(self.discount(m.astype(np.float64)), dtype=np.float64)

    def normaliser(self, n_pos: ArrayLike, n_neg: ArrayLike) -> FloatArray:
        """Return C, the number that Δ is divided by; raise an error if it is not positive.

        {values}
        """
        if self._per_pair:
            return np.multiply(n_pos, n_neg, dtype=np.float64)
        c = self.ideals(n_pos)
        if not (c > 0.0).all():
            n, bad = np.ravel(n_pos)[np.argmin(c > 0.0)], np.ravel(c)[np.argmin(c > 0.0)]
            raise ValueError(f"{self.name}: Σ w_k·D(k) over {n} positives is {bad:.6g}; it must be positive")
        return c

    def ideals(self, n_pos: ArrayLike) -> FloatArray:
        """Return Σ_{i ≤ P} w_i·D(i), the value of a perfect ranking.

        {values}
        """
        counts: IntArray = np.asarray(n_pos)
        if counts.size == 1:
            return np.full(counts.shape, self._ideal(counts.item()).sum())
        return np.asarray(np.cumsum(self._ideal(int(counts.max(initial=1))))[counts - 1])

    def _ideal(self, n_pos: int) -> FloatArray:
        """w_k·D(k), (n_pos,)."""
        w = self.tables(n_pos, n_pos).weight[:n_pos]
        return np.asarray(w * self.discounts(np.arange(1, n_pos + 1), n_pos))

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """Compute the steps δ_j(i+1) − δ_j(i) of the loss.

        δ_j(i) is what the j-th negative from the top adds to the loss if i − 1 positives are above it.

        {values}
        """
        at, m = np.asarray(i) - 1, np.asarray(i) + np.asarray(j)
        n = n_pos + n_neg
        w = self.tables(n_pos, n).weight[at] / self.normaliser(n_pos, n_neg)
        return np.asarray(w * (self.discounts(m, n) - self.discounts(m - 1, n)))

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        """Compute Δ of rankings, of which the k-th positive from the top has above[..., k − 1] negatives above it.

        {values}
        """
        counts: IntArray = np.asarray(above)
        n_pos = counts.shape[-1]
        n = n_pos + n_neg
        k, w = np.arange(1, n_pos + 1), self.tables(n_pos, n).weight[:n_pos]
        ideal = self.discounts(k, n)
        c = float(n_pos) * n_neg if self._per_pair else float((w * ideal).sum())
        if not c > 0.0:
            self.normaliser(n_pos, n_neg)  # says why not
        return np.asarray((w / c * (ideal - self.discounts(k + counts, n))).sum(axis=-1))

    def of_ties(self, ties: Ties) -> FloatArray:
        # Equal scores share the mean weight and discount of their places.
        if ties.ideal is not None:
            return over(self._gained(ties), self._gained(ties.ideal))
        n_pos = ties.total(ties.gain).astype(np.int64)
        return over(self._gained(ties), np.where(n_pos > 0, self.ideals(np.maximum(n_pos, 1)), 0.0))

    def _gained(self, ties: Ties) -> FloatArray:
        """Σ_k w_k·D(place of the k-th positive), or Σ gain·D(place) if all weights are 1, (q,)."""
        n = int(ties.total(ties.size).max(initial=1))
        mean = _sums(self.discounts(np.arange(1, n + 1), n), ties, ties.size) / np.maximum(ties.size, 1.0)
        if self.is_uniform:
            return ties.total(ties.gain * mean)
        n_pos = max(int(ties.total(ties.gain).max(initial=1)), 1)
        return ties.total(_sums(self.tables(n_pos, 1).weight[:n_pos], ties, ties.gain) * mean)

    def check(self, n_pos: ArrayLike, n_neg: ArrayLike) -> None:
        if self.proven:
            return
        counts = np.atleast_1d(n_pos, n_neg)
        pairs = np.stack(counts)[:, np.minimum(*counts) > 0].T
        if pairs.shape[0] > 1:
            pairs = np.unique(pairs, axis=0)
        # The largest first: it often settles the others.
        for p, n in pairs[np.argsort(-pairs.sum(axis=1), kind="stable")].tolist():
            self._check_one(p, n)

    def _check_one(self, n_pos: int, n_neg: int) -> None:
        n = n_pos + n_neg
        self.normaliser(n_pos, n_neg)
        if self._convex_to >= n or n_neg < 2:
            return
        w, d = self.tables(n_pos, n).weight[:n_pos], self.tables(n_pos, n).discount[: n + 1]
        bend = d[3:] - 2.0 * d[2:-1] + d[1:-2]  # at m = 2..n−1
        bends = np.flatnonzero(bend < -_NO_BEND * np.abs(d[2:-1]) - _TINY) + 2
        for m in bends.tolist():
            ranks = np.arange(max(1, m - n_neg + 1), min(n_pos, m - 1) + 1)
            for i in ranks[w[ranks - 1] > 0][:1].tolist():
                raise self._breaks_c2(i, m - i, n_pos, n_neg)
        if not bends.size:
            self._convex_to = n

    def _breaks_c2(self, i: int, j: int, n_pos: int, n_neg: int) -> NotQSSuitableError:
        now, then = self.steps(i, [j, j + 1], n_pos, n_neg)
        return NotQSSuitableError(
            f"{self.name} breaks (C2) at (i, j) = ({i}, {j}): step_{j + 1}({i}) = {then:.6g} < step_{j}({i}) = "
            f"{now:.6g}; the discount must be convex there (steps must not fall as j grows)",
            i,
            j,
        )


def _sums(values: FloatArray, ties: Ties, sizes: FloatArray) -> FloatArray:
    """Return the sums of the next `sizes` (m,) of the values (n,) by tie, beginning anew in each query, (m,)."""
    totals = ties.total(sizes).astype(np.int64)
    begins = np.cumsum(totals) - totals
    # A 0 at the end, where a last tie of size 0 may begin.
    each = np.append(values[np.arange(int(totals.sum())) - np.repeat(begins, totals)], 0.0)
    found = np.add.reduceat(each, (np.cumsum(sizes) - sizes).astype(np.int64))
    if not sizes.all():
        found[sizes == 0.0] = 0.0
    return found
