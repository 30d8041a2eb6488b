"""Features of equal scale, and the conversion of coefficients back to the original features.

Dense features are centred and divided by their standard deviation. Sparse features are divided by their largest
absolute value: they stay sparse, and features of 0 and 1 do not change. A dense matrix that fits easily into memory is
copied. For a larger one, or a memory map, every product is computed from products of the original matrix.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk, dtrmv
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csr_matrix

from rankwise.linear.features import FEW, Features, Vector, as_features, blocks, of_parts

__all__ = ["RowSpace", "Scaled", "Standardised", "standardise"]

# Largest number of entries of a matrix that is copied (128 MB), and entries of a block.
_COPIED, _BLOCK = 1 << 24, 1 << 18
# Products of so many samples are kept in place of the features, if they take no more than so many times their memory.
_MOST_ROWS, _LARGER = 1 << 13, 2
# A feature whose relative deviation is below this is constant except for rounding.
_CONSTANT = 1e-14
# Numbers up to this can be summed. Coefficients of features below the second one may overflow.
_LARGEST, _SMALLEST = 1e307, 1e-302


class Scaled:
    """Products of (X − centre)·rate, computed from products of the features X."""

    def __init__(self, inner: Features, centre: Vector, rate: Vector) -> None:
        self._inner, self.centre, self.rate = inner, centre, rate
        self.n_coefs: int = inner.n_coefs

    def scores(self, coef: Vector) -> Vector:
        """See `Features`."""
        given = coef * self.rate
        return np.asarray(self._inner.scores(given) - self.centre @ given)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """See `Features`."""
        return np.asarray((self._inner.combine(weights) - self.centre * weights.sum(dtype=np.float64)) * self.rate)


def standardise(X: Any) -> Standardised | RowSpace:
    """Return standardised features of checked X, in the space of its rows if there are more features than samples."""
    n, d = X.shape
    stored = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    is_wide = n < d and n <= _MOST_ROWS and 8 * n * n <= _LARGER * stored
    return RowSpace(Standardised(X, copies=False)) if is_wide else Standardised(X)


class Standardised:
    """Standardised X, dense, CSR or CSC and checked: (X − centre)·rate in every column."""

    def __init__(self, X: Any, copies: bool = True) -> None:
        self.n_samples, self.n_coefs = X.shape
        self.is_dense = isinstance(X, np.ndarray)
        self._X: Any = np.asarray(X) if self.is_dense else X
        self.centre: Vector = np.zeros(self.n_coefs)
        if self.is_dense:
            self.centre, self.rate = _of_dense(self._X)
        else:
            self.rate = _of_sparse(X)
        self.is_copied = copies and self.is_dense and not isinstance(X, np.memmap) and X.size <= _COPIED
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
        """Number of stored entries."""
        return int(self._X.size if self.is_dense else self._X.nnz)

    def scores(self, coef: Vector) -> Vector:
        """Standardised X·coef, (n,)."""
        return self._features.scores(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Standardised Xᵀ·weights, (d,)."""
        return self._features.combine(weights)

    def gram(self, weights: Vector) -> NDArray[np.float64]:
        """Standardised Xᵀ·diag(weights)·X, (d, d), of dense X; weights at least 0."""
        return _gram(self._X, weights) if self.is_copied else _gram(self._X, weights, self.centre, self.rate)

    def rows(self, rows: NDArray[np.int64] | slice) -> Standardised:
        """Return a copy of some rows, with the centre and scale of all rows."""
        part = copy.copy(self)
        part._X = self._X[rows]
        part._features, part.n_samples = part._products(), part._X.shape[0]
        return part

    def as_given(self, coef: Vector) -> Vector:
        """Return coefficients for the original features; scores differ by a constant."""
        return np.asarray(coef * self.rate)

    def outer(self) -> NDArray[np.float64]:
        """Upper triangle of standardised X·Xᵀ, (n, n), by columns; the rest is 0."""
        n = self.n_samples
        result = np.zeros((n, n), order="F")
        if self.is_dense:
            for part in blocks(self.n_coefs, n, _BLOCK):
                columns = (self._X[:, part] - self.centre[part]) * self.rate[part]
                result = dsyrk(1.0, columns, beta=1.0, c=result, overwrite_c=1)
            return result
        X = self._X.tocsr()
        scaled = of_parts(csr_matrix, X.shape, X.data * self.rate[X.indices], X.indices, X.indptr)
        for part in blocks(n, n, _BLOCK):
            result[:, part] = (scaled @ scaled[part].T).toarray()
            result[part.stop :, part] = 0.0
            result[part, part] = np.triu(result[part, part])
        return result


