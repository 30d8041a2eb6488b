"""Expected reciprocal rank: a reader goes down the list and stops at a sample with probability R, its gain.

Value of a query: Σ_{places m ≤ k} (1/m) (E_{m−1} − E_m), where E_m is the probability that the reader goes on after m
places. In a tie of t equal scores, every order is equally likely: after j of its samples, E is its value before the
tie times the mean over all sets of j of them of the product of 1 − R.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import first_true, is_number
from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, IntArray, Metric
from rankwise.metrics.ranked import Ties

# A probability of going on below this counts as 0.
_NONE = 1e-20


@documented
class ExpectedReciprocalRank(Metric):
    """Expected reciprocal rank, ERR; see `expected_reciprocal_rank`. Its name is "err". It cannot be trained for."""

    name = "err"
    cut = "optionally"
    graded = True

    def __init__(self, k: int | None = None, max_grade: float | None = None) -> None:
        if max_grade is not None and (not is_number(max_grade) or not 0.0 < max_grade < np.inf):
            raise ValueError(f"max_grade must be a positive number, the largest possible grade, got {max_grade!r}")
        super().__init__(k=k, max_grade=max_grade)
        self.max_grade = None if max_grade is None else float(max_grade)

    def for_grades(self, grades: NDArray[Any] | None) -> Metric:
        if grades is None or self.max_grade is not None:
            return self
        return self.replace(max_grade=float(grades.max()))

    def gains(self, grades: FloatArray) -> FloatArray:
        # R = (2^y − 1)/2^max_grade, the probability of stopping.
        largest = float(grades.max(initial=0.0)) if self.max_grade is None else self.max_grade
        if (k := first_true(grades > largest)) is not None:
            raise ValueError(
                f"grades[{k}] is {grades[k]:g}, above max_grade={largest:g}; pass the largest possible grade"
            )
        found = np.exp2(grades - largest) * -np.expm1(-grades * np.log(2.0))
        # A grade above 0 counts as relevant even if its gain underflows.
        return np.where(grades > 0.0, np.maximum(found, np.finfo(np.float64).smallest_subnormal), 0.0)

    def of_ties(self, ties: Ties) -> FloatArray:
        # The expectation over the orders of equal scores.
        stop = ties.each if ties.times is None else np.repeat(ties.each, ties.times.astype(np.int64))
        if stop.size == 0:
            return np.full(ties.first.size, np.nan)
        size = ties.size.astype(np.int64)
        begins, used = np.cumsum(size) - size, size > 0
        above = ties.above(ties.size).astype(np.int64)
        before_tie = _before(ties, 1.0 - stop, begins, used)
        after = _within(1.0 - stop, size, begins, above, self.k) * np.repeat(before_tie, size)
        before = np.append(1.0, after[:-1])
        before[begins[used]] = before_tie[used]
        place = np.arange(stop.size) - np.repeat(begins - above, size) + 1
        part = np.where(place <= (place.max() if self.k is None else self.k), (before - after) / place, 0.0)
        values = np.add.reduceat(part, begins[ties.first])
        return np.where(ties.total(ties.gain) > 0.0, values, np.nan)


def _before(ties: Ties, on: FloatArray, begins: IntArray, used: NDArray[np.bool_]) -> FloatArray:
    """Return the probability of reaching each tie, (m,): the product of 1 − R above it, in its query."""
    product = np.ones(begins.size)
    product[used] = np.multiply.reduceat(on, begins[used])
    before = np.ones(begins.size)
    for rows in _of_equal_length(ties.first, np.diff(ties.first, append=begins.size)):
        before[rows[:, 1:]] = np.cumprod(product[rows[:, :-1]], axis=1)
    return before


def _within(on: FloatArray, size: IntArray, begins: IntArray, above: IntArray, k: int | None) -> FloatArray:
    """Return, after each place, the mean product of 1 − R over sets of that many samples of its tie, (n,).

    Places beyond k are not used and get 0.
    """
    mean = on.copy()
    tied = size > 1
    for rows in _of_equal_length(begins[tied], size[tied]):
        last = rows.shape[1]
        if k is not None:
            reached = above[tied][size[tied] == last]
            last = min(last, max(k - int(reached.min()), 0))
        mean[rows] = 0.0
        mean[rows[:, :last]] = _mean_products(on[rows], last)
    return mean


def _of_equal_length(starts: IntArray, lengths: IntArray) -> Iterator[IntArray]:
    """Yield stretches start : start + length, all of one length at a time: (stretches, length) positions."""
    for length in np.unique(lengths):
        yield starts[lengths == length][:, None] + np.arange(length)


def _mean_products(on: FloatArray, last: int) -> FloatArray:
    """Return, for j = 1..last, the mean over all sets of j of a row's t numbers of their product, (rows, last).

    Number by number: M_j of i numbers is (1 − j/i) M_j + (j/i)·on_i·M_{j−1} of the first i − 1.
    """
    on = -np.sort(-on, axis=1)
    t = on.shape[1]
    known = int((on == 1.0).sum(axis=1).min())  # every product of these is 1
    mean = np.zeros((on.shape[0], last + 1))
    mean[:, : known + 1] = 1.0
    # Maclaurin: M_j is at most M_1 to the power j. Values below _NONE stay 0.
    largest = float(on.mean(axis=1).max())
    if 0.0 < largest < 1.0:
        last = min(last, int(np.ceil(np.log(_NONE) / np.log(largest))))
    for i in range(known + 1, t + 1):
        j = np.arange(1, min(i, last) + 1) / i
        mean[:, 1 : j.size + 1] = (1.0 - j) * mean[:, 1 : j.size + 1] + j * on[:, i - 1 : i] * mean[:, : j.size]
    return mean[:, 1:]


@documented
def expected_reciprocal_rank(
    scores: ArrayLike,
    grades: ArrayLike,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """Compute the expected reciprocal rank, ERR (Chapelle et al., 2009).

        ERR = Σ_{places m ≤ k} (1/m) R_m Π_{i < m} (1 − R_i),   R = (2^grade − 1)/2^max_grade

    It is the expected reciprocal of the place where a reader stops who goes down the list and stops at a sample with
    probability R; it never reaches 1. If samples have equal scores, it is the expectation over their orders.

    {judging}

    Examples
    --------
    >>> expected_reciprocal_rank([0.9, 0.8, 0.7], [1, 0, 2])  # 1/4 + (1 − 1/4) · 3/4 · 1/3
    0.4375
    """
    return ExpectedReciprocalRank(k, max_grade)(scores, grades, qid=qid, empty=empty)
