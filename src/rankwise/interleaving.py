"""A ranking as interleaving ranks, ± pattern, or order.

The interleaving rank of a negative is one plus the number of positives above it, from 1 to P + 1. The losses and F
depend on nothing else. The positives are in descending order of their scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Interleaving:
    """A ranking of P positives and N negatives.

    Parameters
    ----------
    ranks : ndarray of shape (N,)
        Interleaving rank of each negative, in input order: one plus the number of positives above it.
    positives : ndarray of shape (P,)
        Positions of the positives in the input, best first.
    negatives : ndarray of shape (N,)
        Positions of the negatives in the input, in input order.

    See Also
    --------
    most_violating_ranking : Find the most violating ranking.

    Examples
    --------
    >>> import rankwise as rw
    >>> ranking = rw.most_violating_ranking([1.2, 1.0, 0.9, -9.0], [True, True, False, False])
    >>> ranking
    Interleaving(-++-)
    >>> ranking.ranks, ranking.order(), ranking.above
    (array([1, 3]), array([2, 0, 1, 3]), array([1, 1]))
    """

    ranks: NDArray[np.int64]
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]

    @property
    def n_pos(self) -> int:
        """Number of positives P."""
        return self.positives.size

    @property
    def n_neg(self) -> int:
        """Number of negatives N."""
        return self.negatives.size

    @property
    def above(self) -> NDArray[np.int64]:
        """Number of negatives above each positive, c_k, as an array of shape (P,)."""
        at_rank = np.bincount(self.ranks, minlength=self.n_pos + 2)
        return np.cumsum(at_rank)[1 : self.n_pos + 1]

    def order(self) -> NDArray[np.int64]:
        """Return the samples from the top of the ranking; negatives of equal rank are in input order.

        Returns
        -------
        ndarray of shape (P + N,)
            Positions of the samples in the input.
        """
        order = np.empty(self.n_pos + self.n_neg, dtype=np.int64)
        order[np.arange(self.n_pos) + self.above] = self.positives
        by_rank = np.argsort(self.ranks, kind="stable")
        order[self.ranks[by_rank] - 1 + np.arange(self.n_neg)] = self.negatives[by_rank]
        return order

    def pattern(self) -> str:
        """Return the ranking as a string of signs, from the top.

        Returns
        -------
        str
            One sign per sample: "+" for a positive, "-" for a negative.
        """
        signs = np.full(self.n_pos + self.n_neg, "-")
        signs[np.arange(self.n_pos) + self.above] = "+"
        return "".join(signs)

    def __repr__(self) -> str:
        shown = self.pattern() if self.n_pos + self.n_neg <= 60 else f"{self.n_pos} positives, {self.n_neg} negatives"
        return f"Interleaving({shown})"
