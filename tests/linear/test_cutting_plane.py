"""The solver finds the minimum of the quadratic programme with every ranking in it, and its proofs are true."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from linear_problems import FINE_TOL, ROUNDING, RTOL, assert_true_certificate, draw, objective_of
from sklearn.datasets import load_digits, load_svmlight_file

import rankwise as rw
from rankwise.linear.cutting_plane import Settings, Step, cutting_plane
from rankwise.linear.objective import Evaluation, Objective
from rankwise.linear.path import natural_C, solve_path
from rankwise.metrics.registry import as_loss

# --- Against the quadratic programme with all interleavings


def all_planes(X: np.ndarray, relevant: np.ndarray, loss: rw.Loss) -> tuple[np.ndarray, np.ndarray]:
    """Offset and normal of every interleaving of one query, for every order of the positives, by the definition."""
    P, N = int(relevant.sum()), int((~relevant).sum())
    negatives = np.flatnonzero(~relevant)
    offsets, normals = [], []
    for positives in itertools.permutations(np.flatnonzero(relevant)):
        for ranks in itertools.product(range(1, P + 2), repeat=N):
            ranking = rw.Interleaving(np.array(ranks), np.array(positives), negatives)
            place = np.argsort(ranking.order())
            swapped = (np.sign(place[None, ~relevant] - place[relevant, None]) - 1) / (P * N)  # R − R*
            normals.append(swapped.sum(axis=1) @ X[relevant] - swapped.sum(axis=0) @ X[~relevant])
            offsets.append(float(loss.of_counts(ranking.above, N)))
    planes = np.unique(np.column_stack([offsets, normals]), axis=0)
    return planes[:, 0], planes[:, 1:]


def optimum_by_clarabel(queries: list[tuple[np.ndarray, np.ndarray]], weights: np.ndarray, C: float) -> float:
    """min ½‖v‖² + C Σ ω_q ξ_q with ξ_q ≥ offset + normal·v for every plane of query q; v scaled by √C."""
    d, n_queries, root = queries[0][1].shape[1], len(queries), np.sqrt(C)
    rows = []
    for q, (offsets, normals) in enumerate(queries):
        slack = np.zeros((offsets.size, n_queries))
        slack[:, q] = -1.0
        rows.append(np.hstack([root * normals, slack]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.diag(np.append(np.ones(d), np.zeros(n_queries)))),
        np.append(np.zeros(d), weights),
        sp.csc_matrix(np.vstack(rows)),
        -np.concatenate([offsets for offsets, _ in queries]),
        [clarabel.NonnegativeConeT(sum(offsets.size for offsets, _ in queries))],
        settings,
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    return C * solution.obj_val


SMALL: dict[str, list[tuple[int, int]]] = {"P3-N4": [(3, 4)], "two queries": [(2, 3), (3, 2)]}


@cache
def small_problem(sizes: str, loss: str) -> tuple[Objective, list[tuple[np.ndarray, np.ndarray]]]:
    rng = np.random.default_rng(7)
    parts, planes = [], []
    for n_pos, n_neg in SMALL[sizes]:
        relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        X = rng.normal(size=(n_pos + n_neg, 3))
        parts.append((X, relevant))
        planes.append(all_planes(X, relevant, as_loss(loss)))
    qid = np.repeat(np.arange(len(parts)), [relevant.size for _, relevant in parts])
    weight = np.repeat(np.arange(1.0, len(parts) + 1), [relevant.size for _, relevant in parts])
    shuffle = rng.permutation(qid.size)
    X, relevant = np.vstack([X for X, _ in parts])[shuffle], np.concatenate([y for _, y in parts])[shuffle]
    return objective_of(X, relevant, loss, qid[shuffle], query_weight=weight[shuffle]), planes


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc"])
@pytest.mark.parametrize("sizes", SMALL)
def test_the_minimum_is_that_of_the_programme_with_every_ranking(sizes: str, loss: str, C: float) -> None:
    objective, planes = small_problem(sizes, loss)
    optimum = optimum_by_clarabel(planes, objective.task.weights, C)
    result = cutting_plane(objective, C, Settings(tol=RTOL / 10, max_iter=5000))
    assert result.converged
    assert result.primal == pytest.approx(optimum, rel=RTOL)
    assert result.dual <= optimum * (1 + RTOL)


# --- On data


Find = Callable[[str], Path]


def read(path: Path, **options: Any) -> Any:
    with gzip.open(path, "rb") as file:
        return load_svmlight_file(file, **options)


def digits(loss: str, find: Find) -> Objective:
    X, y = load_digits(return_X_y=True)
    return objective_of(X / 16.0, y == 8, loss)


def mq2008(loss: str, find: Find) -> Objective:
    X, grade, qid = read(find("mq2008-fold1/train.txt.gz"), query_id=True)
    return objective_of(X.toarray(), grade >= 1, loss, qid)


def w8a(loss: str, find: Find) -> Objective:
    X, y = read(find("w8a.gz"))
    return objective_of(X, y > 0, loss)


TASKS: dict[str, tuple[Callable[[str, Find], Objective], str, float]] = {
    "digits-ap": (digits, "ap", 1000.0),
    "mq2008-ndcg": (mq2008, "ndcg", 30.0),
    "w8a-ap": (w8a, "ap", 100.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_bounds_on_data_hold_the_optimum(task: str, data_file: Find) -> None:
    make, loss, C = TASKS[task]
    objective = make(loss, data_file)
    fine = cutting_plane(objective, C, Settings(tol=FINE_TOL))
    assert fine.converged
    for bound in (fine.history["dual"], -fine.history["primal"]):
        assert np.all(np.diff(bound) >= 0.0)
    assert np.all(fine.history["dual"] <= fine.primal * (1 + ROUNDING))
    assert np.all(fine.history["primal"] >= fine.dual * (1 - ROUNDING))
    assert_true_certificate(objective, C, fine)


# --- History, warm starts, ends


@pytest.mark.parametrize("n_queries", [1, 7], ids=["one query", "queries"])
def test_history_only_improves_and_says_what_the_result_says(n_queries: int, rng: np.random.Generator) -> None:
    C = 10.0
    objective, steps = draw(rng, n_queries=n_queries), list[Step]()
    result = cutting_plane(objective, C, Settings(tol=1e-3, max_iter=400, report=steps.append))
    history = result.history
    assert result.n_iter == len(steps) == history["primal"].size
    assert history["iteration"].tolist() == list(range(1, result.n_iter + 1))
    for name in history:
        assert history[name].tolist() == [getattr(step, name) for step in steps]
    assert np.all(np.diff(history["primal"]) <= 0.0)
    assert np.all(np.diff(history["dual"]) >= 0.0)
    assert np.all(np.diff(history["calls"]) >= 0)
    assert np.all(history["gap"] >= 0.0)
    np.testing.assert_allclose(history["gap"], (history["primal"] - history["dual"]) / history["primal"], atol=ROUNDING)
    assert (history["primal"][-1], history["dual"][-1], history["gap"][-1]) == (result.primal, result.dual, result.gap)
    assert result.converged == (result.gap <= 1e-3)
    assert_true_certificate(objective, C, result)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc", "zero-one"])
def test_bounds_hold_the_optimum_for_every_loss(loss: str, intercept: bool, rng: np.random.Generator) -> None:
    C = 5.0
    objective = draw(rng, n_queries=4, loss=loss, intercept=intercept, surrogate=rw.Hinge(1.5))
    optimum = cutting_plane(objective, C, Settings(tol=1e-9)).primal
    for tol in (1e-3, 1e-4):
        result = cutting_plane(objective, C, Settings(tol=tol, max_iter=300))
        assert_true_certificate(objective, C, result, optimum * (1 - 1e-9))
        assert result.primal == pytest.approx(optimum, rel=tol)


def test_it_never_ends_above_its_start(rng: np.random.Generator) -> None:
    objective, C = draw(rng), 20.0
    best = cutting_plane(objective, C, Settings(tol=1e-6))
    result = cutting_plane(objective, C, Settings(tol=1e-4, max_iter=2, start=best.coef))
    assert result.primal <= best.primal
    assert_true_certificate(objective, C, result, best.primal * (1 - 1e-6))


def test_along_a_path_results_are_those_of_cold_fits_with_fewer_iterations(rng: np.random.Generator) -> None:
    objective, settings = draw(rng, n=400, d=20, n_queries=3), Settings(tol=1e-4)
    Cs = natural_C(objective) * np.logspace(-2, 2, 10)
    path, cold = list(solve_path(objective, Cs, settings)), [cutting_plane(objective, C, settings) for C in Cs.tolist()]
    for C, one, other in zip(Cs.tolist(), path, cold, strict=True):
        assert one.converged
        assert one.primal == pytest.approx(other.primal, rel=2e-4)
        assert_true_certificate(objective, C, one)
    assert sum(one.n_iter for one in path) < sum(other.n_iter for other in cold)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_natural_C_follows_the_scale_of_the_features(factor: float, rng: np.random.Generator) -> None:
    X, relevant = rng.normal(size=(50, 3)), rng.random(50) < 0.4
    scaled = natural_C(objective_of(factor * X, relevant))
    assert scaled == pytest.approx(natural_C(objective_of(X, relevant)) / factor**2, rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
def test_constant_features_have_no_natural_C(value: float, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="every feature has the same mean for positives and negatives"):
        natural_C(objective_of(np.full((53, 3), value), rng.random(53) < 0.3))


def test_bounds_may_meet_to_the_last_digit(rng: np.random.Generator) -> None:
    objective = draw(rng)
    result = cutting_plane(objective, 10.0, Settings(tol=1e-16, max_iter=2000))
    assert result.gap <= 1e-12
    assert_true_certificate(objective, 10.0, result)


def test_where_rounding_stops_progress_it_ends_with_that_reason(rng: np.random.Generator) -> None:
    relevant = rng.random(400) < 0.3
    X = rng.normal(size=(400, 4)) * [1.0, 1.0, 1.0, 1e5]
    X[:, 0] += relevant
    objective = objective_of(X, relevant)
    result = cutting_plane(objective, 1e4, Settings(tol=1e-16))
    assert result.n_iter < 2000
    assert not result.converged
    assert result.reason is not None
    assert "rounding" in result.reason
    assert_true_certificate(objective, 1e4, result)


@pytest.mark.parametrize("n_queries", [1, 5], ids=["one query", "queries"])
def test_an_interrupt_at_any_evaluation_leaves_a_true_certificate(
    n_queries: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or, where nothing was found yet, is passed on: there is nothing to return."""
    objective, C = draw(rng, n_queries=n_queries), 10.0
    evaluate, calls = Objective.evaluate, [0]

    def interrupted(self: Objective, v: np.ndarray) -> Evaluation:
        calls[0] += 1
        if calls[0] == last:
            raise KeyboardInterrupt
        return evaluate(self, v)

    for last in range(1, 15):
        calls[0] = 0
        with monkeypatch.context() as patch:
            patch.setattr(Objective, "evaluate", interrupted)
            try:
                result = cutting_plane(objective, C, Settings(tol=1e-9))
            except KeyboardInterrupt:
                assert last == 1
                continue
        assert result.interrupted
        assert np.isfinite(result.primal)
        assert_true_certificate(objective, C, result)
