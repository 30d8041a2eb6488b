"""Matrices of every layout, type and scale give one model, and are neither copied nor changed."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

import rankwise as rw
from rankwise.linear.standardising import Standardised

pytestmark = pytest.mark.usefixtures("short_search")
ATOL = 1e-9
# Rounding is enlarged by solvers that stop at a gain of 1e-5.
ROUNDED = 1e-4
FOLDS = [(np.arange(0, 90, 2), np.arange(1, 90, 2))]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def data() -> Data:
    """Values that float32 holds, some of them 0."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(90, 4)) * 16) / 16
    X[np.abs(X) < 0.25] = 0.0
    return X, (X @ [1.0, -0.5, 0.2, 0.0] + 0.5 * rng.normal(size=90) > 1.0).astype(int)


def scores(X: Any, y: Any, at: Any) -> NDArray[np.float64]:
    return rw.LinearRanker(cv=FOLDS).fit(X, y).decision_function(at)


@pytest.fixture(scope="module")
def plain(data: Data) -> rw.LinearRanker:
    return rw.LinearRanker(cv=FOLDS).fit(*data)


@pytest.fixture(scope="module")
def expected(data: Data, plain: rw.LinearRanker) -> NDArray[np.float64]:
    return plain.decision_function(data[0])


@pytest.fixture(scope="module")
def expected_of_sparse(data: Data) -> NDArray[np.float64]:
    X, y = data
    return scores(sp.csr_array(X), y, X)


def mapped(X: NDArray[Any]) -> Any:
    """The same on disk, in a file that is deleted once nothing reads it."""
    with TemporaryFile() as file:
        np.save(file, X)
        file.flush()
        start = file.tell() - X.nbytes
        return np.memmap(file, X.dtype, "r", offset=start, shape=X.shape)


LAYOUTS = {
    "float64-F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32-F": lambda X: np.asfortranarray(X, np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "mapped": mapped,
    "mapped-float32": lambda X: mapped(X.astype(np.float32)),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "csr_array": sp.csr_array,
    "csc-float32": lambda X: sp.csc_array(X.astype(np.float32)),
}


def content(given: Any) -> bytes:
    parts = vars(given.copy()) if sp.issparse(given) else {}
    arrays = [value for value in parts.values() if isinstance(value, np.ndarray)]
    return pickle.dumps(arrays) if arrays else np.asarray(given).tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_and_types_give_one_model_and_are_left_alone(
    data: Data, expected: Any, expected_of_sparse: Any, layout: str
) -> None:
    X, y = data
    given = LAYOUTS[layout](X)
    before = content(given)
    np.testing.assert_allclose(
        scores(given, y, X), expected_of_sparse if sp.issparse(given) else expected, atol=ROUNDED
    )
    model, plain = (rw.RankSVM(C=1.0, tol=1e-7).fit(one, y) for one in (given, X))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-3)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(given), model.decision_function(X), atol=ATOL)
    assert content(given) == before


def test_sparse_features_are_scaled_by_their_largest_size_and_not_centred(data: Data, expected_of_sparse: Any) -> None:
    X, y = data
    coef = np.array([1.0, -2.0, 0.5, 3.0])
    scaled = X / np.abs(X).max(axis=0)
    for given in (sp.csr_array(X), sp.csc_array(X)):
        features = Standardised(given)
        np.testing.assert_allclose(features.scores(coef), scaled @ coef, atol=ATOL)
        np.testing.assert_allclose(features.combine(X[:, 0]), scaled.T @ X[:, 0], atol=ATOL)
        np.testing.assert_allclose(X @ features.as_given(coef), scaled @ coef, atol=ATOL)
    factors = np.array([1e3, 1e-3, 7.0, 1.0])
    np.testing.assert_allclose(scores(sp.csr_array(X * factors), y, X * factors), expected_of_sparse, atol=ROUNDED)


def test_dense_features_are_centred_and_have_a_deviation_of_one(data: Data, expected: Any) -> None:
    X, y = data
    features = Standardised(X)
    for k in range(4):
        column = features.scores(np.eye(4)[k])
        assert abs(column.mean()) < ATOL
        assert column.std() == pytest.approx(1.0)
    moved = X * [1e3, 1e-3, 7.0, 1.0] + [5.0, 0.0, -1e3, 2.0]
    np.testing.assert_allclose(scores(moved, y, moved), expected, atol=ROUNDED)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-170, 1e170, 1e200, 1e300])
@pytest.mark.parametrize("kind", ["dense", "mapped", "sparse"])
def test_features_of_any_scale_give_one_ranking(
    data: Data, expected: Any, expected_of_sparse: Any, factor: float, kind: str, tmp_path: Path
) -> None:
    X, y = data
    everywhere, one = X * factor, X * [1.0, factor, 1.0, 1.0]
    for scaled in (everywhere, one):
        np.save(tmp_path / "X.npy", scaled)
        given = {"dense": scaled, "mapped": np.load(tmp_path / "X.npy", mmap_mode="r"), "sparse": sp.csr_array(scaled)}
        found = scores(given[kind], y, scaled)
        np.testing.assert_allclose(found, expected_of_sparse if kind == "sparse" else expected, atol=ROUNDED)


def test_a_feature_too_small_for_a_coefficient_is_left_out(data: Data) -> None:
    X, y = data
    model = rw.LinearRanker(cv=FOLDS).fit(X * [1.0, 1.0, 1e-310, 1.0], y)
    assert model.coef_[0, 2] == 0.0
    assert (model.coef_[0, :2] != 0.0).all()


def test_ordinary_features_are_summed_as_ever() -> None:
    X = np.random.default_rng(1).normal(size=(500, 3)) * [1.0, 1e-100, 1e100]
    together = np.column_stack([X, X[:, 0] * 1e-200])  # which is looked at again
    alone, joined = Standardised(X), Standardised(together)
    np.testing.assert_array_equal(joined.rate[:3], alone.rate)
    np.testing.assert_array_equal(joined.centre[:3], alone.centre)
    assert joined.rate[3] * 1e-200 == pytest.approx(joined.rate[0], rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e12 / 3, 1e300])
def test_a_constant_column_has_no_coefficient(data: Data, expected: Any, value: float) -> None:
    X, y = data
    model = rw.LinearRanker(cv=FOLDS).fit(np.column_stack([X, np.full(90, value)]), y)
    assert model.coef_[0, 4] == 0.0
    np.testing.assert_allclose(model.decision_function(np.column_stack([X, np.zeros(90)])), expected, atol=1e-4)


def test_constant_columns_alone_rank_nothing() -> None:
    model = rw.LinearRanker(cv=2).fit(np.full((30, 2), 0.3), np.arange(30) % 3 == 0)
    assert (model.coef_ == 0.0).all()
    assert model.best_score_ == pytest.approx(1 / 3)


@pytest.mark.parametrize("mapped", [False, True])
def test_an_offset_of_1e12_costs_only_its_digits(
    data: Data, plain: rw.LinearRanker, tmp_path: Path, mapped: bool
) -> None:
    X, y = data
    far = X.copy()
    far[:, 0] += 1e12
    np.save(tmp_path / "far.npy", far)
    given = np.load(tmp_path / "far.npy", mmap_mode="r") if mapped else far
    model = rw.LinearRanker(cv=FOLDS).fit(given, y)
    near = plain
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=0.05, atol=0.02)
    found = average_precision_score(y, model.decision_function(far))
    assert found == pytest.approx(average_precision_score(y, near.decision_function(X)), abs=0.02)
    assert model.score(far, y) == pytest.approx(near.score(X, y), abs=0.05)


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
