"""Grades as labels of linear rankers: what is trained for, what is refused, and that two classes stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw
from rankwise import metrics
from rankwise.linear.candidates import Part, Samples
from rankwise.linear.cross_validation import Stop
from rankwise.linear.ranker_data import RankerData
from rankwise.linear.standardising import Standardised
from rankwise.linear.task import Labels

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


# Some part lacks the lowest grade: what is fitted to it still has two classes

QID = np.repeat(np.arange(6), 10)
EVEN, ODD = np.flatnonzero(QID % 2 == 0), np.flatnonzero(QID % 2 == 1)
HALVES = [(ODD, EVEN), (EVEN, ODD)]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
FOUND = X @ [1.0, -0.5, 0.0] + 0.3 * RNG.normal(size=60)
GRADES = np.digitize(FOUND, [-0.5, 0.5]) + 1.0
FIRST = np.arange(60) == 0
CASES: dict[str, NDArray[np.float64]] = {
    "one sample has it": np.where(FIRST, 0.0, GRADES),
    "every grade is another": FOUND - FOUND.min(),
    "one query has it alone": np.where(QID == 0, 0.0, GRADES),
}


@pytest.mark.parametrize("case", CASES)
def test_a_ranker_learns_where_a_fold_lacks_the_lowest_grade(case: str) -> None:
    y = CASES[case]
    model = rw.LinearRanker("ndcg", cv=HALVES).fit(X, y, qid=QID)
    assert model.best_score_ > 0.9
    assert np.isfinite(model.coef_).all()
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_a_ranker_learns_where_the_lowest_grade_has_no_weight() -> None:
    y = CASES["one sample has it"]
    weight = np.where(QID == 0, 0.0, 1.0)
    assert rw.LinearRanker("ndcg", cv=HALVES).fit(X, y, QID, weight).best_score_ > 0.9


def test_relevant_means_above_the_lowest_grade_of_the_queries_that_count() -> None:
    grades, qid = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 3.0]), np.array([1, 1, 2, 2, 3, 3])
    labels = Labels(grades > 0, grades)
    data = RankerData(labels, qid, None, grades)
    samples = Samples(Standardised(np.eye(6)), data, np.ones(6), rw.NDCG())
    weighted = samples._replace(data=data._replace(weight=np.where(qid == 2, 0.0, 1.0)))
    for part, rows, lowest in ((samples, None, 1), (samples, np.arange(4, 6), 2), (weighted, None, 2)):
        relevant = Part(part, rows, Stop()).relevant  # query 1 cannot be ranked
        assert relevant.tolist() == (grades > lowest).tolist()


def test_a_class_without_noticeable_weight_is_a_start_nevertheless() -> None:
    qid = np.repeat([0, 1], 30)
    y = np.where(qid == 0, 1, FOUND > 0)  # the heavy query has one class
    model = rw.LinearRanker("ap", cv=2).fit(X, y, qid, np.where(qid == 0, 1.0, 1e-20))
    assert np.isfinite(model.coef_).all()


def test_a_fold_with_nothing_to_train_on_is_named() -> None:
    same = np.where(QID < 3, 1.0, GRADES)
    folds = [(np.flatnonzero(QID > 1), np.flatnonzero(QID <= 1)), (np.flatnonzero(QID < 3), np.flatnonzero(QID >= 3))]
    with pytest.raises(ValueError, match="fold 2 of cv: every query has only one class, so there is nothing to rank"):
        rw.RankSVMCV("ndcg", cv=folds).fit(X, same, qid=QID)


def test_what_is_wrong_with_all_samples_is_not_said_of_a_fold() -> None:
    with pytest.raises(ValueError, match=r"^query_weight has shape \(5,\)"):
        rw.RankSVMCV("ndcg", cv=HALVES).fit(X, GRADES, QID, np.ones(5))
