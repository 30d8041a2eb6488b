"""LinearRanker as a scikit-learn classifier: its contract, metrics, queries, weights, threshold and report."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, get_scorer, make_scorer
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise as rw
from rankwise import metrics
from rankwise.metrics import as_metric

pytestmark = pytest.mark.usefixtures("short_search")
ATOL = 1e-9
# Rounding is enlarged by solvers that stop at a gain of 1e-5.
ROUNDED = 1e-4
# Two folds that keep the queries below whole, drawn once: a number of folds would be drawn three times over. Most tests
# need but the first of them.
HALVES = PredefinedSplit(np.arange(84) % 2)
HALF = PredefinedSplit(np.where(np.arange(84) % 2, -1, 0))


@pytest.mark.slow
@parametrize_with_checks([rw.LinearRanker(cv=StratifiedShuffleSplit(1, test_size=0.5, random_state=0))])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator: Any, check: Any) -> None:
    check(estimator)


class Problem(NamedTuple):
    """Few positives that three features tell of, in six queries whose rows are interleaved."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    qid: NDArray[np.int64]
    grades: NDArray[np.int64]


@pytest.fixture(scope="module")
def few() -> Problem:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(84, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
    latent = X @ [1.0, 0.2, 0.0] + 0.5 * rng.normal(size=84)
    grades = (latent > 1.3).astype(int) + (latent > 2.3)
    return Problem(X, (grades > 0).astype(int), np.arange(84) % 6, grades)


def small(**options: Any) -> rw.LinearRanker:
    return rw.LinearRanker(**{"cv": HALF, **options})


@pytest.fixture(scope="module")
def plain(few: Problem) -> rw.LinearRanker:
    return small().fit(few.X, few.y)


@pytest.fixture(scope="module")
def by_query(few: Problem) -> rw.LinearRanker:
    return small().fit(few.X, few.y, few.qid)


@pytest.fixture(scope="module")
def drawn(few: Problem) -> rw.LinearRanker:
    """Folds are drawn three times over."""
    return small(metric="auc", cv=2, random_state=3).fit(few.X, few.y)


# Metrics


@pytest.mark.parametrize(
    "metric", ["ap", "map", "ndcg", "ndcg@10", "mrr", "auc", "f1", "precision@5", as_metric("ndcg@3")]
)
def test_every_metric_judges_folds_by_query(few: Problem, metric: Any) -> None:
    model = small(metric=metric, cv=HALVES).fit(few.X, few.y, few.qid)
    assert model.report_.folds.shape[1] == 2
    assert ((model.report_.folds >= 0.0) & (model.report_.folds <= 1.0)).all()
    assert model.best_score_ == pytest.approx(model.report_.folds.mean(axis=1).max())
    judge = as_metric("ap" if metric == "map" else metric)
    scores = model.decision_function(few.X)
    assert judge(scores, few.y, qid=few.qid) > judge(-scores, few.y, qid=few.qid)
    assert model.metric_ == (metric if isinstance(metric, str) else "ndcg@3")


@pytest.mark.parametrize("metric", ["ap", "ndcg", "mrr", "auc", "precision@5"])
def test_without_queries_all_samples_are_one(few: Problem, metric: str) -> None:
    model, one = small(metric=metric).fit(few.X, few.y), small(metric=metric).fit(few.X, few.y, np.zeros(84, int))
    assert as_metric(metric)(model.decision_function(few.X), few.y) > 0.7
    np.testing.assert_allclose(one.report_.folds, model.report_.folds, atol=ATOL)


def test_map_is_ap_with_queries(few: Problem, by_query: rw.LinearRanker) -> None:
    assert by_query.metric_ == "ap"
    by_map = small(metric="map").fit(few.X, few.y, few.qid)
    np.testing.assert_array_equal(by_map.coef_, by_query.coef_)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_a_scorer_judges_as_the_metric_of_that_meaning(few: Problem, name: str) -> None:
    folds = [next(KFold(2, shuffle=True, random_state=0).split(few.X))]
    ours = "auc" if name == "roc_auc" else "ap"
    by_metric = rw.LinearRanker(ours, cv=folds).fit(few.X, few.y)
    by_scorer = rw.LinearRanker(get_scorer(name), cv=folds).fit(few.X, few.y)
    start = slice(0, 2)  # paths of refinements may end elsewhere: a fold is one value, or one a positive
    np.testing.assert_allclose(by_scorer.report_.folds[start], by_metric.report_.folds[start], atol=ATOL)
    assert by_scorer.metric_ == "score"


def test_a_scorer_of_predictions_sees_labels_as_they_were_given(few: Problem) -> None:
    labels = np.array(["no", "yes"])[few.y]
    scorer = make_scorer(f1_score, pos_label="yes")
    model = small(metric=scorer).fit(few.X, labels)
    assert 0.5 < model.best_score_ <= 1.0
    assert f1_score(labels, model.predict(few.X), pos_label="yes") > 0.6


# Queries and weights


def test_queries_may_come_in_any_order_and_by_any_name(few: Problem, by_query: rw.LinearRanker) -> None:
    expected = by_query
    words = np.array(["f", "c", "a", "e", "b", "d"])[few.qid]
    named = small().fit(few.X, few.y, words)
    np.testing.assert_allclose(named.decision_function(few.X), expected.decision_function(few.X), atol=ROUNDED)
    order = np.argsort(few.qid, kind="stable")
    moved = rw.LinearRanker(cv=PredefinedSplit(-(few.qid[order] % 2))).fit(few.X[order], few.y[order], few.qid[order])
    np.testing.assert_allclose(moved.decision_function(few.X), expected.decision_function(few.X), atol=ROUNDED)
    assert sorted(moved.rank(few.X, few.qid)[few.qid == 3]) == list(range(1, 15))


@pytest.mark.parametrize("queries", [False, True])
def test_the_number_of_threads_changes_nothing(few: Problem, queries: bool) -> None:
    qid = few.qid if queries else None
    one, two = (small(cv=HALVES, n_jobs=n).fit(few.X, few.y, qid) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.report_.folds, two.report_.folds)


def test_weights_matter(few: Problem, by_query: rw.LinearRanker) -> None:
    even = small().fit(few.X, few.y, few.qid, np.full(84, 7))
    uneven = small().fit(few.X, few.y, few.qid, 1.0 + 9.0 * (few.qid == 0))
    np.testing.assert_allclose(even.decision_function(few.X), by_query.decision_function(few.X), atol=ROUNDED)
    assert np.abs(uneven.decision_function(few.X) - by_query.decision_function(few.X)).max() > 100 * ROUNDED


def test_folds_that_leave_nothing_to_train_on_are_not_used(few: Problem) -> None:
    y = np.where(few.qid < 2, few.y, 0)  # two of six queries have both classes, and may be left out together
    shapes = {small(cv=2, random_state=seed).fit(few.X, y, few.qid).report_.folds.shape[1] for seed in range(2)}
    assert shapes <= set(range(1, 7))
    assert shapes != {6}
    weight = (few.qid == 0).astype(float)
    assert 0 < small(cv=2).fit(few.X, few.y, few.qid, weight).report_.folds.shape[1] < 6


# As a classifier


@pytest.mark.parametrize("labels", [["bad", "good"], [False, True], [-1, 1], [1.0, 2.0]], ids=str)
def test_the_greater_label_is_the_relevant_one(few: Problem, plain: rw.LinearRanker, labels: list[Any]) -> None:
    model = small().fit(few.X, np.array(labels)[few.y])
    assert model.classes_.tolist() == labels
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(few.X), np.array(labels)[plain.predict(few.X)])


