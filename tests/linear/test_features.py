"""Both products of a feature matrix are those of float64, whatever the matrix holds and however it lies in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise.linear import features
from rankwise.linear.features import as_features

RTOL = 1e-13  # of Σ |X||v|: only the order of summation may differ
MEGABYTE = 2**20
MOST_ALLOCATED = 6 * MEGABYTE  # by a product, of a matrix ten times as large

Make = Callable[[np.ndarray, Path], Any]


def _map(X: np.ndarray, folder: Path, order: str = "C") -> np.ndarray:
    file = folder / "X.npy"
    np.save(file, np.asarray(X, order=order))
    return np.load(file, mmap_mode="r")


def _spread(X: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """X as every so many rows and columns of a larger matrix, full of what must not be read."""
    larger = np.full((rows * X.shape[0], columns * X.shape[1]), np.nan, X.dtype)
    larger[::rows, ::columns] = X
    return larger[::rows, ::columns]


def _wide_indices(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X: np.ndarray) -> Any:
    """Rows from the last column to the first, every entry as the sum of two."""
    matrix = sp.csr_matrix(X)
    back = np.concatenate([np.arange(b, a, -1) - 1 for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)])
    twice = np.repeat(back.astype(np.int64), 2)
    half = matrix.data[twice] * X.dtype.type(0.5)
    return sp.csr_matrix((half, matrix.indices[twice], 2 * matrix.indptr), shape=X.shape)


DENSE: dict[str, Make] = {
    "C order": lambda X, _: np.ascontiguousarray(X),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "rows apart": lambda X, _: _spread(X, 3, 1),
    "columns apart": lambda X, _: _spread(X, 1, 2),
    "both apart": lambda X, _: _spread(X, 2, 3),
    "rows of a Fortran matrix": lambda X, _: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "rows backwards": lambda X, _: np.ascontiguousarray(X[::-1])[::-1],
    "columns backwards": lambda X, _: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "other byte order": lambda X, _: X.astype(X.dtype.newbyteorder()),
    "memory map": _map,
    "memory map in Fortran order": lambda X, folder: _map(X, folder, "F"),
    "rows of a memory map": lambda X, folder: _map(np.repeat(X, 2, axis=0), folder)[1::2],
}
SPARSE: dict[str, Make] = {
    "CSR": lambda X, _: sp.csr_matrix(X),
    "CSC": lambda X, _: sp.csc_matrix(X),
    "CSR array": lambda X, _: sp.csr_array(X),
    "CSC array": lambda X, _: sp.csc_array(X),
    "CSR of int64": lambda X, _: _wide_indices(sp.csr_matrix(X)),
    "CSC of int64": lambda X, _: _wide_indices(sp.csc_matrix(X)),
    "CSR array of int64": lambda X, _: _wide_indices(sp.csr_array(X)),
    "CSR with unsorted and repeated entries": lambda X, _: _unsorted(X),
}
KINDS = {**DENSE, **SPARSE}
SHAPES = [(1, 1), (1, 7), (40, 1), (57, 13), (13, 57)]
WEIGHTS = {"none": 0.0, "one": None, "few": 0.1, "half": 0.5, "all": 1.0}


def _draw(rng: np.random.Generator, shape: tuple[int, int], dtype: Any = np.float64) -> np.ndarray:
    """A matrix with many zeros, among them whole rows and columns."""
    X = rng.normal(size=shape) * (rng.random(shape) < 0.4)
    X[rng.random(shape[0]) < 0.2] = 0.0
    X[:, rng.random(shape[1]) < 0.2] = 0.0
    return X.astype(dtype)


def _draw_weights(rng: np.random.Generator, n: int, part: float | None) -> np.ndarray:
    weights = rng.normal(size=n)
    weights[rng.random(n) >= part if part is not None else np.arange(n) != n // 2] = 0.0
    return weights


def _assert_products(made: Any, X: np.ndarray, rng: np.random.Generator) -> None:
    """X is the same matrix in float64, C order, with the intercept's column if there is one."""
    assert made.n_coefs == X.shape[1]
    coef = rng.normal(size=X.shape[1])
    scores = made.scores(coef)
    assert scores.shape == (X.shape[0],)
    assert scores.dtype == np.float64
    assert np.all(np.abs(scores - X @ coef) <= RTOL * (np.abs(X) @ np.abs(coef)))
    for name, part in WEIGHTS.items():
        for dtype in (np.float64, np.float32):
            weights = _draw_weights(rng, X.shape[0], part).astype(dtype)
            weights.flags.writeable = False  # as the gradient of a hinge is
            combined = made.combine(weights)
            wide = weights.astype(np.float64)
            assert combined.shape == (X.shape[1],)
            assert combined.dtype == np.float64
            assert np.all(np.abs(combined - wide @ X) <= RTOL * (np.abs(wide) @ np.abs(X))), name


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that asks for this runs with blocks of several sizes."""
    size = {"one block": None, "many blocks": 17}[request.param]
    if size is not None:
        monkeypatch.setattr(features, "_BLOCK", size)
        monkeypatch.setattr(features, "_SPARSE_BLOCK", size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("blocks")
def test_products_are_those_of_float64(kind: str, dtype: Any, rng: np.random.Generator, tmp_path: Path) -> None:
    for shape in SHAPES:
        X = _draw(rng, shape, dtype)
        wide, made = X.astype(np.float64), KINDS[kind](X, tmp_path)
        _assert_products(as_features(made), wide, rng)
        _assert_products(as_features(made, intercept=True), np.hstack([wide, np.ones((shape[0], 1))]), rng)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["C order", "Fortran order", "CSR", "CSC", "CSR array"])
@pytest.mark.parametrize("shape", [(4, 0), (0, 3), (0, 0)], ids=str)
def test_a_matrix_without_rows_or_columns_has_products(
    shape: tuple[int, int], kind: str, dtype: Any, tmp_path: Path
) -> None:
    made = as_features(KINDS[kind](np.zeros(shape, dtype), tmp_path), intercept=True)
    np.testing.assert_array_equal(made.scores(np.append(np.ones(shape[1]), 2.0)), np.full(shape[0], 2.0))
    np.testing.assert_array_equal(made.combine(np.ones(shape[0])), np.append(np.zeros(shape[1]), float(shape[0])))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["CSR", "CSC"])
def test_a_sparse_matrix_of_zeros_has_products_of_zeros(kind: str, dtype: Any, tmp_path: Path) -> None:
    made = as_features(KINDS[kind](np.zeros((6, 4), dtype), tmp_path))
    np.testing.assert_array_equal(made.scores(np.ones(4)), np.zeros(6))
    np.testing.assert_array_equal(made.combine(np.ones(6)), np.zeros(4))


@pytest.mark.parametrize("kind", ["C order", "Fortran order", "CSR", "CSC"])
def test_float32_is_summed_in_float64(kind: str, tmp_path: Path) -> None:
    X = np.array([[2.0**24], [1.0], [1.0], [-(2.0**24)]], np.float32)  # in float32 the ones are lost
    assert as_features(KINDS[kind](X, tmp_path)).combine(np.ones(4))[0] == 2.0
    assert as_features(KINDS[kind](np.ascontiguousarray(X.T), tmp_path)).scores(np.ones(4))[0] == 2.0


def test_no_argument_is_changed(rng: np.random.Generator) -> None:
    X, coef, weights = rng.normal(size=(30, 5)).astype(np.float32), rng.normal(size=5), rng.normal(size=30)
    before = [X.copy(), coef.copy(), weights.copy()]
    for made in (as_features(X), as_features(sp.csr_matrix(X)), as_features(sp.csc_matrix(X), intercept=True)):
        made.scores(np.resize(coef, made.n_coefs))
        made.combine(weights)
    for array, old in zip([X, coef, weights], before, strict=True):
        np.testing.assert_array_equal(array, old)


def _allocated(action: Callable[[], Any]) -> int:
    """The most that was allocated at any time during the action."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LARGE_DENSE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C order": lambda X: X,
    "Fortran order": lambda X: X.reshape(X.shape[::-1]).T,
    "rows backwards": lambda X: X[::-1],
    "every other row": lambda X: X[::2],
}


