"""A feature matrix as the two products that training needs: scores X·v and gradients Xᵀ·g.

Both are summed in float64 whatever the matrix holds, and no product copies more than a block of it: a float32 matrix,
a memory map or a strided view is read a block at a time. Sparse matrices stay sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

# The column whose coefficient makes the intercept, where the loss depends on it: its penalty is a hundredth.
INTERCEPT = 10.0

Vector = NDArray[np.float64]
# Entries of a block: a copy of it in float64 fits into a core's cache.
_BLOCK = 1 << 16
_SPARSE_BLOCK = 1 << 20
# Entries up to this size count as small; those of the largest sums of their multiples of 2⁻⁴⁰ still have all digits.
_SMALL, _GRID = 1024.0, 1.5 * 2.0**12
# Rows are gathered when fewer than this part of them has a weight.
_FEW = 0.2


class Features(Protocol):
    """The products of an (n, d) matrix, with one more column if there is an intercept."""

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


def as_features(X: Any, intercept: float = 0.0, whole: bool | None = None) -> Features:
    """The products of a dense array or a CSR or CSC matrix that was checked already.

    intercept: the value of one more column, if there is one. The larger it is, the less its coefficient is penalised.
    whole: whether all entries are whole numbers, if that is known.
    """
    features: Features = _Dense(X) if isinstance(X, np.ndarray) else _Sparse(X)
    return with_intercept(_Whole(features) if is_whole_numbers(X, whole) else features, intercept)


def is_whole_numbers(X: Any, known: bool | None = None) -> bool:
    """Whether all entries of a matrix are whole numbers, and small; the first block tells of most that are not."""
    if known is not None:
        return known
    entries = X if isinstance(X, np.ndarray) else X.data  # by rows: a view of some columns is not copied
    blocks = (entries[part] for part in _slices(entries.shape[0], entries[:1].size))
    return all(bool(((block == np.rint(block)) & (np.abs(block) <= _SMALL)).all()) for block in blocks)


def on_grid(weights: NDArray[np.floating]) -> tuple[Vector, Vector]:
    """Weights as a sum: multiples of a power of two, of which sums are exact, and what is left."""
    wide: Vector = np.asarray(weights, np.float64)
    even = (wide + _GRID) - _GRID
    return even, wide - even


def with_intercept(features: Features, value: float) -> Features:
    """The same features with one more column of a value, unless it is 0."""
    return _WithIntercept(features, value) if value else features


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
            for part, rows in self._wide_rows():
                np.dot(rows, coef, out=result[part])
        return result

    def _wide_rows(self) -> Iterator[tuple[slice, Vector]]:
        """Blocks of rows in float64, one after the other in the same memory: new memory would cost more than sums."""
        room: Vector | None = None
        for part in _slices(self.n_samples, self.n_coefs):
            room = np.empty((part.stop, self.n_coefs)) if room is None else room
            rows = room[: part.stop - part.start]
            rows[...] = self._X[part]
            yield part, rows

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
        for part, rows in self._wide_rows():
            result += values[part] @ rows
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
        self._blocks, self._transposed = zip(*_sparse_blocks(X), strict=True)

    def scores(self, coef: Vector) -> Vector:
        return _across(self._blocks, coef) if self._by_columns else _along(self._blocks, coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        wide = weights.astype(np.float64, copy=False)
        return _along(self._transposed, wide) if self._by_columns else _across(self._transposed, wide)

    def rows(self, rows: NDArray[np.int64] | slice) -> _Sparse:
        return _Sparse(self._X[rows])


class _Whole:
    """Whole numbers: Xᵀ·weights is summed exactly but for the last digit, so in any order to the same.

    Such features have scores that are equal but for the order of sums, and hinges that see the difference; with this, a
    matrix in parts has the scores of the whole one. Gradients of a risk add up to at most 4, entries are small.
    """

    def __init__(self, inner: Features) -> None:
        self._inner = inner
        self.n_samples: int = inner.n_samples
        self.n_coefs: int = inner.n_coefs

    def scores(self, coef: Vector) -> Vector:
        return self._inner.scores(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        even, rest = on_grid(weights)
        return np.asarray(self._inner.combine(even) + self._inner.combine(rest))

    def rows(self, rows: NDArray[np.int64] | slice) -> _Whole:
        return _Whole(self._inner.rows(rows))


class _WithIntercept:
    """One more column, of one value."""

    def __init__(self, inner: Features, value: float) -> None:
        self._inner, self._value = inner, value
        self.n_samples: int = inner.n_samples
        self.n_coefs: int = inner.n_coefs + 1

    def scores(self, coef: Vector) -> Vector:
        return np.asarray(self._inner.scores(coef[:-1]) + self._value * coef[-1])

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        return np.append(self._inner.combine(weights), self._value * weights.sum(dtype=np.float64))

    def rows(self, rows: NDArray[np.int64] | slice) -> _WithIntercept:
        return _WithIntercept(self._inner.rows(rows), self._value)


def _slices(length: int, width: int) -> Iterator[slice]:
    """Slices of a length, each of about a block of entries."""
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _along(blocks: tuple[Any, ...], vector: Vector) -> Vector:
    """Blocks lie one after the other in the result."""
    parts = [block @ vector for block in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _across(blocks: tuple[Any, ...], vector: Vector) -> Vector:
    """Blocks take their parts of the vector, and their results are added up."""
    result, start = np.zeros(blocks[0].shape[0]), 0
    for block in blocks:
        result += block @ vector[start : start + block.shape[1]]
        start += block.shape[1]
    return result


def _sparse_blocks(X: Any) -> Iterator[tuple[Any, Any]]:
    """A CSR matrix by rows, or a CSC one by columns, in blocks that share its memory, each with its transpose."""
    length, width = X.shape[::-1] if X.format == "csc" else X.shape
    most = X.nnz if X.dtype == np.float64 else _SPARSE_BLOCK
    start = 0
    while True:
        stop = int(np.searchsorted(X.indptr, int(X.indptr[start]) + most, side="right")) - 1
        stop = min(max(stop, start + 1), length)
        first, last = X.indptr[start], X.indptr[stop]
        parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
        by_rows = _of_parts(csr_matrix, (stop - start, width), *parts)
        by_columns = _of_parts(csc_matrix, (width, stop - start), *parts)
        yield (by_columns, by_rows) if X.format == "csc" else (by_rows, by_columns)
        start = stop
        if start == length:
            return


def _of_parts(kind: Any, shape: tuple[int, int], data: Any, indices: Any, indptr: Any) -> Any:
    """A matrix of these very arrays. Given to the constructor, views would be copied and wide indices narrowed."""
    matrix = kind(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
