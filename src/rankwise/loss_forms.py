"""The two forms a loss of rankings can take, a weight and a discount or a step function, and whether it is QS-suitable.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. Every
`DiscountedLoss` is a weight w and a discount D,

    Δ = (1/C) · Σ_k w_k · (D(k) − D(k + c_k)),   C = Σ_k w_k · D(k),

and reaches the compiled kernels as two arrays, never as a function. A `StepLoss` is any other Δ = Σ_j δ_j(r_j).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.gains import Gain, as_gain
from rankwise.inputs import as_cutoff

__all__ = ["DiscountedLoss", "Form", "Loss", "LossTables", "NotQSSuitableError", "StepLoss", "Tail"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A second difference this small against the discount is rounding, not a breach of (C2).
_ROUNDING = 8 * np.finfo(np.float64).eps
_TINY = 1e-300  # nor is one where values underflow
# Built-in discounts are tabulated up to here, unless asked otherwise, and evaluated in closed form beyond.
TABLE_SIZE = 1 << 16
# Grids of steps are checked in blocks of this many entries.
_BLOCK = 1 << 19
# Up to so many steps of a StepLoss are all checked before its first use, in about the time of one solution; of more,
# about so many are, and at least those of a few i.
_AT_ONCE, _FEW = 1 << 28, 4


class NotQSSuitableError(ValueError):
    """A loss breaks a condition under which its most violating ranking is found fast; `.i`, `.j` say where."""

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
    ZERO = 4  # nothing: of a discount that is cut off


class Form(Enum):
    """What a loss is made of, which decides who can find its most violating output."""

    DISCOUNT = auto()  # a weight and a discount: it has `tables`, and every method serves
    STEPS = auto()  # a ranking's, known by its steps alone
    LABELS = auto()  # a labelling's, not a ranking's: no ranking method serves


class LossTables(NamedTuple):
    """A loss as kernels see it: data. Weights w_1.., discounts D(0).., and whether C = PN."""

    weight: FloatArray
    discount: FloatArray
    tail: int
    per_pair: bool


class Loss(ABC):
    """A loss Δ(R*, R) of a ranking of positives and negatives.

    It states what others need to know of it. form: what it is made of. learns_intercept: whether it depends on a common
    offset of all scores. proven: whether (C2) is known to hold, so that there is nothing to check. step: its step
    function, if that takes arrays and tensors alike. k: the last place that counts, None where all do. gain: what a
    grade is worth, see `rankwise.gains`.
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
        """Whether (C2) holds for queries of every size; None where `check_qs_suitable` must look at sizes."""
        return None

    @abstractmethod
    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """δ_j(i+1) − δ_j(i), for 1 ≤ i ≤ n_pos and 1 ≤ j ≤ n_neg, broadcast over i and j."""

    @abstractmethod
    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        """Δ of rankings, above[..., k−1] being the number of negatives above the k-th positive."""

    @abstractmethod
    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise `NotQSSuitableError` unless (C1) and (C2) hold for these counts.

        Where that takes a look at every (i, j) and there are very many, thorough=False looks at every j of some i only.
        """

    def check_many(self, n_pos: IntArray, n_neg: IntArray) -> None:
        """`check` for queries of these counts (Q,); those without positives or negatives are passed over."""
        if self.proven:
            return
        both = (n_pos > 0) & (n_neg > 0)
        pairs = np.unique(np.stack([n_pos[both], n_neg[both]], axis=1), axis=0)
        for p, n in pairs[np.argsort(-pairs.sum(axis=1), kind="stable")]:  # the largest first: it settles the others
            self.check(int(p), int(n))

    def tables(self, n_pos: int, n: int) -> LossTables:
        """Weights for at least n_pos positives and discounts for n places, of a loss of the form DISCOUNT."""
        raise TypeError(f"{self.name} has no weight and no discount")

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """C, what Δ is divided by; raises `ValueError` where it is not positive."""
        return 1.0

    def normalisers(self, n_pos: IntArray, n_neg: IntArray) -> FloatArray:
        """C of queries of these counts, (Q,), all with positives."""
        return np.array([self.normaliser(int(p), int(n)) for p, n in zip(n_pos, n_neg, strict=True)])

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """Δ of the output that finite scores induce; a tie of a positive and a negative counts as wrong if worst."""
        pos, neg = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
        above = neg.size - np.searchsorted(neg, pos, side="left" if worst else "right")
        return float(self.of_counts(above, neg.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


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

        With a cut-off, D falls from D(k) to 0 on a line between k and k + 1.
        """
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
        bends = np.flatnonzero(bend < -_ROUNDING * np.abs(d[2:-1]) - _TINY) + 2
        for m in bends.tolist():
            i_all = np.arange(max(1, m - n_neg + 1), min(n_pos, m - 1) + 1)
            i_bad = i_all[w[i_all - 1] > 0]
            if i_bad.size:
                i = int(i_bad[0])
                raise _breaks_c2(self.name, i, m - i, *self.steps(i, [m - i, m - i + 1], n_pos, n_neg))
        if not bends.size:
            self._convex_to = n


