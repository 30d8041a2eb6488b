"""Surrogates made of soft counts: what each positive adds to the loss, and its weight in the gradients of negatives.

A comparison is softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1). c_k = Σ_j H(s_j − s_k) is the soft number of
negatives above the k-th positive. A new surrogate is a class with its formula in `errors`: kernels find the counts, and
turn weights by positive into the gradient.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import is_number
from rankwise.documenting import documented
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.metrics.thresholds import sums_of
from rankwise.queries import Queries, Solved, compiled
from rankwise.surrogates.base import Surrogate

# Halves and squares of a width must not overflow or underflow.
_LEAST, _MOST = 1e-150, 1e150


class SoftCounts(NamedTuple):
    """Soft counts of the positives of queries, one query after the other, ascending by score within a query.

    soft: what the kernels found, `rankwise.kernels.soft.Softened`: level, above (c_k) and near by positive. place: (P,)
    k, from the top. norm: (P,) C of the query. n: the largest number of samples in a query.
    """

    soft: Any
    place: NDArray[np.int64]
    norm: NDArray[np.float64]
    n: int


class Errors(NamedTuple):
    """For each positive: its part of the loss, its gradient, and its weight for the negatives, by ramp or not."""

    part: NDArray[np.float64]
    own: NDArray[np.float64]
    weight: NDArray[np.float64]
    ramp: bool


def as_width(width: float) -> float:
    """Return the width if it is a positive number."""
    if not is_number(width) or not _LEAST <= width <= _MOST:
        raise ValueError(f"width must be a positive number, from {_LEAST:g} to {_MOST:g}, got {width!r}")
    return float(width)


def counts_of(soft: Any, n_pos: NDArray[np.int64], n_neg: NDArray[np.int64], loss: Any) -> SoftCounts:
    """Return the soft counts of queries of (Q,) positives and negatives."""
    both, ends = (n_pos > 0) & (n_neg > 0), soft.starts[1:]
    place = np.repeat(ends, n_pos) - np.arange(ends[-1])
    norms = np.ones(n_pos.size)
    norms[both] = loss.normaliser(n_pos[both], n_neg[both])
    return SoftCounts(soft, place, np.repeat(norms, n_pos), int((n_pos + n_neg).max()))


@documented
@dataclass(frozen=True)
class Softened(Surrogate):
    """Base class of surrogates of soft counts: a width, and `errors` of every positive."""

    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_width(self.width))

    def accepts(self, loss: LossLike) -> DiscountedLoss:
        found = as_loss(loss)
        if not isinstance(found, DiscountedLoss):
            others = "'ap', 'ndcg', 'mrr', 'auc' or a DiscountedLoss"
            raise ValueError(f"{found.name} has no discount, so it cannot be smoothed; use {others}")
        return found

    @abstractmethod
    def errors(self, counts: SoftCounts, loss: Any, n_threads: int = 1) -> Errors:
        """Return what each positive adds to the loss, and its gradients.

        Parameters
        ----------
        counts : SoftCounts
            Soft counts of the positives.
        loss : DiscountedLoss
            The loss, as `accepts` returns it.
        n_threads : int, default 1
            Number of threads.

        Returns
        -------
        Errors
            For each positive: its value, its gradient, and its weight for the negatives.
        """

    def solve_binary(self, scores: NDArray[np.floating], queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        n_pos, n_neg = queries.counts
        soft = compiled("soft").soften(scores, queries, self.width, n_threads)
        both = (n_pos > 0) & (n_neg > 0)
        value = np.zeros(n_pos.size)
        if not both.any():
            return Solved(value, value, np.zeros_like(scores))
        part, own, weight, ramp = self.errors(counts_of(soft, n_pos, n_neg, loss), loss, n_threads)
        value[both] = sums_of(part, n_pos)[both]
        gradient = compiled("soft").spread(scores, queries, soft, weight, own, ramp, n_threads)
        return Solved(value, value, gradient)
