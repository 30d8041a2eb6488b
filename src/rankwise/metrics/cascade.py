"""Expected reciprocal rank: a reader goes down the list and stops at a sample with the probability that is its gain.

Value of a query: Σ_{places m ≤ k} (1/m) (E_{m−1} − E_m), where E_m is the probability that the reader goes on after m
places. Of a step of t equal scores, every order is as likely: after j of its samples E is, times what it was before the
step, the mean over all sets of j of them of the product of 1 − R.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.metrics.grades import FloatArray
from rankwise.metrics.steps import IntArray, Steps

# A probability of going on that is as small as this is none.
_NONE = 1e-20


def expected_reciprocal_rank(steps: Steps, k: int | None) -> FloatArray:
    """(q,) The expectation, over the orders of equal scores; NaN where no sample has a gain."""
    stop = steps.each if steps.times is None else np.repeat(steps.each, steps.times.astype(np.int64))
    if stop.size == 0:
        return np.full(steps.first.size, np.nan)
    size = steps.size.astype(np.int64)
    begins, used = np.cumsum(size) - size, size > 0
    above = steps.above(steps.size).astype(np.int64)
    before_step = _before(steps, 1.0 - stop, begins, used)
    after = _within(1.0 - stop, size, begins, above, k) * np.repeat(before_step, size)
    before = np.append(1.0, after[:-1])
    before[begins[used]] = before_step[used]
    place = np.arange(stop.size) - np.repeat(begins - above, size) + 1
    part = np.where(place <= (place.max() if k is None else k), (before - after) / place, 0.0)
    values = np.add.reduceat(part, begins[steps.first])
    return np.where(steps.total(steps.gain) > 0.0, values, np.nan)


def _before(steps: Steps, on: FloatArray, begins: IntArray, used: NDArray[np.bool_]) -> FloatArray:
    """(m,) The probability of going on until each step: the product of 1 − R above it, in its query."""
    product = np.ones(begins.size)
    product[used] = np.multiply.reduceat(on, begins[used])
    before = np.ones(begins.size)
    for rows in _of_equal_length(steps.first, np.diff(steps.first, append=begins.size)):
        before[rows[:, 1:]] = np.cumprod(product[rows[:, :-1]], axis=1)
    return before


def _within(on: FloatArray, size: IntArray, begins: IntArray, above: IntArray, k: int | None) -> FloatArray:
    """(n,) After each place, the mean product of 1 − R of as many samples of the place's step; 0 where it is not used.

    It is not used beyond k.
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
    """Stretches start : start + length, those of one length at a time: (stretches, length) positions."""
    for length in np.unique(lengths):
        yield starts[lengths == length][:, None] + np.arange(length)


def _mean_products(on: FloatArray, last: int) -> FloatArray:
    """(rows, last) For j = 1..last, the mean over all sets of j of a row's t numbers of their product.

    Number by number: M_j of i numbers is (1 − j/i) M_j + (j/i)·on_i·M_{j−1} of the first i − 1.
    """
    on = -np.sort(-on, axis=1)
    t = on.shape[1]
    known = int((on == 1.0).sum(axis=1).min())  # every product of these is 1
    mean = np.zeros((on.shape[0], last + 1))
    mean[:, : known + 1] = 1.0
    # Maclaurin: M_j is at most M_1 to the power j. What is smaller than _NONE stays 0.
    largest = float(on.mean(axis=1).max())
    if 0.0 < largest < 1.0:
        last = min(last, int(np.ceil(np.log(_NONE) / np.log(largest))))
    for i in range(known + 1, t + 1):
        j = np.arange(1, min(i, last) + 1) / i
        mean[:, 1 : j.size + 1] = (1.0 - j) * mean[:, 1 : j.size + 1] + j * on[:, i - 1 : i] * mean[:, : j.size]
    return mean[:, 1:]
