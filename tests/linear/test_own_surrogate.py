"""A surrogate of one's own: minimised to a certified gap if it is convex, and refined by in LinearRanker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import rankwise as rw
from rankwise.queries import Solved

pytestmark = pytest.mark.usefixtures("short_search")
C, TOL = 2.0, 1e-5


class Squares(rw.Surrogate):
    """(1 − mean score of positives + mean score of negatives)²."""

    name = "squares"
    is_convex = True

    def solve_binary(self, scores: Any, queries: Any, loss: rw.Loss, n_threads: int = 1) -> Solved:
        value, gradient = np.zeros(queries.sizes.size), np.zeros(scores.size)
        for q in np.flatnonzero(queries.can_rank):
            part = slice(*queries.starts[q : q + 2])
            positive, mine = queries.relevant[part], scores[part]
            short = 1.0 - mine[positive].mean() + mine[~positive].mean()
            value[q] = short**2
            gradient[part] = 2.0 * short * np.where(positive, -1.0 / positive.sum(), 1.0 / (~positive).sum())
        return Solved(value, value, gradient)


X = np.random.default_rng(0).normal(size=(120, 4))
Y = (X[:, 0] + np.random.default_rng(1).normal(size=120) > 1.0).astype(int)
QID = np.arange(120) % 5


@pytest.mark.parametrize("qid", [None, QID], ids=["one query", "queries"])
def test_the_minimum_is_that_of_any_other_solver(qid: Any) -> None:
    model = rw.RankSVM("ap", C, surrogate=Squares(), tol=TOL).fit(X, Y, qid)

    def objective(w: Any) -> Any:
        found = rw.evaluate(Squares(), X @ w, Y, "ap", qid=qid)
        return 0.5 * np.sum(w**2) + C * found.value, w + C * X.T @ found.gradient

    best = minimize(objective, np.zeros(4), jac=True, tol=1e-12).fun
    assert model.converged_
    assert model.dual_ <= best * (1.0 + 1e-9) <= model.objective_ * (1.0 + 2e-9)
    assert model.objective_ == pytest.approx(best, rel=2 * TOL)


@pytest.mark.parametrize("make", [rw.RankSVMCV, rw.LinearRanker])
def test_a_search_uses_it_and_its_file_does_without(make: Any, tmp_path: Path) -> None:
    graded = Y + (X[:, 0] > 1.5)
    for labels, qid in ((Y, None), (graded, QID)):
        model = make("ndcg", surrogate=Squares(), cv=2).fit(X, labels, qid)
        plain = make("ndcg", cv=2).fit(X, labels, qid)
        assert np.abs(model.coef_ - plain.coef_).max() > 1e-3
        assert rw.metrics.auc(model.decision_function(X), Y) > 0.6
        model.save(tmp_path / "m.rw")
        found = rw.load(tmp_path / "m.rw")
        assert found.surrogate is None
        np.testing.assert_array_equal(found.rank(X), model.rank(X))
        if make is rw.LinearRanker:
            assert "refined, pull on weights" in str(found.report_)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (rw.RankSVM(surrogate=rw.Smooth()), "a convex Surrogate, got Smooth.*; use LinearRanker for others"),
        (rw.RankSVM(surrogate="hinge"), "a convex Surrogate, got 'hinge'"),
        (rw.RankSVMCV(surrogate=rw.ErrorDriven()), "a convex Surrogate"),
        (rw.LinearRanker(surrogate=rw.ErrorDriven()), "whose gradient is its derivative, got ErrorDriven"),
        (rw.LinearRanker(surrogate=3), "must be a Surrogate"),
    ],
    ids=str,
)
def test_others_are_refused(model: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)


def test_the_hinge_and_the_smooth_loss_given_are_those_meant() -> None:
    given, meant = rw.RankSVM(C=C, surrogate=rw.Hinge(2.0)).fit(X, Y), rw.RankSVM(C=C, scale=2.0).fit(X, Y)
    np.testing.assert_array_equal(given.coef_, meant.coef_)
    model = rw.LinearRanker(cv=2, surrogate=rw.Smooth(0.5)).fit(X, Y)
    assert {name.split(", pull")[0] for name in model.report_.names if "refined" in name} == {"refined, width 0.5"}
