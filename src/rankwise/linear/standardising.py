"""Features of even scale, and coefficients brought back to the features as they were given.

Dense features are centred and divided by their deviation. Sparse ones are divided by their largest size, so that they
stay sparse, and stay as they are where they are 0 and 1. A dense matrix that fits easily into memory is copied; of a
larger one, or of a file, every product is composed of the original's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector, as_features

__all__ = ["Standardised"]

# Entries of a matrix that is copied: 128 MB. Entries of a block.
_COPIED, _BLOCK = 1 << 24, 1 << 18
# A feature that deviates less than this against its size is constant but for rounding.
_CONSTANT = 1e-14


class Standardised:
    """X, dense, CSR or CSC, checked already: every column less its centre, times its rate."""

    def __init__(self, X: Any) -> None:
        self.n_samples, self.n_coefs = X.shape
        self.is_dense = isinstance(X, np.ndarray)
        self._X: Any = np.asarray(X) if self.is_dense else X
        self.centre: Vector = np.zeros(self.n_coefs)
        if self.is_dense:
            self.centre, self.rate = _of_dense(self._X)
        else:
            self.rate = _of_sparse(X)
        self.is_copied = self.is_dense and not isinstance(X, np.memmap) and X.size <= _COPIED
        if self.is_copied:
            self._X = X.astype(np.float64)
            self._X -= self.centre
            self._X *= self.rate
        self._features: Features = as_features(self._X)

    @property
    def n_entries(self) -> int:
        """Numbers that are stored."""
        return int(self._X.size if self.is_dense else self._X.nnz)

    def scores(self, coef: Vector) -> Vector:
        """Standardised X·coef, (n,)."""
        if self.is_copied:
            return self._features.scores(coef)
        given = self.as_given(coef)
        return np.asarray(self._features.scores(given) - self.centre @ given)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Standardised Xᵀ·weights, (d,)."""
        if self.is_copied:
            return self._features.combine(weights)
        return np.asarray((self._features.combine(weights) - self.centre * weights.sum(dtype=np.float64)) * self.rate)

    def gram(self, weights: Vector) -> NDArray[np.float64]:
        """Standardised Xᵀ·diag(weights)·X, (d, d), of dense X; weights at least 0."""
        result = np.zeros((self.n_coefs, self.n_coefs))
        for part in _blocks(self.n_samples, self.n_coefs):
            used = part.start + np.flatnonzero(weights[part])
            rows = self._X[used] if self.is_copied else (self._X[used] - self.centre) * self.rate
            rows *= np.sqrt(weights[used])[:, None]
            result += rows.T @ rows
        return result

    def rows(self, rows: NDArray[np.int64] | slice) -> Standardised:
        """A copy of some rows, centred and scaled as all of them are."""
        part = copy.copy(self)
        part._X = self._X[rows]
        part._features, part.n_samples = as_features(part._X), part._X.shape[0]
        return part

    def as_given(self, coef: Vector) -> Vector:
        """Coefficients for the features as they were given; scores differ by a constant."""
        return np.asarray(coef * self.rate)


def _blocks(n: int, d: int) -> Iterator[slice]:
    step = max(_BLOCK // max(d, 1), 1)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _of_dense(X: NDArray[np.floating]) -> tuple[Vector, Vector]:
    """The mean of each column, and one over its deviation; 0 for a column that has none."""
    n, d = X.shape
    parts = list(_blocks(n, d))
    mean = np.sum([X[part].sum(axis=0, dtype=np.float64) for part in parts], axis=0) / n
    with np.errstate(over="ignore", invalid="ignore"):
        mean += np.sum([(X[part] - mean).sum(axis=0) for part in parts], axis=0) / n  # to the last digit
        spread = np.sqrt(np.sum([((X[part] - mean) ** 2).sum(axis=0) for part in parts], axis=0) / n)
    if not np.isfinite(spread).all():
        raise ValueError("features are too large to be squared; scale them first")
    return mean, _over(spread, np.abs(mean) * _CONSTANT)


def _of_sparse(X: Any) -> Vector:
    """One over the largest size in each column; 0 for a column of zeros."""
    return _over(abs(X).max(axis=0).toarray().ravel().astype(np.float64), np.zeros(X.shape[1]))


def _over(size: Vector, least: Vector) -> Vector:
    """1/size, or 0 where it is not above the least, or too small to be divided by."""
    used = (size > least) & (size > 1e-300)
    return np.where(used, 1.0 / np.where(used, size, 1.0), 0.0)