class StepLoss(Loss):
    """Any loss Δ = Σ_j δ_j(r_j), given by its step function: step(i, j, n_pos, n_neg) = δ_j(i+1) − δ_j(i).

    i and j are integer arrays that broadcast, and δ_j(P+1) = 0. (C2) asks that the step does not fall as j grows. All
    steps are checked for that before the first use with n_pos and n_neg. Of more than 2²⁸ only part is: every j of some
    i. Should the loss break (C2) elsewhere, results may be wrong: `check_qs_suitable` always looks at every step.
    """

    name = "step"
    step: Callable[[Any, Any, int, int], Any]

    def __init__(self, step: Callable[[Any, Any, int, int], Any], name: str | None = None) -> None:
        if not callable(step):
            raise TypeError(f"step must be a function of (i, j, n_pos, n_neg), got {type(step).__name__}")
        self.step = step
        self._checked: set[tuple[int, int]] = set()  # every step
        self._sampled: set[tuple[int, int]] = set()  # some of them: enough for thorough=False, and for nothing else
        if name is not None:
            self.name = name

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        i, j = np.asarray(i), np.asarray(j)
        shape = np.broadcast_shapes(i.shape, j.shape)
        value = np.asarray(self.step(i, j, n_pos, n_neg), dtype=np.float64)
        try:
            value = np.broadcast_to(value, shape)
        except ValueError:
            raise ValueError(
                f"{self.name}: step(i, j, n_pos, n_neg) returned shape {value.shape} for i {i.shape} and j {j.shape}; "
                "write it with NumPy operations that broadcast"
            ) from None
        if not np.isfinite(value).all():
            at = np.unravel_index(int(np.argmin(np.isfinite(value))), shape)
            i_at, j_at = np.broadcast_to(i, shape)[at], np.broadcast_to(j, shape)[at]
            raise ValueError(f"{self.name}: step at (i, j) = ({i_at}, {j_at}) is not finite; return a finite number")
        return value

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        counts: IntArray = np.asarray(above)
        n_pos = int(counts.shape[-1])
        total = np.zeros(counts.shape[:-1])
        j = np.arange(1, n_neg + 1)
        for i in range(1, n_pos + 1):  # δ_j(r_j) = −Σ_{i ≥ r_j} step; the c_i highest negatives have r_j ≤ i
            sums = np.concatenate([[0.0], np.cumsum(self.steps(i, j, n_pos, n_neg))])
            total -= sums[counts[..., i - 1]]
        return total

    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        counts = (n_pos, n_neg)
        if counts in self._checked or (counts in self._sampled and not thorough) or n_neg < 2:
            return
        i = np.arange(1, n_pos + 1) if thorough else _some_of(n_pos, max(_AT_ONCE // n_neg, _FEW))
        # A step may be computed as a difference of two δ, and rounds as they do; they are largest where j is 1 or N.
        ends = self.steps(np.arange(1, n_pos + 1), np.array([[1], [n_neg]]), n_pos, n_neg)
        largest, highest = float(np.abs(ends).sum(axis=1).max()), ends[0, i - 1]
        rows = max(1, _BLOCK // i.size)
        for first in range(2, n_neg + 1, rows):
            highest = self._check_block(i, np.arange(first, min(first + rows, n_neg + 1)), counts, highest, largest)
        (self._checked if i.size == n_pos else self._sampled).add(counts)

    def _check_block(
        self, i: IntArray, j: IntArray, counts: tuple[int, int], highest: FloatArray, largest: float
    ) -> FloatArray:
        """Refuse steps that are lower than at a lesser j by more than rounding; the highest up to here, of each i.

        highest: (len(i),), of all lesser j: so that falls too small to tell from rounding do not add up. largest: |δ|.
        """
        steps = self.steps(i, j[:, None], *counts)
        if (steps[0] >= highest).all() and (steps[1:] >= steps[:-1]).all():
            return np.asarray(steps[-1])
        before = np.maximum.accumulate(np.vstack([highest, steps]), axis=0)
        falls = steps - before[:-1] < -_ROUNDING * np.maximum(largest, np.abs(before[:-1])) - _TINY
        if falls.any():
            at = np.unravel_index(int(np.argmax(falls)), falls.shape)
            i_at, j_at = int(i[at[1]]), int(j[at[0]]) - 1
            raise _breaks_c2(self.name, i_at, j_at, *self.steps(i_at, [j_at, j_at + 1], *counts))
        return np.asarray(before[-1])


def _breaks_c2(name: str, i: int, j: int, now: float, then: float) -> NotQSSuitableError:
    return NotQSSuitableError(
        f"{name} breaks (C2) at (i, j) = ({i}, {j}): step_{j + 1}({i}) = {then:.6g} < step_{j}({i}) = {now:.6g}; "
        "the discount must be convex there (steps must not fall as j grows)",
        i,
        j,
    )


def _some_of(last: int, most: int) -> IntArray:
    """1..last; of more than `most`, some of each scale with both ends, and as many by chance, the same every time."""
    if last <= most:
        return np.arange(1, last + 1)
    spread = np.geomspace(1, last, most // 2).round().astype(np.int64)
    chance = np.random.default_rng(0).choice(last, most // 2, replace=False) + 1
    return np.unique(np.concatenate([spread, chance]))


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
