"""The solver on data at the edge: few samples, huge C, features of other units, and bounds that rounding moves."""

from __future__ import annotations

import numpy as np
import pytest
from linear_problems import assert_true_certificate, draw, objective_of
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise.linear.cutting_plane import Settings, SolverResult, cutting_plane


def edge_cases(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    relevant = rng.random(60) < 0.3
    relevant[:2] = True, False
    X = rng.normal(size=(60, 4))
    X[:, 0] += relevant
    one = np.arange(60) == 17
    return {
        "zeros": (np.zeros((60, 3)), relevant),
        "constants": (np.full((60, 3), 0.1), relevant),
        "a constant among others": (np.column_stack([X, np.full(60, 1e3)]), relevant),
        "duplicated rows": (np.repeat(X, 3, axis=0), np.repeat(relevant, 3)),
        "duplicates of both classes": (np.repeat(X, 2, axis=0), np.arange(120) % 2 == 0),
        "duplicated columns": (np.hstack([X, X, X]), relevant),
        "one feature": (X[:, :1], relevant),
        "one positive": (X, one),
        "one negative": (X, ~one),
        "two samples": (X[:2], relevant[:2]),
        "separable": (X + 20.0 * relevant[:, None], relevant),
        "more features than samples": (rng.normal(size=(20, 200)), np.arange(20) < 5),
        "integers": (np.round(X), relevant),
        "huge": (1e6 * X, relevant),
        "tiny": (1e-6 * X, relevant),
        "huge and tiny": (X * np.array([1e3, 1.0, 1e-3, 1e-6]), relevant),
        "far from the origin": (X + 1e6, relevant),
        "float32": (X.astype(np.float32), relevant),
    }


EDGES = tuple(edge_cases(np.random.default_rng(0)))


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2], ids=["C small", "C natural", "C large"])
@pytest.mark.parametrize("loss", ["ap", "auc"])
@pytest.mark.parametrize("name", EDGES)
def test_data_at_the_edge_are_fitted(name: str, loss: str, C: float, rng: np.random.Generator) -> None:
    """C is relative to the largest squared feature away from its mean."""
    X, relevant = edge_cases(rng)[name]
    objective = objective_of(X, relevant, loss)
    spread = float(np.ptp(X.astype(np.float64), axis=0).max())
    C = C / spread**2 if spread > 0 else C
    result = cutting_plane(objective, C, Settings(tol=1e-3, max_iter=2000))
    assert np.isfinite(result.coef).all()
    assert result.converged, result.reason
    assert_true_certificate(objective, C, result)


@pytest.mark.parametrize("loss", ["ap", "auc"])
def test_where_features_say_nothing_the_model_is_nothing(loss: str, rng: np.random.Generator) -> None:
    relevant = rng.random(40) < 0.3
    result = cutting_plane(objective_of(np.zeros((40, 3)), relevant, loss), 10.0, Settings(tol=1e-6))
    assert result.converged
    np.testing.assert_array_equal(result.coef, np.zeros(3))


@pytest.mark.parametrize("apart", [3.0, 12.0, 40.0])
@pytest.mark.parametrize(
    ("unit", "C"), [(1.0, 1.0), (1.0, 1e4), (1.0, 1e8), (1.0, 1e10), (1e3, 1e4), (1e3, 1e6), (1e5, 1.0), (1e5, 100.0)]
)
def test_a_large_C_and_a_feature_of_another_unit_are_borne(
    C: float, unit: float, apart: float, rng: np.random.Generator
) -> None:
    """Where classes are apart the weights α fall as 1/C, all but that of risk ≥ 0; rounding must not lose them."""
    for loss in ("ap", "auc"):
        X, relevant = rng.normal(size=(200, 4)) * [1.0, 1.0, 1.0, unit], rng.random(200) < 0.3
        X[:, 0] += apart * relevant
        objective = objective_of(X, relevant, loss)
        result = cutting_plane(objective, C, Settings(tol=1e-3, max_iter=1000))
        assert result.converged, result.reason
        assert_true_certificate(objective, C, result)


def test_rank_svm_warns_where_rounding_stops_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=60) > 0
    model = rw.RankSVM(C=1e20)
    said = r"gap of \d.*tol=0.001: rounding errors prevent progress; raise tol, lower C"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X, y)
    assert not model.converged_


def test_a_risk_below_0_by_rounding_proves_nothing(rng: np.random.Generator) -> None:
    result = SolverResult(draw(rng), Settings(tol=1e-3), 1e14, np.zeros(5))
    v = np.full(5, 0.1)
    result.offer(v, -4e-15)  # at a C so large, C·risk is −0.4
    assert result.primal == 0.5 * float(v @ v)
    assert not result.converged
