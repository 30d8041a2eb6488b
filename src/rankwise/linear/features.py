"""A feature matrix, seen as the two products that training needs: scores X·v and gradients Xᵀ·g.

Both are summed in float64 whatever the type of the matrix. No product copies more than a block of it: a float32 matrix,
a memory map or a strided view is read block by block. Sparse matrices stay sparse.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from threadpoolctl import ThreadpoolController

# Value of the column whose coefficient gives the intercept, if the loss depends on it. The penalty of the intercept is
# then a hundredth of that of other coefficients.
INTERCEPT = 10.0

Vector = NDArray[np.float64]
# Entries of a block. A copy of it in float64 fits into a core's cache.
_BLOCK = 1 << 16
_SPARSE_BLOCK = 1 << 20
# Entries up to this size count as small. Even the largest sums of their multiples of 2⁻⁴⁰ are exact.
_SMALL, _GRID = 1024.0, 1.5 * 2.0**12
# If fewer than this fraction of the rows has a weight, these rows are gathered first.
FEW = 0.2


class Features(Protocol):
    """The products of an (n, d) matrix, which has one more column if there is an intercept."""

    n_coefs: int

    def scores(self, coef: Vector) -> Vector:
        """X·coef, (n,)."""
        ...

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Xᵀ·weights, (d,)."""
        ...


def as_features(X: Any, intercept: float = 0.0, whole: bool | None = None) -> Features:
    """Wrap a feature matrix for training.

    The matrix is not converted: float32 data and memory maps are read block by block.

    Parameters
    ----------
    X : ndarray, CSR matrix or CSC matrix of shape (n_samples, n_features)
        Features. They must be finite, which is not checked here.
    intercept : float, default 0.0
        Value of one more, constant column, whose coefficient is the intercept divided by this value, such as
        `INTERCEPT`. The larger the value, the less the intercept is penalised. 0 appends no column.
    whole : bool, optional
        Whether all entries are small whole numbers, which are summed exactly. By default this is found out.

    Returns
    -------
    Features
        Features with the attribute n_coefs and two products in float64: `scores`, X·v, and `combine`, Xᵀ·g.

    See Also
    --------
    Objective : Regularised risk of a linear ranker over features.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.linear import as_features
    >>> features = as_features(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> features.scores(np.array([1.0, 1.0])).tolist(), features.combine(np.array([1.0, 0.0])).tolist()
    ([3.0, 7.0], [1.0, 2.0])
    """
    features = _dense(np.asarray(X)) if isinstance(X, np.ndarray) else _sparse(X)  # slices of a memory map are slow
    whole = is_whole_numbers(X) if whole is None else whole
    return with_intercept(_Whole(features) if whole else features, intercept)


def is_whole_numbers(X: Any) -> bool:
    """Return whether all entries of a matrix are small whole numbers. Most others fail in the first block."""
    entries = X if isinstance(X, np.ndarray) else X.data  # by rows, so that a view of some columns is not copied
    each = (entries[part] for part in blocks(entries.shape[0], entries[:1].size))
    return all(bool(((block == np.rint(block)) & (np.abs(block) <= _SMALL)).all()) for block in each)


def on_grid(weights: NDArray[np.floating]) -> tuple[Vector, Vector]:
    """Split weights into multiples of a power of two, whose sums are exact, and the remainder."""
    wide: Vector = np.asarray(weights, np.float64)
    even = (wide + _GRID) - _GRID
    return even, wide - even


def with_intercept(features: Features, value: float) -> Features:
    """Append a constant column to features; nothing is copied. If the value is 0, no column is appended."""
    return _WithIntercept(features, value) if value else features


def _dense(X: NDArray[np.floating]) -> Features:
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    return _Columns(_Rows(X.T), X.shape[1]) if by_columns else _Rows(X)


def _sparse(X: Any) -> Features:
    if X.format == "csr":
        return _SparseRows(X)
    transposed = of_parts(csr_matrix, X.shape[::-1], X.data, X.indices, X.indptr)
    return _Columns(_SparseRows(transposed), X.shape[1])


