"""Losses that are given by their steps alone: any Δ = Σ_j δ_j(r_j)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, IntArray
from rankwise.metrics.loss import ROUNDING, TINY, Loss, breaks_c2

__all__ = ["StepLoss"]

# Grids of steps are checked in blocks of this many entries.
_BLOCK = 1 << 19
# Up to this many steps of a StepLoss are all checked before its first use, in about the time of one solution. If there
# are more, about this many are checked, and at least those of a few i.
_AT_ONCE, _FEW = 1 << 28, 4


@documented
class StepLoss(Loss):
    """Loss given by its step function.

        Δ = Σ_j δ_j(r_j),   step(i, j, n_pos, n_neg) = δ_j(i+1) − δ_j(i),   δ_j(P+1) = 0

    The interleaving rank r_j of the j-th negative from the top is one plus the number of positives above it. This is
    the most general loss that the fast methods can handle.

    Parameters
    ----------
    step : callable
        Function step(i, j, n_pos, n_neg). It takes integer arrays i and j that broadcast, with 1 ≤ i ≤ n_pos and
        1 ≤ j ≤ n_neg, and returns floats of their broadcast shape. For QS-suitability the step must not fall as j grows
        (C2).
    name : str, optional
        Name of the loss in messages. By default "step".

    See Also
    --------
    DiscountedLoss : A loss given by a weight and a discount; it is faster.
    check_qs_suitable : Check every step of a loss.

    Notes
    -----
    All steps are checked for (C2) before the first use with n_pos positives and n_neg negatives. If there are more than
    2²⁸ steps, only some values of i are checked, with every j. If the loss breaks (C2) elsewhere, results may be wrong.
    `check_qs_suitable` always checks every step.

    Examples
    --------
    The fraction of misordered pairs, 1 − AUC:

    >>> import numpy as np
    >>> import rankwise as rw
    >>> def step(i, j, n_pos, n_neg):
    ...     return np.full(np.broadcast_shapes(np.shape(i), np.shape(j)), -1.0 / (n_pos * n_neg))
    >>> rw.ranking_loss([3.0, 2.0, 1.0], [False, True, True], rw.StepLoss(step))
    1.0
    """

    name = "step"
    step: Callable[[Any, Any, int, int], Any]

    def __init__(self, step: Callable[[Any, Any, int, int], Any], name: str | None = None) -> None:
        if not callable(step):
            raise TypeError(f"step must be a function of (i, j, n_pos, n_neg), got {type(step).__name__}")
        super().__init__(step=step)
        self.step = step
        self._checked: set[tuple[int, int]] = set()  # every step was checked
        self._sampled: set[tuple[int, int]] = set()  # some steps were checked: enough only for thorough=False
        if name is not None:
            self.name = name

    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """Compute the steps δ_j(i+1) − δ_j(i) of the loss, and check their shape.

        {steps}
        """
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
        # A step may be a difference of two δ and have their rounding error. They are largest at j = 1 or j = N.
        ends = self.steps(np.arange(1, n_pos + 1), np.array([[1], [n_neg]]), n_pos, n_neg)
        largest, highest = float(np.abs(ends).sum(axis=1).max()), ends[0, i - 1]
        rows = max(1, _BLOCK // i.size)
        for first in range(2, n_neg + 1, rows):
            highest = self._check_block(i, np.arange(first, min(first + rows, n_neg + 1)), counts, highest, largest)
        (self._checked if i.size == n_pos else self._sampled).add(counts)

    def _check_block(
        self, i: IntArray, j: IntArray, counts: tuple[int, int], highest: FloatArray, largest: float
    ) -> FloatArray:
        """Refuse steps that are lower than at a smaller j by more than rounding.

        Return the highest step so far for each i. highest: (len(i),), over all smaller j, so that many falls below the
        rounding error cannot add up. largest: |δ|.
        """
        steps = self.steps(i, j[:, None], *counts)
        if (steps[0] >= highest).all() and (steps[1:] >= steps[:-1]).all():
            return np.asarray(steps[-1])
        before = np.maximum.accumulate(np.vstack([highest, steps]), axis=0)
        falls = steps - before[:-1] < -ROUNDING * np.maximum(largest, np.abs(before[:-1])) - TINY
        if falls.any():
            at = np.unravel_index(int(np.argmax(falls)), falls.shape)
            i_at, j_at = int(i[at[1]]), int(j[at[0]]) - 1
            raise breaks_c2(self.name, i_at, j_at, *self.steps(i_at, [j_at, j_at + 1], *counts))
        return np.asarray(before[-1])


def _some_of(last: int, most: int) -> IntArray:
    """Return 1..last, or a fixed sample of `most` of them: half on a geometric scale, half at random."""
    if last <= most:
        return np.arange(1, last + 1)
    spread = np.geomspace(1, last, most // 2).round().astype(np.int64)
    chance = np.random.default_rng(0).choice(last, most // 2, replace=False) + 1
    return np.unique(np.concatenate([spread, chance]))
