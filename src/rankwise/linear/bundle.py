"""A bundle of planes under the risk, the lower bound it gives, and the point where that bound is attained.

With weights α on the simplex, every v has F(v) ≥ D(α) = C Σ α_i offset_i − ½‖C Σ α_i normal_i‖², and the bound is
highest where v = −C Σ α_i normal_i minimises ½‖v‖² + C max_i (offset_i + normal_i·v).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Vector
from rankwise.linear.objective import Cut
from rankwise.linear.simplex_qp import Factor, maximise

# A plane without weight in so many solutions is dropped, once this many can be dropped together.
_IDLE = 50
_AT_ONCE = 16


class Planes(NamedTuple):
    """The contents of a bundle as arrays: (k, d), and three of (k,)."""

    normals: Vector
    offsets: Vector
    weights: Vector
    idle: NDArray[np.int64]


class Bundle:
    """Planes with their inner products and weights. The first plane is risk ≥ 0, which holds for every hinge."""

    def __init__(self, n_coefs: int) -> None:
        self._normals: Vector = np.zeros((16, n_coefs))
        self._offsets: Vector = np.zeros(16)
        self._gram: Vector = np.zeros((16, 16))
        self._idle: NDArray[np.int64] = np.zeros(16, np.int64)
        self._weights = np.ones(1)
        self._factor = Factor()

    @classmethod
    def of(cls, planes: Planes) -> Bundle:
        """Restore a bundle from its `planes`; inner products are computed again."""
        bundle = cls(planes.normals.shape[1])
        bundle._normals, bundle._offsets = planes.normals.copy(), planes.offsets.copy()
        bundle._weights, bundle._idle = planes.weights.copy(), planes.idle.copy()
        bundle._gram = planes.normals @ planes.normals.T
        return bundle

    @property
    def planes(self) -> Planes:
        """A copy of the contents."""
        k = self.size
        return Planes(self._normals[:k].copy(), self._offsets[:k].copy(), self._weights.copy(), self._idle[:k].copy())

    @property
    def size(self) -> int:
        """Number of planes."""
        return self._weights.size

    @property
    def n_used(self) -> int:
        """Number of planes with weight."""
        return int(np.count_nonzero(self._weights))

    def add(self, cut: Cut) -> None:
        """Add a plane with weight 0."""
        k = self.size
        if k == self._offsets.size:
            self._grow()
        self._normals[k], self._offsets[k], self._idle[k] = cut.normal, cut.offset, 0
        self._gram[k, : k + 1] = self._gram[: k + 1, k] = self._normals[: k + 1] @ cut.normal
        self._weights = np.append(self._weights, 0.0)

    def solve(self, C: float, tol: float) -> tuple[Vector, float]:
        """Return the minimiser of ½‖v‖² + C max_i (offset_i + normal_i·v) and the dual value D, to within `tol`."""
        k = self.size
        self._weights = maximise(self._gram[:k, :k], self._offsets[:k] / C, self._weights, tol / C / C, self._factor)
        self._idle[:k] += 1
        self._idle[:k][self._weights > 0] = 0
        v = -C * (self._weights @ self._normals[:k])
        return v, float(C * (self._weights @ self._offsets[:k]) - 0.5 * (v @ v))

    def prune(self) -> None:
        """Drop planes that have long been idle."""
        k = self.size
        keep = self._idle[:k] <= _IDLE
        keep[0] = True
        if k - int(keep.sum()) < _AT_ONCE:
            return
        kept = np.flatnonzero(keep)
        self._factor.renumber(kept)
        m = kept.size
        for values in (self._normals, self._offsets, self._idle):
            values[:m] = values[kept]
        self._gram[:m, :m] = self._gram[np.ix_(kept, kept)]
        self._weights = self._weights[kept]

    def _grow(self) -> None:
        """Make room for half as many planes again. Memory that is not written to yet is not used."""
        k, room = self.size, self.size + max(self.size // 2, 16)
        for name in ("_normals", "_offsets", "_idle"):
            old = getattr(self, name)
            setattr(self, name, np.zeros((room, *old.shape[1:]), old.dtype))
            getattr(self, name)[:k] = old
        gram, self._gram = self._gram, np.zeros((room, room))
        self._gram[:k, :k] = gram