class RowSpace:
    """Standardised features Z in the coordinates of their rows: with Z·Zᵀ = RᵀR, sample i has column i of R, (n,).

    Every model with a squared penalty is a combination w = Zᵀα of samples. With v = R·α, its scores are Rᵀv, and
    ‖w‖ = ‖v‖. So problems of d > n features become the same problems of n, and Z is only needed to turn v into w.
    R is an upper triangle whose columns are in pivoted order.
    """

    is_dense = True

    def __init__(self, given: Standardised) -> None:
        self.n_samples = self.n_coefs = given.n_samples
        self.centre, self._given = given.centre, given
        self._R, pivots, self._rank, _ = dpstrf(given.outer(), overwrite_a=1)
        self._R[self._rank :, self._rank :] = 0.0  # what is left of dependent samples is rounding
        self._order = pivots - 1
        self._place = np.argsort(self._order)

    def scores(self, coef: Vector) -> Vector:
        """Rᵀ·coef, (n,)."""
        return np.asarray(dtrmv(self._R, coef, trans=1)[self._place])

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """R·weights, (n,)."""
        values = weights[self._order].astype(np.float64, copy=False)
        used = np.flatnonzero(values)
        if used.size < FEW * values.size:
            return np.asarray(self._R[:, used] @ values[used])
        return np.asarray(dtrmv(self._R, values))

    def gram(self, weights: Vector) -> NDArray[np.float64]:
        """R·diag(weights)·Rᵀ, (n, n); weights at least 0."""
        return _gram(self._R.T, weights[self._order])

    def as_given(self, coef: Vector) -> Vector:
        """Return coefficients for the original features; scores differ by a constant."""
        used, alpha = self._rank, np.zeros(self.n_samples)
        alpha[self._order[:used]] = solve_triangular(self._R[:used, :used], coef[:used], check_finite=False)
        return self._given.as_given(self._given.combine(alpha))


def _gram(
    X: NDArray[np.floating], weights: Vector, centre: Vector | float = 0.0, rate: Vector | float = 1.0
) -> NDArray[np.float64]:
    """Return Xᵀ·diag(weights)·X, (d, d), of standardised X; weights are at least 0."""
    n, d = X.shape
    result = np.zeros((d, d))
    for part in blocks(n, d, _BLOCK):
        used = part.start + np.flatnonzero(weights[part])
        rows = (X[used] - centre) * rate
        rows *= np.sqrt(weights[used])[:, None]
        result += rows.T @ rows
    return result


def _of_dense(X: NDArray[np.floating]) -> tuple[Vector, Vector]:
    """Return the mean of each column and 1/deviation, or 0 for a constant column."""
    n, largest = len(X), _largest(X)
    if not (largest < _LARGEST / n).all():
        raise ValueError("features are too large to be summed; scale them first")
    # A power of two, which rounds nothing. With it, squares neither overflow nor vanish.
    factor = np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000))
    mean = _sums(X) / n
    mean += _sums(X, mean) / n  # once more, for full precision
    variance = _sums(X, mean, 2, factor) / n
    return mean, _over(np.sqrt(variance) / factor, np.abs(mean) * _CONSTANT)


def _sums(
    X: NDArray[np.floating], centre: Vector | None = None, power: int = 1, factor: Vector | None = None
) -> Vector:
    """Return Σ ((x − centre)·factor)^power of each column, in float64."""
    total = np.zeros(X.shape[1])
    for part in blocks(len(X), X.shape[1], _BLOCK):
        away = X[part] if centre is None else X[part] - centre
        away = away if factor is None else away * factor
        total += (away if power == 1 else away**power).sum(axis=0, dtype=np.float64)
    return total


def _largest(X: NDArray[np.floating]) -> Vector:
    """Return max |x| of each column."""
    largest = np.zeros(X.shape[1])
    for part in blocks(len(X), X.shape[1], _BLOCK):
        np.maximum(largest, np.abs(X[part]).max(axis=0), out=largest)
    return largest


def _of_sparse(X: Any) -> Vector:
    """Return 1/max |x| of each column, or 0 for a column of zeros."""
    largest = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    return _over(largest, np.zeros(largest.size))


def _over(size: Vector, least: Vector) -> Vector:
    """Return 1/size, or 0 where size is not above `least` or too small to divide by."""
    varies = size > least
    used = varies & (size > _SMALLEST)
    if varies.any() and not used.any():
        raise ValueError(f"no feature varies by more than {_SMALLEST:g}, too little to divide by; scale them first")
    return np.where(used, 1.0 / np.where(used, size, 1.0), 0.0)
