"""Bags: lists, arrays, maps, sparse matrices and datasets give the same; what is wrong is named; memory is bounded."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csc_matrix, csr_array, csr_matrix
from threadpoolctl import threadpool_limits

import rankwise as rw
from rankwise.latent import Bags, blocks, cccp
from rankwise.latent.bags import as_bags, bag_means

Array = NDArray[np.float64]
SIZES = np.array([3, 1, 5, 2, 4, 1, 6, 2, 3, 3] * 3)
N, WIDTH = int(SIZES.sum()), 7
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
Y = np.arange(SIZES.size) % 3 == 0


def matrix() -> Array:
    """Small integers, a third of them 0: every form holds them exactly, and products are exact."""
    rng = np.random.default_rng(11)
    values = np.where(rng.random((N, WIDTH)) < 0.3, 0.0, rng.integers(-9, 10, (N, WIDTH)))
    values[OFFSETS[:-1][Y], 0] += 20.0
    return values


def _mapped(folder: Path, values: NDArray[Any]) -> Any:
    np.save(folder / "features.npy", values)
    return np.load(folder / "features.npy", mmap_mode="r")


def _part_of_a_map(folder: Path, values: NDArray[Any]) -> Any:
    """Rows in the middle of a map, whose first byte is on no page's edge."""
    return _mapped(folder, np.concatenate([np.full((3, WIDTH), np.nan), values, values]))[3 : 3 + N]


def _h5(folder: Path, values: NDArray[Any]) -> Any:
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "features.h5", "w").create_dataset("x", data=values.astype(np.float32), chunks=(16, 3))


def _zarr(folder: Path, values: NDArray[Any]) -> Any:
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(folder / "features.zarr"), shape=values.shape, chunks=(10, 4), dtype="f8")
    stored[:] = values
    return stored


FORMS: dict[str, Callable[[Path, Array], Any]] = {
    "array": lambda folder, X: X,
    "float32": lambda folder, X: X.astype(np.float32),
    "float16": lambda folder, X: X.astype(np.float16),
    "int8": lambda folder, X: X.astype(np.int8),
    "big-endian": lambda folder, X: X.astype(">f8"),
    "fortran": lambda folder, X: np.asfortranarray(X),
    "strided": lambda folder, X: np.repeat(X, 2, axis=1)[:, ::2],
    "nested lists": lambda folder, X: X.tolist(),
    "map": _mapped,
    "float32 map": lambda folder, X: _mapped(folder, X.astype(np.float32)),
    "part of a map": _part_of_a_map,
    "csr": lambda folder, X: csr_matrix(X),
    "csr float32": lambda folder, X: csr_matrix(X.astype(np.float32)),
    "csr array": lambda folder, X: csr_array(X),
    "csc": lambda folder, X: csc_matrix(X),
    "coo": lambda folder, X: coo_matrix(X),
    "h5py": _h5,
    "zarr": _zarr,
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FORMS[request.param](tmp_path, matrix())


def dense(part: Any) -> Array:
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float64)


KEYS: dict[str, Any] = {
    "all": slice(None),
    "slice": slice(3, 25, 4),
    "backwards": slice(None, None, -1),
    "numbers": np.array([5, 0, 29, 5, 6, 7]),
    "negative": [-1, -30, 3],
    "mask": Y,
    "none": [],
    "mask of none": np.zeros(30, bool),
}


@cache
def model_of_an_array(entries: int) -> rw.LatentRankSVM:
    """The model of the plain array, where so many entries are few enough for all candidates to be used."""
    assert entries == cccp._SMALL
    return rw.LatentRankSVM(C=0.1, init="first", tol=0.01).fit(Bags(matrix(), OFFSETS), Y)


