"""Matrices of every layout and type give one model, and are neither copied nor changed."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import rankwise as rw

ATOL = 1e-9
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


LAYOUTS = {
    "float64-F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32-F": lambda X: np.asfortranarray(X, np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "csr_array": sp.csr_array,
    "csc-float32": lambda X: sp.csc_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_and_types_give_one_model_and_are_left_alone(cancer: Data, layout: str) -> None:
    X, y = cancer
    X = np.round(X * 64) / 64  # float32 holds these
    X[np.abs(X) < 0.25] = 0.0
    expected = rw.RankSVM(C=1.0, tol=1e-7).fit(X, y)
    given = LAYOUTS[layout](X)
    before = pickle.dumps(given)
    model = rw.RankSVM(C=1.0, tol=1e-7).fit(given, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-3)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(given), model.decision_function(X), atol=ATOL)
    assert pickle.dumps(given) == before


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_is_not_copied(order: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((25_000, 1000), np.float32, order=order)
    X[:, :20] = rng.normal(size=(25_000, 20))
    y = X[:, 0] + rng.normal(size=25_000) > 1.0
    rw.RankSVM(tol=0.5).fit(X[:100], y[:100])  # whatever is imported and compiled once
    tracemalloc.start()
    try:
        rw.RankSVM(C=1.0, tol=0.5).fit(X, y).decision_function(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nbytes == 100_000_000
    assert peak < 10_000_000


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_sparse_matrix_is_never_dense(kind: str) -> None:
    rng = np.random.default_rng(0)
    n, d, entries = 200_000, 100_000, 600_000
    places = rng.integers(0, n, entries), rng.integers(0, d, entries)
    X = sp.coo_array((rng.normal(size=entries), places), shape=(n, d)).asformat(kind)
    y = np.zeros(n, int)
    y[places[0][places[1] < 5000]] = 1
    model = rw.RankSVM(C=1.0, tol=0.3).fit(X, y)
    assert model.decision_function(X).shape == (n,)
    assert model.coef_.shape == (1, d)