@pytest.mark.parametrize("part", [0.05, 1.0], ids=["few weights", "all weights"])
@pytest.mark.parametrize("kind", LARGE_DENSE)
def test_a_large_float32_matrix_is_multiplied_a_block_at_a_time(kind: str, part: float) -> None:
    n, d = 60_000, 256
    X = LARGE_DENSE[kind](np.ones((n, d), np.float32))
    assert X.nbytes >= 25 * MEGABYTE
    weights = (np.arange(X.shape[0]) < part * X.shape[0]).astype(np.float64)
    made = as_features(X)
    assert _allocated(lambda: made.scores(np.ones(d))) <= MOST_ALLOCATED
    assert _allocated(lambda: made.combine(weights)) <= MOST_ALLOCATED


@pytest.mark.parametrize("index", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_large_sparse_matrix_is_multiplied_without_a_copy(
    kind: str, dtype: Any, index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_SPARSE_BLOCK", 1 << 17)
    n, d, each = 60_000, 5_000, 100
    X = sp.csr_matrix((n, d), dtype=dtype) if kind == "csr" else sp.csc_matrix((d, n), dtype=dtype)
    X.data, X.indices = np.ones(n * each, dtype), np.tile(np.arange(each, dtype=index) * 50, n)
    X.indptr = np.arange(0, n * each + 1, each, dtype=index)
    made: list[Any] = []
    assert _allocated(lambda: made.append(as_features(X))) <= MOST_ALLOCATED
    assert _allocated(lambda: made[0].scores(np.ones(X.shape[1]))) <= MOST_ALLOCATED
    assert _allocated(lambda: made[0].combine(np.ones(X.shape[0]))) <= MOST_ALLOCATED