class _Rows:
    """A dense matrix that is read by rows."""

    def __init__(self, X: NDArray[np.floating]) -> None:
        self._X = X
        self._n, self.n_coefs = X.shape
        self._as_it_is = X.dtype == np.float64 and X.dtype.isnative and (X.flags.c_contiguous or X.flags.f_contiguous)

    def scores(self, coef: Vector) -> Vector:
        if self._as_it_is:
            return np.asarray(self._X @ coef)
        result = np.zeros(self._n)
        for part, rows in self._wide():
            np.dot(rows, coef, out=result[part])
        return result

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        values: Vector = np.asarray(weights, np.float64)
        used = np.flatnonzero(values)
        if used.size < FEW * self._n:
            return self._gathered(used, values)
        if self._as_it_is:
            return np.asarray(values @ self._X)
        result = np.zeros(self.n_coefs)
        for part, rows in self._wide():
            result += values[part] @ rows
        return result

    def _gathered(self, used: NDArray[np.intp], weights: Vector) -> Vector:
        result = np.zeros(self.n_coefs)
        for part in blocks(used.size, self.n_coefs):
            chosen = used[part]
            result += weights[chosen] @ self._X[chosen].astype(np.float64, copy=False)
        return result

    def _wide(self) -> Iterator[tuple[slice, Vector]]:
        """Yield blocks of rows in float64, all in the same memory: allocating it takes longer than the sums."""
        buffer: Vector | None = None
        for part in blocks(self._n, self.n_coefs):
            buffer = np.empty((part.stop, self.n_coefs)) if buffer is None else buffer
            rows = buffer[: part.stop - part.start]
            rows[...] = self._X[part]
            yield part, rows


class _SparseRows:
    """A CSR matrix, as blocks of rows that share its memory: one, unless products would copy its entries."""

    def __init__(self, X: Any) -> None:
        self.n_coefs: int = X.shape[1]
        self._blocks, self._transposed = zip(*_sparse_blocks(X), strict=True)

    def scores(self, coef: Vector) -> Vector:
        return np.concatenate([block @ coef for block in self._blocks])

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        values = weights.astype(np.float64, copy=False)
        result, start = np.zeros(self.n_coefs), 0
        for block in self._transposed:
            result += block @ values[start : start + block.shape[1]]
            start += block.shape[1]
        return result


class _Columns:
    """A matrix that is read by columns, the rows of its transpose."""

    def __init__(self, transposed: Features, n_coefs: int) -> None:
        self._transposed, self.n_coefs = transposed, n_coefs

    def scores(self, coef: Vector) -> Vector:
        return self._transposed.combine(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        return self._transposed.scores(np.asarray(weights, np.float64))


class _Whole:
    """Features that are whole numbers: Xᵀ·weights is summed so that the result does not depend on the order.

    With such features, scores often differ only by the rounding of sums in another order, and hinges react to that
    difference. With exact sums, a matrix that is split into parts gives the scores of the whole matrix. Gradients of a
    risk add up to at most 4, and entries are small.
    """

    def __init__(self, inner: Features) -> None:
        self._inner = inner
        self.n_coefs: int = inner.n_coefs

    def scores(self, coef: Vector) -> Vector:
        return self._inner.scores(coef)

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        even, rest = on_grid(weights)
        return np.asarray(self._inner.combine(even) + self._inner.combine(rest))


class _WithIntercept:
    """Features with one more, constant column."""

    def __init__(self, inner: Features, value: float) -> None:
        self._inner, self._value = inner, value
        self.n_coefs: int = inner.n_coefs + 1

    def scores(self, coef: Vector) -> Vector:
        return np.asarray(self._inner.scores(coef[:-1]) + self._value * coef[-1])

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        return np.append(self._inner.combine(weights), self._value * weights.sum(dtype=np.float64))


def blocks(length: int, width: int, entries: int = _BLOCK) -> Iterator[slice]:
    """Yield slices that cover a length, each with about so many entries."""
    step = max(entries // max(width, 1), 1)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _sparse_blocks(X: Any) -> Iterator[tuple[Any, Any]]:
    """Split a CSR matrix by rows into blocks that share its memory, with their transposes."""
    n, d = X.shape
    most = X.nnz if X.dtype == np.float64 else _SPARSE_BLOCK
    start = 0
    while True:
        stop = int(np.searchsorted(X.indptr, int(X.indptr[start]) + most, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        first, last = X.indptr[start], X.indptr[stop]
        parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
        yield of_parts(csr_matrix, (stop - start, d), *parts), of_parts(csc_matrix, (d, stop - start), *parts)
        start = stop
        if start == n:
            return


def of_parts(kind: Any, shape: tuple[int, int], data: Any, indices: Any, indptr: Any) -> Any:
    """Build a matrix from these very arrays. The constructor would copy views and narrow wide indices."""
    matrix = kind(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


@cache
def _controller() -> Any:
    """Find the thread pools of the loaded libraries, once, since this takes longer than a small product."""
    return ThreadpoolController()


_limit = threading.Lock()
_limited: list[Any] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let BLAS use one thread per product, so that results do not depend on the number of threads.

    Short products are also faster this way. The setting is one of the process: the first user makes it, and the last
    one undoes it.
    """
    with _limit:
        _limited.append(_controller().limit(limits=1) if not _limited else _limited[0])
    try:
        yield
    finally:
        with _limit:
            limits = _limited.pop()
            if not _limited:
                limits.restore_original_limits()
