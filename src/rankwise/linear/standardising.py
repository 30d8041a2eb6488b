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

__all__ = ["Scaled", "Standardised", "gram_of", "rate_of", "rate_of_sizes", "sums_of"]

# Entries of a matrix that is copied: 128 MB. Entries of a block.
_COPIED, _BLOCK = 1 << 24, 1 << 18
# A feature that deviates less than this against its size is constant but for rounding.
_CONSTANT = 1e-14


class Scaled:
    """The products of features less their centre, times their rate, composed of the products of the features."""

    def __init__(self, inner: Features, centre: Vector, rate: Vector) -> None:
        self._inner, self.centre, self.rate = inner, centre, rate
        self.n_samples: int = inner.n_samples
        self.n_coefs: int = inner.n_coefs

    def scores(self, coef: Vector) -> Vector:
        """See `Features`."""
        given = coef * self.rate
        return np.asarray(self._inner.scores(given) - self.centre @ given)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """See `Features`."""
        return np.asarray((self._inner.combine(weights) - self.centre * weights.sum(dtype=np.float64)) * self.rate)

    def rows(self, rows: NDArray[np.int64] | slice) -> Scaled:
        """See `Features`."""
        return Scaled(self._inner.rows(rows), self.centre, self.rate)


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
        self._features = self._products()

    def _products(self) -> Features:
        features = as_features(self._X)
        return features if self.is_copied else Scaled(features, self.centre, self.rate)

    @property
    def n_entries(self) -> int:
        """Numbers that are stored."""
        return int(self._X.size if self.is_dense else self._X.nnz)

    def scores(self, coef: Vector) -> Vector:
        """Standardised X·coef, (n,)."""
        return self._features.scores(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Standardised Xᵀ·weights, (d,)."""
        return self._features.combine(weights)

    def gram(self, weights: Vector) -> NDArray[np.float64]:
        """Standardised Xᵀ·diag(weights)·X, (d, d), of dense X; weights at least 0."""
        return gram_of(self._X, weights) if self.is_copied else gram_of(self._X, weights, self.centre, self.rate)

    def rows(self, rows: NDArray[np.int64] | slice) -> Standardised:
        """A copy of some rows, centred and scaled as all of them are."""
        part = copy.copy(self)
        part._X = self._X[rows]
        part._features, part.n_samples = part._products(), part._X.shape[0]
        return part

    def as_given(self, coef: Vector) -> Vector:
        """Coefficients for the features as they were given; scores differ by a constant."""
        return np.asarray(coef * self.rate)


def _blocks(n: int, d: int) -> Iterator[slice]:
    step = max(_BLOCK // max(d, 1), 1)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def gram_of(
    X: NDArray[np.floating], weights: Vector, centre: Vector | float = 0.0, rate: Vector | float = 1.0
) -> NDArray[np.float64]:
    """Xᵀ·diag(weights)·X, (d, d), of X less a centre, times a rate; weights at least 0."""
    n, d = X.shape
    result = np.zeros((d, d))
    for part in _blocks(n, d):
        used = part.start + np.flatnonzero(weights[part])
        rows = (X[used] - centre) * rate
        rows *= np.sqrt(weights[used])[:, None]
        result += rows.T @ rows
    return result


def _of_dense(X: NDArray[np.floating]) -> tuple[Vector, Vector]:
    """The mean of each column, and one over its deviation; 0 for a column that has none."""
    n = X.shape[0]
    mean = sums_of(X) / n
    mean += sums_of(X, mean) / n  # to the last digit
    return mean, rate_of(mean, sums_of(X, mean, 2) / n)


def sums_of(X: NDArray[np.floating], centre: Vector | float = 0.0, power: int = 1) -> Vector:
    """Σ (x − centre)^power of each column, in float64."""
    total = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _blocks(*X.shape):
            away = X[part] - centre if np.ndim(centre) else X[part]
            total += (away if power == 1 else away**power).sum(axis=0, dtype=np.float64)
    return total


def rate_of(mean: Vector, variance: Vector) -> Vector:
    """One over the deviation of each column; 0 for one that has none."""
    if not np.isfinite(variance).all():
        raise ValueError("features are too large to be squared; scale them first")
    return _over(np.sqrt(variance), np.abs(mean) * _CONSTANT)


def _of_sparse(X: Any) -> Vector:
    """One over the largest size in each column; 0 for a column of zeros."""
    return rate_of_sizes(abs(X).max(axis=0).toarray().ravel().astype(np.float64))


def rate_of_sizes(largest: Vector) -> Vector:
    """One over the largest size in each column; 0 for a column of zeros."""
    return _over(largest, np.zeros(largest.size))


def _over(size: Vector, least: Vector) -> Vector:
    """1/size, or 0 where it is not above the least, or too small to be divided by."""
    used = (size > least) & (size > 1e-300)
    return np.where(used, 1.0 / np.where(used, size, 1.0), 0.0)
