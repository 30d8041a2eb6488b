"""Risks to minimise, and what the proof of a minimum must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankwise.linear.cutting_plane import SolverResult
from rankwise.linear.features import as_features
from rankwise.linear.objective import Objective
from rankwise.linear.task import pose
from rankwise.metrics.registry import as_loss

RTOL = 1e-5  # against the whole quadratic programme
FINE_TOL = 1e-7
ROUNDING = 1e-9


def objective_of(X: Any, relevant: np.ndarray, loss: str = "ap", qid: Any = None, **options: Any) -> Objective:
    return Objective(as_features(X, options.pop("intercept", False)), pose(relevant, as_loss(loss), qid, **options))


def draw(rng: np.random.Generator, n: int = 150, d: int = 5, n_queries: int = 1, **options: Any) -> Objective:
    relevant = rng.random(n) < 0.3
    relevant[:2] = True, False
    X = rng.normal(size=(n, d))
    X[:, 0] += relevant
    qid = None if n_queries == 1 else rng.integers(0, n_queries, n)
    return objective_of(X, relevant, options.pop("loss", "ap"), qid, **options)


def fresh_primal(objective: Objective, C: float, v: np.ndarray) -> float:
    return 0.5 * float(v @ v) + C * objective.evaluate(v).risk


def assert_true_certificate(objective: Objective, C: float, result: SolverResult, optimum: float | None = None) -> None:
    """The point has the value it is said to have, the gap is that of the bounds, and the optimum lies between them."""
    assert result.primal == pytest.approx(fresh_primal(objective, C, result.coef), rel=1e-12)
    assert result.gap == pytest.approx((result.primal - result.dual) / result.primal, abs=ROUNDING)
    assert result.gap >= 0.0
    if optimum is not None:
        assert result.dual <= optimum * (1 + ROUNDING)
        assert result.primal >= optimum * (1 - ROUNDING)
