"""Expected reciprocal rank: a reader goes down the list and stops at a sample with probability R, its gain.

Value of a query: Σ_{places m ≤ k} (1/m) (E_{m−1} − E_m), where E_m is the probability that the reader goes on after m
places. In a step of t equal scores, every order is equally likely: after j of its samples, E is its value before the
step times the mean over all sets of j of them of the product of 1 − R.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.metrics.grades import FloatArray
from rankwise.metrics.steps import IntArray, Steps

# A probability of going on below this counts as 0.
_NONE = 1e-20


def expected_reciprocal_rank(steps: Steps, k: int | None) -> FloatArray:
    """Return the expectation over the orders of equal scores, (q,); NaN if no sample has a gain."""
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
    """Return the probability of reaching each step, (m,): the product of 1 − R above it, in its query."""
    product = np.ones(begins.size)
    product[used] = np.multiply.reduceat(on, begins[used])
    before = np.ones(begins.size)
    for rows in _of_equal_length(steps.first, np.diff(steps.first, append=begins.size)):
        before[rows[:, 1:]] = np.cumprod(product[rows[:, :-1]], axis=1)
    return before


def _within(on: FloatArray, size: IntArray, begins: IntArray, above: IntArray, k: int | None) -> FloatArray:
    """Return, after each place, the mean product of 1 − R over sets of that many samples of its step, (n,).

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
