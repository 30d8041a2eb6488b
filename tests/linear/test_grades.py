"""Grades as labels of linear rankers: what is trained for, what is refused, and that two classes stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw
from rankwise import metrics

pytestmark = pytest.mark.usefixtures("short_search")
RTOL, ATOL = 1e-9, 1e-12
N_QUERIES, SIZE, D = 40, 12, 4
FOLDS = [
    tuple(np.flatnonzero((np.arange(N_QUERIES * SIZE) % N_QUERIES < 10) == left_out) for left_out in (False, True))
]


@pytest.fixture(scope="module")
def graded() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Documents whose grades, 0 to 3, follow a line; of some queries all have one grade."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_QUERIES * SIZE, D))
    found = X @ [1.0, -0.7, 0.3, 0.0] + 0.7 * rng.normal(size=len(X))
    grades = np.digitize(found, [0.3, 1.0, 1.8])
    qid = np.arange(len(X)) % N_QUERIES
    grades[qid == 0] = 2
    return X, grades, qid


def risk(coef: Any, X: Any, grades: Any, qid: Any, loss: str, C: float) -> float:
    """½‖w‖² + C·mean J, J of the core."""
    value = rw.structured_hinge(X @ coef, grades, loss, qid=qid, empty="skip").value
    return float(0.5 * coef @ coef + C * value)


@pytest.mark.parametrize("loss", ["ndcg", "ap", "ndcg@5"])
def test_the_objective_is_that_of_the_graded_hinge_and_its_gap_is_certified(graded: Any, loss: str) -> None:
    X, grades, qid = graded
    model = rw.RankSVM(loss, C=5.0, tol=1e-4).fit(X, grades, qid)
    assert model.converged_
    assert model.objective_ == pytest.approx(risk(model.coef_[0], X, grades, qid, loss, 5.0), rel=RTOL)
    assert model.dual_ <= model.objective_
    for seed in range(20):
        other = model.coef_[0] + 0.1 * np.random.default_rng(seed).normal(size=D)
        assert risk(other, X, grades, qid, loss, 5.0) >= model.dual_ - ATOL


def test_grades_of_0_and_another_one_train_as_two_classes_do(graded: Any) -> None:
    X, grades, qid = graded
    binary = rw.RankSVM("ndcg", C=5.0).fit(X, grades > 1, qid)
    named = rw.RankSVM("ndcg", C=5.0).fit(X, np.where(grades > 1, 7, 3), qid)
    np.testing.assert_array_equal(binary.coef_, named.coef_)
    assert named.classes_.tolist() == [3, 7]


def test_after_grades_predict_says_what_is_above_the_lowest(graded: Any, tmp_path: Path) -> None:
    X, grades, qid = graded
    for model in (rw.RankSVM("ndcg"), rw.LinearRanker("ndcg@10", cv=FOLDS)):
        model.fit(X, grades, qid)
        assert model.classes_.tolist() == [0, 1]
        assert ((grades > 0) == model.predict(X)).mean() > 0.7
        model.save(tmp_path / "model.rw")
        again = rw.load(tmp_path / "model.rw")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_a_ranker_for_graded_ndcg_ranks_and_is_judged_by_grades(graded: Any) -> None:
    X, grades, qid = graded
    model = rw.LinearRanker("ndcg@10", cv=FOLDS).fit(X, grades, qid)
    again = rw.LinearRanker("ndcg@10", cv=FOLDS).fit(X, grades > 0, qid)
    assert model.best_score_ != again.best_score_
    assert metrics.ndcg(model.decision_function(X), grades, k=10, qid=qid) > 0.85


def test_metrics_that_see_no_grades_train_for_what_is_relevant(graded: Any) -> None:
    X, grades, qid = graded
    by_grades, by_class = (rw.LinearRanker("map", cv=FOLDS).fit(X, y, qid) for y in (grades, grades > 0))
    np.testing.assert_array_equal(by_grades.coef_, by_class.coef_)


@pytest.mark.parametrize("make", [rw.RankSVM, rw.RankSVMCV, rw.LinearRanker])
@pytest.mark.parametrize(
    ("change", "with_qid", "match"),
    [
        (lambda y: y, False, "Only binary classification is supported. .* For grades, pass qid"),
        (lambda y: y - 1.0, True, r"y\[\d+\] is -1.0: grades must be finite and at least 0"),
        (lambda y: np.where(y == 1, np.nan, y), True, "NaN"),
        (lambda y: np.full(y.shape, 2), True, "only one class"),
        (lambda y: y.astype(str), True, "Only binary classification is supported"),
    ],
    ids=["no queries", "negative", "NaN", "one grade", "text"],
)
def test_labels_that_are_no_grades_are_refused(graded: Any, make: Any, change: Any, with_qid: bool, match: str) -> None:
    X, grades, qid = graded
    with pytest.raises(ValueError, match=match):
        make().fit(X, change(grades), qid if with_qid else None)


def test_queries_of_one_document_or_one_grade_are_left_out(graded: Any) -> None:
    X, grades, qid = graded
    alone = np.where(np.arange(len(X)) < 5, 1000 + np.arange(len(X)), qid)
    rest = alone < 1000
    whole, part = (rw.RankSVM("ndcg", C=5.0).fit(X[rows], grades[rows], alone[rows]) for rows in (slice(None), rest))
    np.testing.assert_allclose(whole.coef_, part.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="every query has only one class"):
        rw.RankSVM("ndcg").fit(X, grades, np.arange(len(X)))
