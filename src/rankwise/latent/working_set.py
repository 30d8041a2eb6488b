"""The candidates over which a convex step is solved: one of each positive bag, a few of each negative bag.

A negative bag's score is the highest of its candidates' scores, so fewer candidates give a risk that is nowhere higher.
Planes and lower bounds for a working set therefore hold for all candidates. Candidates with higher scores that a pass
over all of them finds are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from rankwise.latent.bags import Bags
from rankwise.latent.blocks import take_rows
from rankwise.linear.features import Vector, as_features

Indices = NDArray[np.int64]
# A candidate that was not its bag's best in so many rounds is dropped.
_IDLE = 4


def best_of(scores: Vector, starts: Indices) -> tuple[Vector, Indices]:
    """Return the highest score of each bag and its first position; bag i begins at starts[i]."""
    best = np.maximum.reduceat(scores, starts)
    owner = np.repeat(np.arange(starts.size), np.diff(np.append(starts, scores.size)))
    hits = np.flatnonzero(scores == best[owner])
    return best, hits[np.searchsorted(owner[hits], np.arange(starts.size))]


class WorkingSet:
    """Rows by bag, used as `Features` of the bags: the score of a bag is that of its best candidate.

    `combine` gives the weight of each bag to its best candidate in the last call of `scores`.
    """

    def __init__(self, bags: Bags, rows: Indices, owner: Indices, last: Indices, round: int = 0) -> None:
        self._bags = bags
        self.n_samples, self.n_coefs = len(bags), bags.width
        self.round = round
        self._take(rows, owner, last, take_rows(bags.features, rows))

    def _take(self, rows: Indices, owner: Indices, last: Indices, matrix: Any) -> None:
        order = np.lexsort((rows, owner))
        self.rows, self.owner, self.last = rows[order], owner[order], last[order]
        matrix = matrix[order]
        self._matrix = matrix
        self._features = as_features(matrix)
        self._starts = np.searchsorted(self.owner, np.arange(self.n_samples))
        self._chosen = self._starts

    def scores(self, coef: Vector) -> Vector:
        """Return the maximum of φ·coef over the rows of each bag, (bags,)."""
        best, self._chosen = best_of(self._features.scores(coef), self._starts)
        self.last[self._chosen] = np.maximum(self.last[self._chosen], self.round)
        return best

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Return Σ_i weights[i]·φ of bag i's best row, (d,)."""
        spread = np.zeros(self.rows.size)
        spread[self._chosen] = weights
        return self._features.combine(spread)

    def add(self, rows: Indices, owner: Indices) -> int:
        """Add new rows, drop rows that were long unused, and return how many were added."""
        new = ~np.isin(rows, self.rows)
        keep = self.last >= self.round - _IDLE  # each bag's best is of this round
        if not new.any() and keep.all():
            return 0
        self._join(keep, rows[new], owner[new])
        return int(new.sum())

    def fix(self, rows: Indices, owner: Indices) -> None:
        """Make these rows the only ones of their bags."""
        self._join(~np.isin(self.owner, owner), rows, owner)

    def _join(self, keep: NDArray[np.bool_], rows: Indices, owner: Indices) -> None:
        """Keep some rows and add others."""
        parts = [self._matrix[keep], take_rows(self._bags.features, rows)]
        self._take(
            np.concatenate([self.rows[keep], rows]),
            np.concatenate([self.owner[keep], owner]),
            np.concatenate([self.last[keep], np.full(rows.size, self.round)]),
            vstack(parts).tocsr() if issparse(parts[0]) else np.concatenate(parts),
        )