@pytest.mark.slow
def test_every_form_gives_the_same_products_and_the_same_model(
    form: Any, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if route == "working set":  # of many blocks, too
        for name, size in (("_BLOCK", 300), ("_AT_ONCE", 5)):
            monkeypatch.setattr(blocks, name, size)
    X, bags = matrix(), Bags(form, OFFSETS)
    coef = np.arange(1.0, WIDTH + 1)
    assert (len(bags), bags.width, bags.n_candidates, bags.shape) == (30, WIDTH, N, (30,))
    for name, key in KEYS.items():
        part = bags[key]
        chosen = np.arange(30)[key if not isinstance(key, list) else np.array(key, int)]
        rows = np.concatenate([np.arange(OFFSETS[i], OFFSETS[i + 1]) for i in chosen] or [np.zeros(0, int)])
        np.testing.assert_array_equal(part.sizes, SIZES[chosen], err_msg=name)
        for n_threads in (1, 3):
            np.testing.assert_array_equal(part.scores(coef, n_threads), X[rows] @ coef)
        np.testing.assert_array_equal(dense(blocks.take_rows(part.features, rows[::-1])), X[rows[::-1]])
        for i, bag in zip(chosen, part, strict=True):
            np.testing.assert_array_equal(dense(bag), X[OFFSETS[i] : OFFSETS[i + 1]])
        np.testing.assert_array_equal(part.offsets, np.concatenate([[0], np.cumsum(SIZES[chosen])]))
    for i in (0, 7, -1, np.int64(3)):
        np.testing.assert_array_equal(dense(bags[i]), X[OFFSETS[:-1][i] : OFFSETS[1:][i]])
    np.testing.assert_array_equal(dense(blocks.take_rows(bags.features, np.array([4, 4, 2]))), X[[4, 4, 2]])
    np.testing.assert_array_equal(blocks.read_rows(bags.features, OFFSETS[2], OFFSETS[3]), X[OFFSETS[2] : OFFSETS[3]])
    means = [X[start:stop].mean(axis=0) for start, stop in itertools.pairwise(OFFSETS)]
    np.testing.assert_allclose(dense(bag_means(bags[::-2])), means[::-2], atol=1e-6)
    plain, model = model_of_an_array(cccp._SMALL), rw.LatentRankSVM(C=0.1, init="first", tol=0.01).fit(bags, Y)
    assert plain.coef_.any()
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.best_candidate(bags), plain.best_candidate(Bags(X, OFFSETS)))


def test_a_list_an_array_of_three_dimensions_and_bags_are_one() -> None:
    X = matrix()
    bags = [X[start:stop] for start, stop in itertools.pairwise(OFFSETS)]
    mixed: Any = [csr_matrix(bag) if i % 2 else bag.tolist() for i, bag in enumerate(bags)]
    boxed = np.empty(30, object)
    boxed[:] = bags
    for form in (bags, tuple(bags), mixed, boxed, [bag.astype(int) if i % 2 else bag for i, bag in enumerate(bags)]):
        found = as_bags(form)
        np.testing.assert_array_equal(dense(found.features), X)
        np.testing.assert_array_equal(found.offsets, OFFSETS)
    cube = X[:60].reshape(10, 6, WIDTH)
    np.testing.assert_array_equal(as_bags(cube).features, X[:60])
    assert as_bags(cube).sizes.tolist() == [6] * 10
    whole = Bags(X, OFFSETS)
    assert as_bags(whole) is whole
    assert whole[::2][1:].features is X
    assert repr(whole) == f"Bags(30 bags, {N} candidates, {WIDTH} features)"
    again = pickle.loads(pickle.dumps(whole[3:5]))
    np.testing.assert_array_equal(again.scores(np.ones(WIDTH)), whole[3:5].scores(np.ones(WIDTH)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_give_the_same_bits(dtype: type, rng: np.random.Generator) -> None:
    X = rng.normal(size=(40_000, 61)).astype(dtype)
    bags, coef = Bags(X, np.arange(0, 40_001, 100)), rng.normal(size=61)
    with threadpool_limits(1):
        one = bags.scores(coef)
    np.testing.assert_allclose(one, X.astype(np.float64) @ coef, rtol=0, atol=1e-11)
    with threadpool_limits(2):  # of the linear algebra itself
        for n_threads in (1, 2, 3):
            np.testing.assert_array_equal(bags.scores(coef, n_threads), one)
            np.testing.assert_array_equal(bags[1::2].scores(coef, n_threads), bags[1::2].scores(coef))


PASS = """
import sys, resource
import numpy as np
import rankwise as rw
from rankwise.latent import Bags
y = np.arange(1500) % 10 == 0
rw.LatentRankSVM(C=1.0).fit(np.random.default_rng(0).normal(size=(40, 3, 2)), np.arange(40) % 4 == 0)
bags = Bags(np.load(sys.argv[1], mmap_mode="r"), np.arange(1501) * 125)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for n_threads in 1, 2:
    model = rw.LatentRankSVM(C=1.0, init="first", tol=0.05, max_outer=3, n_threads=n_threads).fit(bags, y)
    model.best_candidate(bags)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, model.timing_["passes"])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured as Linux counts it")
def test_a_fit_over_a_mapped_file_holds_a_small_part_of_it(tmp_path: Path) -> None:
    features = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (187_500, 64))  # 48 MB
    rng = np.random.default_rng(3)
    block = rng.normal(size=(37_500, 64)).astype(np.float32)
    for start in range(0, 187_500, 37_500):
        features[start : start + 37_500] = np.roll(block, start // 1000, axis=1)
    features[np.arange(0, 187_500, 1250), 0] += 9.0
    features.flush()
    del features
    command = [sys.executable, "-c", PASS, str(tmp_path / "x.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    of_one_thread, of_two = done.stdout.splitlines()
    for line in (of_one_thread, of_two):
        grown, passes = map(int, line.split())
        assert passes >= 3
        assert grown < 20_000  # KB: scores, a few blocks and the working set