@pytest.mark.parametrize("n_pos", [1, 2, 3])
@pytest.mark.parametrize("queries", [False, True])
def test_very_few_positives_are_enough(few: Problem, n_pos: int, queries: bool) -> None:
    y = np.zeros(84, int)
    y[np.flatnonzero(few.y)[:n_pos]] = 1
    model = rw.LinearRanker().fit(few.X, y, few.qid if queries else None)
    n_folds = model.report_.folds.shape[1]
    assert n_folds % 3 == 0
    assert (n_folds > 0) == (n_pos > 1)
    assert np.isfinite(model.coef_).all()
    assert np.isnan(model.best_score_) == (n_pos == 1)
    assert "share" in str(model.report_)
    assert metrics.auc(model.decision_function(few.X), y) > 0.6


def test_a_clone_has_the_parameters_and_a_pickle_what_was_learnt(few: Problem, drawn: rw.LinearRanker) -> None:
    model = drawn
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(few.X)
    with pytest.raises(AttributeError, match="report_ is only available after fit"):
        _ = copy.report_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(few.X), model.decision_function(few.X))
    assert str(again.report_) == str(model.report_)


def test_the_seed_draws_the_folds(few: Problem, drawn: rw.LinearRanker) -> None:
    again, other = (clone(drawn).set_params(random_state=seed).fit(few.X, few.y) for seed in (3, 0))
    np.testing.assert_array_equal(again.coef_, drawn.coef_)
    assert (other.report_.folds[0] != drawn.report_.folds[0]).any()


def test_progress_is_told_if_asked(few: Problem, capsys: pytest.CaptureFixture[str]) -> None:
    small().fit(few.X, few.y)
    assert capsys.readouterr() == ("", "")
    small(verbose=1).fit(few.X, few.y)
    assert capsys.readouterr().err.startswith("LinearRanker: ")


# What was tried


def test_the_report_tells_what_was_tried(by_query: rw.LinearRanker) -> None:
    model = by_query
    report = model.report_
    lines = str(report).splitlines()
    n = len(report.names)
    starts = ["logistic", "squared hinge", "balanced logistic", "balanced squared hinge", "structured hinge"]
    assert [name.split(",")[0] for name in report.names[:6]] == [*starts, "refined"]
    assert lines[0].split() == ["candidate", "ap", "±", "folds", "share"]
    assert len(lines) == n + 3
    (best,) = (k for k, line in enumerate(lines[2:-1]) if "*" in line)
    assert report.scores[best] == report.scores.max() == model.best_score_
    assert report.shares.sum() == pytest.approx(1.0)
    assert report.shares[best] == report.shares.max()
    assert model.history_["worse_by"][best] == 0.0
    assert repr(report) == f"<TuningReport: {n} candidates, best ap {model.best_score_:.4f}>"
    assert set(model.timing_) == {"total", "search", "fit"}
    assert model.timing_["total"] >= model.timing_["search"] > 0.0
