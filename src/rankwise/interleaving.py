"""A ranking as interleaving ranks ⇄ ± pattern ⇄ order ⇄ matrix.

The interleaving rank of a negative is one plus the number of positives above it, from 1 to P + 1. It is all that the
losses and F depend on; positives among themselves stand in descending order of their scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST_MATRIX = 20_000


@dataclass(frozen=True, eq=False)
class Interleaving:
    """A ranking of P positives and N negatives.

    ranks: (N,) interleaving rank of each negative, in input order. positives: (P,) positions of the positives, best
    first; negatives: (N,) positions of the negatives, in input order.
    """

    ranks: NDArray[np.int64]
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]

    @property
    def n_pos(self) -> int:
        """P, the number of positives."""
        return self.positives.size

    @property
    def n_neg(self) -> int:
        """N, the number of negatives."""
        return self.negatives.size

    @property
    def above(self) -> NDArray[np.int64]:
        """(P,) c_k, the number of negatives above the k-th positive."""
        at_rank = np.bincount(self.ranks, minlength=self.n_pos + 2)
        return np.cumsum(at_rank)[1 : self.n_pos + 1]

    def order(self) -> NDArray[np.int64]:
        """(P + N,) positions of the samples from the top; negatives of one rank in input order."""
        order = np.empty(self.n_pos + self.n_neg, dtype=np.int64)
        order[np.arange(self.n_pos) + self.above] = self.positives
        by_rank = np.argsort(self.ranks, kind="stable")
        order[self.ranks[by_rank] - 1 + np.arange(self.n_neg)] = self.negatives[by_rank]
        return order

    def pattern(self) -> str:
        """One sign a sample from the top: "+" for a positive, "-" for a negative."""
        signs = np.full(self.n_pos + self.n_neg, "-")
        signs[np.arange(self.n_pos) + self.above] = "+"
        return "".join(signs)

    def matrix(self) -> NDArray[np.int8]:
        """R (n, n): 1 where the row's sample is ranked above the column's, −1 where below, 0 on the diagonal."""
        n = self.n_pos + self.n_neg
        if n > _LARGEST_MATRIX:
            raise ValueError(f"the matrix of {n} samples would have {n * n} entries; use ranks, order() or pattern()")
        place = np.empty(n, dtype=np.int64)
        place[self.order()] = np.arange(n)
        result: NDArray[np.int8] = np.sign(place[None, :] - place[:, None]).astype(np.int8)
        return result

    def __repr__(self) -> str:
        shown = self.pattern() if self.n_pos + self.n_neg <= 60 else f"{self.n_pos} positives, {self.n_neg} negatives"
        return f"Interleaving({shown})"
