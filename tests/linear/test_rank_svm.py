"""RankSVM as a scikit-learn classifier: its contract, its inputs, its ranking, its threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold, TunedThresholdClassifierCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise as rw
from rankwise import metrics
from rankwise.linear.features import INTERCEPT

ATOL = 1e-9
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def queries(n: int, n_queries: int) -> NDArray[np.int64]:
    return np.random.default_rng(4).integers(0, n_queries, n)


@pytest.mark.slow
@parametrize_with_checks(
    [rw.RankSVM(), rw.RankSVM(loss="zero-one"), rw.RankSVM(loss="ndcg"), rw.RankSVMCV(cv=2, Cs=[0.1, 1.0])]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc", "zero-one"])
def test_every_loss_ranks_what_a_linear_model_can_rank(cancer: Data, loss: str) -> None:
    X, y = cancer
    model = rw.RankSVM(loss).fit(X, y)
    assert model.converged_
    assert 0.0 <= model.gap_ <= model.tol
    assert model.dual_ <= model.objective_
    assert metrics.auc(model.decision_function(X), y) > 0.99
    assert model.coef_.shape == (1, 30)
    assert model.intercept_.shape == (1,)


def test_the_objective_is_that_of_the_coefficients(cancer: Data) -> None:
    X, y = cancer
    qid = queries(y.size, 7)
    model = rw.RankSVM("ndcg", C=50.0).fit(X, y, qid)
    hinge = rw.structured_hinge(model.decision_function(X), y == 1, "ndcg", qid=qid).value
    assert model.objective_ == pytest.approx(0.5 * np.sum(model.coef_**2) + 50.0 * hinge)


def test_queries_are_routed_to_fit_and_to_the_scorer(cancer: Data) -> None:
    X, y = cancer
    qid = queries(y.size, 9)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = metrics.make_ranking_scorer("ap").set_score_request(qid=True)
        model = rw.RankSVM().set_fit_request(qid=True)
        scores = cross_val_score(model, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid}, scoring=scorer)
    expected = []
    for train, test in GroupKFold(3).split(X, y, qid):
        fitted = rw.RankSVM().fit(X[train], y[train], qid[train])
        expected.append(metrics.average_precision(fitted.decision_function(X[test]), y[test], qid=qid[test]))
    np.testing.assert_allclose(scores, expected, atol=ATOL)


def test_a_frame_of_queries_and_weights_will_do(cancer: Data) -> None:
    X, y = cancer
    qid = queries(y.size, 5)
    frame = pd.DataFrame({"qid": qid, "weight": 1.0 + qid}, index=np.arange(y.size)[::-1])
    model = rw.RankSVM().fit(X, pd.Series(y), frame["qid"], frame["weight"])
    np.testing.assert_array_equal(model.coef_, rw.RankSVM().fit(X, y, qid, 1.0 + qid).coef_)


def test_one_against_the_rest_tells_digits_apart() -> None:
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16.0
    model = OneVsRestClassifier(rw.RankSVM(C=1000.0)).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:600]) > 0.8


def test_its_threshold_can_be_tuned_and_its_scores_calibrated(cancer: Data) -> None:
    X, y = cancer
    tuned = TunedThresholdClassifierCV(rw.RankSVM(), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert tuned.score(X, y) > 0.95
    calibrated = CalibratedClassifierCV(rw.RankSVM(), cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)[:, 1]
    assert metrics.auc(probability, y) > 0.99
    assert calibrated.score(X, y) > 0.95


@pytest.mark.parametrize(
    "labels",
    [np.array([False, True]), np.array([-1, 1]), np.array(["bad", "good"]), np.array(["bad", "good"], dtype=object)],
    ids=lambda labels: f"{labels.dtype}-{labels[1]}",
)
def test_the_greater_label_is_the_relevant_one(cancer: Data, labels: NDArray[Any]) -> None:
    X, y = cancer
    model, plain = rw.RankSVM().fit(X, labels[y]), rw.RankSVM().fit(X, y)
    assert model.classes_.tolist() == labels.tolist()
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X), labels[plain.predict(X)])
    assert model.score(X, labels[y]) == plain.score(X, y) > 0.95


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc"])
def test_predict_cuts_where_f1_is_highest(cancer: Data, loss: str) -> None:
    X, y = cancer
    X = X[:, :2] + np.random.default_rng(0).normal(size=(y.size, 2))  # far from separable
    model = rw.RankSVM(loss, C=10.0).fit(X, y)
    scores = model.decision_function(X)
    called = scores[:, None] >= scores
    best = np.max(2.0 * (called & (y == 1)[:, None]).sum(axis=0) / (called.sum(axis=0) + y.sum()))
    assert f1_score(y, model.predict(X)) == pytest.approx(best, abs=ATOL)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_without_an_intercept_there_is_none(cancer: Data, loss: str) -> None:
    X, y = cancer
    model = rw.RankSVM(loss, fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0], atol=ATOL)


def test_the_zero_one_loss_learns_its_intercept(cancer: Data) -> None:
    X, y = cancer[0] + 3.0, cancer[1]
    model, without = rw.RankSVM("zero-one", C=10.0).fit(X, y), rw.RankSVM("zero-one", 10.0, fit_intercept=False)
    column = rw.RankSVM("zero-one", 10.0, fit_intercept=False).fit(np.column_stack([X, np.full(y.size, INTERCEPT)]), y)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_ / INTERCEPT), column.coef_[0], atol=1e-6)
    assert model.objective_ < without.fit(X, y).objective_


def test_ranks_are_places_within_queries_and_ties_go_by_row() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    qid = rng.permutation(np.repeat(["b", "a", "c"], 20))
    model = rw.RankSVM().fit(X, X[:, 0] + rng.normal(size=60) > 1.0)
    scores, ranks = model.decision_function(X), model.rank(X, qid)
    for query in "abc":
        rows = np.flatnonzero(qid == query)
        expected = sorted(rows, key=lambda row: (-scores[row], row))
        assert rows[np.argsort(ranks[rows])].tolist() == expected
        assert sorted(ranks[rows]) == list(range(1, 21))
    assert model.rank(X)[np.argsort(-scores, kind="stable")].tolist() == list(range(1, 61))
    with pytest.raises(ValueError, match="qid has 3 entries"):
        model.rank(X, [1, 2, 3])


def test_a_fit_that_failed_is_no_fit(cancer: Data) -> None:
    X, y = cancer
    model = rw.RankSVM()
    with pytest.raises(ValueError, match="every query has only one class"):
        model.fit(X, y, qid=y)
    for use in (model.predict, model.decision_function, model.rank):
        with pytest.raises(NotFittedError):
            use(X)
