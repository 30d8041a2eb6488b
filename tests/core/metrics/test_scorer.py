"""Scorers are the metrics of a model's scores, and take queries as scikit-learn routes them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from metric_problems import ATOL, NAMES
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from rankwise import metrics


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """X, y and qid: 30 queries of 10, in shuffled order."""
    qid = rng.permutation(np.repeat(np.arange(30), 10))
    X = rng.normal(size=(300, 4))
    return X, (X[:, 0] + rng.normal(size=300) > 0.5).astype(int), qid


def test_a_scorer_is_the_metric_of_the_scores(data: Any) -> None:
    X, y, qid = data
    model = LogisticRegression().fit(X, y)
    scores = model.decision_function(X)
    for name in NAMES:
        metric = metrics.as_metric(name)
        assert _whole(name)(model, X, y) == metric(scores, y)
        assert _scorer(name)(model, X, y, qid=qid) == metric(scores, y, qid=qid)


def test_a_scorer_takes_the_second_class_for_the_positive_one(data: Any) -> None:
    X, y, _ = data
    labels = np.where(y == 1, "spam", "ham")
    scorer = _whole("ap")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, labels)
    assert scorer(model, X, labels) == metrics.average_precision(model.decision_function(X), labels == "spam")
    assert scorer(model, X, pd.Series(labels)) == scorer(model, X, labels)


def test_a_scorer_falls_back_on_probabilities_and_on_predictions(data: Any) -> None:
    X, y, qid = data
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    scorer = metrics.make_ranking_scorer("mrr")
    assert scorer(forest, X, y, qid) == metrics.reciprocal_rank(forest.predict_proba(X)[:, 1], y, qid=qid)
    grades = np.maximum(0, np.round(2 * X[:, 0]))
    line = LinearRegression().fit(X, grades)
    scorer = _whole("mrr")
    assert scorer(line, X, grades - 1.0) == metrics.reciprocal_rank(line.predict(X), grades > 1.0)
    assert _whole("ndcg")(line, X, grades) == metrics.ndcg(line.predict(X), grades)


class _Labels(BaseEstimator):  # type: ignore[misc]
    """A classifier that says no more than the label."""

    classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def test_a_scorer_refuses_what_cannot_rank(data: Any) -> None:
    X, y, _ = data
    scorer = _whole("ap")
    with pytest.raises(TypeError, match=r"_Labels cannot rank: .* neither decision_function nor predict_proba"):
        scorer(_Labels(), X, y)
    three = LogisticRegression().fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"LogisticRegression has 3 classes, but a ranking needs 2.*y == label"):
        scorer(three, X, y)
    with pytest.raises(TypeError, match=r"y must be numbers for an estimator without classes_, got dtype <U"):
        scorer(LinearRegression().fit(X, y), X, y.astype(str))
    with pytest.raises(ValueError, match=r"unknown metric 'map'"):
        metrics.make_ranking_scorer("map")
    with pytest.raises(ValueError, match=r"unknown empty='drop'"):
        metrics.make_ranking_scorer("ap", empty="drop")
    with pytest.raises(TypeError, match=r"one_query must be True or False, got array.*passed as qid"):
        metrics.make_ranking_scorer("ap", one_query=np.arange(3))  # type: ignore[arg-type]


ROUTE = (
    r"got no qid and would rank all samples as one query.*sklearn\.set_config\(enable_metadata_routing=True\).*"
    r"scorer\.set_score_request\(qid=True\).*params=\{'qid': qid\}.*make_ranking_scorer\('ap', one_query=True\)"
)


def test_a_scorer_without_qid_refuses_and_says_how_to_route_it(data: Any) -> None:
    X, y, qid = data
    with pytest.raises(ValueError, match=ROUTE):
        _scorer("ap")(LogisticRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"one_query=True\) takes all samples as one query but got qid"):
        _whole("ap")(LogisticRegression().fit(X, y), X, y, qid)


@pytest.mark.parametrize("routed", [False, True])
def test_cross_validation_without_routed_qid_has_no_score(data: Any, routed: bool) -> None:
    X, y, qid = data
    folds = list(GroupKFold(3).split(X, y, qid))
    given = {"cv": folds, "scoring": _scorer("ap"), "params": {}}  # scikit-learn 1.6 fails by itself on params=None
    with sklearn.config_context(enable_metadata_routing=routed):
        with pytest.raises(ValueError, match=ROUTE):
            cross_val_score(LogisticRegression(), X, y, **given, error_score="raise")
        with pytest.warns(UserWarning, match=r"(?s)Scoring failed.*got no qid.*set_score_request\(qid=True\)"):
            found = cross_val_score(LogisticRegression(), X, y, **given)
    assert np.isnan(found).all()


def test_without_routing_a_scorer_ranks_all_samples_of_a_fold_as_one_query_if_told(data: Any) -> None:
    X, y, qid = data
    ours = cross_val_score(LogisticRegression(), X, y, groups=qid, cv=GroupKFold(3), scoring=_whole("ap"))
    theirs = cross_val_score(LogisticRegression(), X, y, groups=qid, cv=GroupKFold(3), scoring="average_precision")
    assert ours == pytest.approx(theirs, abs=ATOL)
    both = cross_validate(LogisticRegression(), X, y, scoring={"ap": _whole("ap"), "auc": _whole("auc")})
    assert both["test_auc"] == pytest.approx(cross_val_score(LogisticRegression(), X, y, scoring="roc_auc"), abs=ATOL)
    with pytest.raises(RuntimeError, match=r"set_config\(enable_metadata_routing=True\) first"):
        _scorer("ap").set_score_request(qid=True)


def _scorer(name: str) -> Any:
    return metrics.make_ranking_scorer(name)


def _whole(name: str) -> Any:
    return metrics.make_ranking_scorer(name, one_query=True)


@pytest.mark.usefixtures("routing")
def test_with_routing_a_grid_search_ranks_each_query_of_a_fold(data: Any) -> None:
    X, y, qid = data
    scorer = _scorer("ndcg@5").set_score_request(qid=True)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=scorer, cv=GroupKFold(3))
    search.fit(X, y, qid=qid, groups=qid)
    for i, C in enumerate([1e-4, 1.0]):
        for j, (train, test) in enumerate(GroupKFold(3).split(X, y, qid)):
            model = LogisticRegression(C=C).fit(X[train], y[train])
            expected = metrics.ndcg(model.decision_function(X[test]), y[test], k=5, qid=qid[test])
            assert search.cv_results_[f"split{j}_test_score"][i] == pytest.approx(expected, abs=ATOL)
    assert search.score(X, y, qid=qid) == scorer(search.best_estimator_, X, y, qid)


@pytest.mark.usefixtures("routing")
def test_with_routing_qid_is_passed_to_cross_val_score_by_its_name_or_another(data: Any) -> None:
    X, y, qid = data
    named = [
        cross_val_score(
            LogisticRegression(), X, y, cv=GroupKFold(3), scoring=_scorer("ap").set_score_request(qid=request), params=p
        )
        for request, p in ((True, {"qid": qid, "groups": qid}), ("groups", {"groups": qid}))
    ]
    assert named[0].tolist() == named[1].tolist()
    alone, told = (
        cross_val_score(LogisticRegression(), X, y, cv=GroupKFold(3), scoring=scoring, params={"groups": qid})
        for scoring in (_scorer("ap").set_score_request(qid=False), _whole("ap"))
    )
    assert (alone != named[0]).all()
    assert told.tolist() == alone.tolist()
    two = {"ap": _scorer("ap").set_score_request(qid=True), "mrr": _scorer("mrr").set_score_request(qid=True)}
    both = cross_validate(LogisticRegression(), X, y, cv=GroupKFold(3), scoring=two, params={"qid": qid, "groups": qid})
    assert both["test_ap"].tolist() == named[0].tolist()


@pytest.mark.usefixtures("routing")
def test_with_routing_qid_that_was_not_asked_for_is_refused_by_scikit_learn(data: Any) -> None:
    X, y, qid = data
    with pytest.raises(UnsetMetadataPassedError, match=r"qid"):
        cross_val_score(LogisticRegression(), X, y, scoring=_scorer("ap"), params={"qid": qid})
    with pytest.raises(ValueError, match=r"qid"):
        _scorer("ap").set_score_request(qid="not a name")


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("one_query", [False, True])
def test_a_scorer_is_pickled_and_cloned_with_its_request(one_query: bool, data: Any) -> None:
    X, y, qid = data
    scorer = metrics.make_ranking_scorer("precision@5", empty="zero", one_query=one_query)
    assert one_query or scorer.set_score_request(qid="query") is scorer
    given = {} if one_query else {"qid": qid}
    model = LogisticRegression().fit(X, y)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer)
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer), clone(search).scoring):
        assert copy is not scorer
        assert copy.one_query == one_query
        alone = ", one_query=True" * one_query
        assert repr(copy) == repr(scorer) == f"make_ranking_scorer('precision@5', empty='zero'{alone})"
        assert get_routing_for_object(copy).score.requests == {"qid": False if one_query else "query"}
        assert copy(model, X, y, **given) == scorer(model, X, y, **given)
    assert not scorer.set_score_request(qid=True).one_query
    assert scorer(model, X, y, qid) == metrics.precision_at(model.decision_function(X), y, 5, qid=qid, empty="zero")
