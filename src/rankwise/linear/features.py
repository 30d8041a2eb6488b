"""A feature matrix as the two products that training needs: scores X·v and gradients Xᵀ·g.

Both are summed in float64 whatever the matrix holds, and no product copies more than a block of it: a float32 matrix,
a memory map or a strided view is read a block at a time. Sparse matrices stay sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Features", "as_features"]

Vector = NDArray[np.float64]
# Entries of a block: a copy of it in float64 fits into a core's cache.
_BLOCK = 1 << 16
_SPARSE_BLOCK = 1 << 20
# Rows are gathered when fewer than this part of them has a weight.
_FEW = 0.2


class Features(Protocol):
    """The products of an (n, d) matrix, with one more column of ones if there is an intercept."""

    n_samples: int
    n_coefs: int

    def scores(self, coef: Vector) -> Vector:
        """X·coef, (n,)."""
        ...

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Xᵀ·weights, (d,)."""
        ...

    def rows(self, rows: NDArray[np.int64] | slice) -> Features:
        """The same of some rows."""
        ...


def as_features(X: Any, intercept: bool = False) -> Features:
    """The products of a dense array or a CSR or CSC matrix that was checked already."""
    features = _Dense(X) if isinstance(X, np.ndarray) else _Sparse(X)
    return _WithIntercept(features) if intercept else features


class _Dense:
    def __init__(self, X: NDArray[np.floating]) -> None:
        self._X = np.asarray(X)  # a memory map without its class, whose slices are slow
        self.n_samples: int = self._X.shape[0]
        self.n_coefs: int = self._X.shape[1]
        whole = self._X.dtype == np.float64 and (self._X.flags.c_contiguous or self._X.flags.f_contiguous)
        self._whole = whole and self._X.dtype.isnative
        self._by_columns = self._X.flags.f_contiguous and not self._X.flags.c_contiguous

    def scores(self, coef: Vector) -> Vector:
        if self._whole:
            return self._X @ coef
        result = np.zeros(self.n_samples)
        if self._by_columns:
            for part in _slices(self.n_coefs, self.n_samples):
                result += self._X[:, part].astype(np.float64) @ coef[part]
        else:
            for part in _slices(self.n_samples, self.n_coefs):
                result[part] = self._X[part].astype(np.float64) @ coef
        return result

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        values: Vector = np.asarray(weights, np.float64)
        if self._by_columns:
            if self._whole:
                return values @ self._X
            parts = _slices(self.n_coefs, self.n_samples)
            return np.concatenate([values @ self._X[:, part].astype(np.float64) for part in parts])
        used = np.flatnonzero(values)
        if used.size < _FEW * self.n_samples:
            return self._gathered(used, values)
        if self._whole:
            return values @ self._X
        result = np.zeros(self.n_coefs)
        for part in _slices(self.n_samples, self.n_coefs):
            result += values[part] @ self._X[part].astype(np.float64)
        return result

    def _gathered(self, used: NDArray[np.intp], weights: Vector) -> Vector:
        result = np.zeros(self.n_coefs)
        for part in _slices(used.size, self.n_coefs):
            chosen = used[part]
            result += weights[chosen] @ self._X[chosen].astype(np.float64, copy=False)
        return result

    def rows(self, rows: NDArray[np.int64] | slice) -> _Dense:
        return _Dense(self._X[rows])


class _Sparse:
    def __init__(self, X: Any) -> None:
        self._X = X
        self.n_samples: int = X.shape[0]
        self.n_coefs: int = X.shape[1]
        self._by_columns = X.format == "csc"
        self._blocks = [X] if X.dtype == np.float64 else list(_sparse_blocks(X))

    def scores(self, coef: Vector) -> Vector:
        return self._along(coef) if not self._by_columns else self._across(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        values: Vector = np.asarray(weights, np.float64)
        if not self._by_columns:
            return self._across(values, transposed=True)
        return self._along(values, transposed=True)

    def _along(self, vector: Vector, transposed: bool = False) -> Vector:
        """Blocks lie one after the other in the result."""
        parts = [(block.T if transposed else block) @ vector for block in self._blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _across(self, vector: Vector, transposed: bool = False) -> Vector:
        """Blocks take their parts of the vector, and their results are added up."""
        result, start = 0.0, 0
        for block in self._blocks:
            product = block.T if transposed else block
            result = result + product @ vector[start : start + product.shape[1]]
            start += product.shape[1]
        return np.asarray(result)

    def rows(self, rows: NDArray[np.int64] | slice) -> _Sparse:
        return _Sparse(self._X[rows])


class _WithIntercept:
    """One more column, of ones."""

    def __init__(self, inner: _Dense | _Sparse | _WithIntercept) -> None:
        self._inner = inner
        self.n_samples: int = inner.n_samples
        self.n_coefs: int = inner.n_coefs + 1

    def scores(self, coef: Vector) -> Vector:
        return np.asarray(self._inner.scores(coef[:-1]) + coef[-1])

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        return np.append(self._inner.combine(weights), weights.sum(dtype=np.float64))

    def rows(self, rows: NDArray[np.int64] | slice) -> _WithIntercept:
        return _WithIntercept(self._inner.rows(rows))


def _slices(length: int, width: int) -> Iterator[slice]:
    """Slices of a length, each of about a block of entries."""
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _sparse_blocks(X: Any) -> Iterator[Any]:
    """A CSR matrix by rows, or a CSC one by columns, in blocks that share its memory."""
    by_columns = X.format == "csc"
    length = X.shape[1] if by_columns else X.shape[0]
    start = 0
    while start < length or length == 0:
        stop = int(np.searchsorted(X.indptr, X.indptr[start] + _SPARSE_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), length)
        first, last = X.indptr[start], X.indptr[stop]
        parts = (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)
        shape = (X.shape[0], stop - start) if by_columns else (stop - start, X.shape[1])
        yield type(X)(parts, shape=shape, copy=False)
        start = stop
