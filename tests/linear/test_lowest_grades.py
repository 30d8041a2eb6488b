"""Graded data of which some part lacks the lowest grade: what is fitted to that part still has two classes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw
from rankwise.linear.candidates import Part, Samples
from rankwise.linear.cross_validation import Stop
from rankwise.linear.labels import Labels
from rankwise.linear.ranker_data import RankerData
from rankwise.linear.standardising import Standardised

pytestmark = pytest.mark.usefixtures("short_search")
QID = np.repeat(np.arange(6), 10)
EVEN, ODD = np.flatnonzero(QID % 2 == 0), np.flatnonzero(QID % 2 == 1)
FOLDS = [(ODD, EVEN), (EVEN, ODD)]
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
    model = rw.LinearRanker("ndcg", cv=FOLDS).fit(X, y, qid=QID)
    assert model.best_score_ > 0.9
    assert np.isfinite(model.coef_).all()
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_a_ranker_learns_where_the_lowest_grade_has_no_weight() -> None:
    y = CASES["one sample has it"]
    weight = np.where(QID == 0, 0.0, 1.0)
    assert rw.LinearRanker("ndcg", cv=FOLDS).fit(X, y, QID, weight).best_score_ > 0.9


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
        rw.RankSVMCV("ndcg", cv=FOLDS).fit(X, GRADES, QID, np.ones(5))
