"""The small quadratic over the simplex: as good as an interior-point solver finds it, from wherever it starts."""

from __future__ import annotations

from collections.abc import Callable

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from rankwise.linear.simplex_qp import Factor, maximise

RTOL = 1e-9  # of the largest entry of Q and c: what is asked for, and what Clarabel gives
SUM_ATOL = 1e-12
SIZES = [1, 2, 3, 5, 10, 25, 60, 100]

Quadratic = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int], Quadratic]


def _of_normals(normals: np.ndarray, c: np.ndarray) -> Quadratic:
    return normals @ normals.T, c


def _bundle(rng: np.random.Generator, k: int, C: float) -> Quadratic:
    """As the cutting plane poses it: planes of offsets within [0, 1], the first of them 0."""
    normals, offsets = rng.normal(size=(k, 6)), rng.random(k)
    normals[0], offsets[0] = 0.0, 0.0
    return _of_normals(C * normals, C * offsets)


FAMILIES: dict[str, Draw] = {
    "full rank": lambda rng, k: _of_normals(rng.normal(size=(k, k + 2)), rng.normal(size=k)),
    "rank 1": lambda rng, k: _of_normals(rng.normal(size=(k, 1)), rng.normal(size=k)),
    "rank 3": lambda rng, k: _of_normals(rng.normal(size=(k, 3)), rng.normal(size=k)),
    "duplicates": lambda rng, k: _of_normals(
        rng.normal(size=(k // 3 + 1, 5))[np.arange(k) % (k // 3 + 1)],
        rng.normal(size=k // 3 + 1)[np.arange(k) % (k // 3 + 1)],
    ),
    "duplicates of other offsets": lambda rng, k: _of_normals(
        rng.normal(size=(k // 3 + 1, 5))[np.arange(k) % (k // 3 + 1)], rng.normal(size=k)
    ),
    "nearly duplicates": lambda rng, k: _of_normals(
        rng.normal(size=(1, 5)) + 1e-8 * rng.normal(size=(k, 5)), 1.0 + 1e-8 * rng.normal(size=k)
    ),
    "zero Q": lambda rng, k: (np.zeros((k, k)), rng.normal(size=k)),
    "zero c": lambda rng, k: _of_normals(rng.normal(size=(k, 4)), np.zeros(k)),
    "nothing but zeros": lambda rng, k: (np.zeros((k, k)), np.zeros(k)),
    "constant c and Q": lambda rng, k: (np.full((k, k), 2.0), np.full(k, 3.0)),
    "huge": lambda rng, k: _of_normals(1e60 * rng.normal(size=(k, 4)), 1e120 * rng.normal(size=k)),
    "tiny": lambda rng, k: _of_normals(1e-60 * rng.normal(size=(k, 4)), 1e-120 * rng.normal(size=k)),
    "huge Q": lambda rng, k: _of_normals(1e6 * rng.normal(size=(k, 4)), rng.normal(size=k)),
    "tiny Q": lambda rng, k: _of_normals(1e-9 * rng.normal(size=(k, 4)), rng.normal(size=k)),
    "many scales": lambda rng, k: _of_normals(
        10.0 ** rng.uniform(-8, 8, size=(k, 1)) * rng.normal(size=(k, 4)), 10.0 ** rng.uniform(-8, 8, k)
    ),
    "bundle, C = 0.01": lambda rng, k: _bundle(rng, k, 1e-2),
    "bundle, C = 1000": lambda rng, k: _bundle(rng, k, 1e3),
}


def value_of(Q: np.ndarray, c: np.ndarray, alpha: np.ndarray) -> float:
    return float(c @ alpha - 0.5 * alpha @ Q @ alpha)


def size_of(Q: np.ndarray, c: np.ndarray) -> float:
    return max(float(np.abs(Q).max()), float(np.abs(c).max()))


def best_by_clarabel(Q: np.ndarray, c: np.ndarray) -> float:
    size = size_of(Q, c) or 1.0
    k = c.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    equal, bounds = np.ones((1, k)), -np.eye(k)
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(Q / size)),
        -c / size,
        sp.csc_matrix(np.vstack([equal, bounds])),
        np.append(1.0, np.zeros(k)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)],
        settings,
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    return -size * solution.obj_val


def starts(rng: np.random.Generator, k: int) -> dict[str, np.ndarray]:
    some = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.3)
    some = some / some.sum() if some.any() else np.eye(k)[0]
    return {"first": np.eye(k)[0], "last": np.eye(k)[-1], "all": np.full(k, 1 / k), "some": some}


@pytest.mark.slow
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_value_is_the_optimum_and_never_below_the_start(name: str, k: int, rng: np.random.Generator) -> None:
    for _ in range(3):
        Q, c = FAMILIES[name](rng, k)
        size = size_of(Q, c)
        best = best_by_clarabel(Q, c)
        for where, start in starts(rng, k).items():
            before = start.copy()
            alpha = maximise(Q, c, start, RTOL * size)
            np.testing.assert_array_equal(start, before)
            assert alpha.shape == (k,)
            assert (alpha >= 0).all(), where
            assert abs(alpha.sum() - 1.0) <= SUM_ATOL, where
            assert value_of(Q, c, alpha) >= best - 2 * RTOL * size, where
            assert value_of(Q, c, alpha) >= value_of(Q, c, start) - 1e-15 * size, where


@pytest.mark.parametrize("name", FAMILIES)
def test_it_ends_where_no_tolerance_can_be_met(name: str, rng: np.random.Generator) -> None:
    for k in SIZES:
        Q, c = FAMILIES[name](rng, k)
        start = np.eye(k)[0]
        alpha = maximise(Q, c, start, 0.0)
        assert abs(alpha.sum() - 1.0) <= SUM_ATOL
        assert value_of(Q, c, alpha) >= value_of(Q, c, start)


@pytest.mark.parametrize(("rank", "n"), [(6, 60), (300, 130)], ids=["few in use", "many in use"])
def test_weights_follow_planes_that_are_added_one_by_one(rank: int, n: int, rng: np.random.Generator) -> None:
    normals, offsets = 30.0 * rng.normal(size=(n, rank)) / np.sqrt(rank), rng.random(n)
    normals[0], offsets[0] = 0.0, 0.0
    Q, c = _of_normals(normals, 30.0 * (offsets + 10.0 * (rank > n)))
    alpha, last, factor = np.ones(1), 0.0, Factor()
    for k in range(2, n + 1):
        part, size = (Q[:k, :k], c[:k]), size_of(Q[:k, :k], c[:k])
        alpha = maximise(*part, np.append(alpha, 0.0), 1e-12 * size, factor)
        assert value_of(*part, alpha) >= last - 1e-15 * size
        last = value_of(*part, alpha)
        assert last == pytest.approx(best_by_clarabel(*part), abs=2 * RTOL * size)
    assert (np.count_nonzero(alpha) > 64) == (len(factor.planes) > 64) == (rank > n)


def test_two_planes_meet_where_arithmetic_says() -> None:
    # max a − ½·4·a² over 0 ≤ a ≤ 1, the other plane being 0: a = 1/4, and the value 1/4 − 1/8.
    alpha = maximise(np.diag([0.0, 4.0]), np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1e-12)
    np.testing.assert_allclose(alpha, [0.75, 0.25], rtol=1e-9)
