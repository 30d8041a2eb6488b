"""With more features than samples, everything is fitted in the space of the rows, and the problems stay the same."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit

import rankwise as rw
from rankwise.linear.candidates import HINGE, Part, Samples
from rankwise.linear.cross_validation import Stop
from rankwise.linear.labels import Labels
from rankwise.linear.path import natural_C
from rankwise.linear.pointwise import Classifier
from rankwise.linear.ranker_data import RankerData
from rankwise.linear.standardising import RowSpace, Standardised, standardise

pytestmark = pytest.mark.usefixtures("short_search")
RTOL = 1e-10
HALVES = PredefinedSplit(np.arange(60) % 2)
N, D = 60, 200
FORMS: dict[str, Any] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "dependent rows": lambda X: X[np.arange(N) // 2 % 60],
    "constant columns": lambda X: X * (np.arange(D) % 2),
    "csr": lambda X: sp.csr_array(X * (np.abs(X) > 1.0)),
    "csc": lambda X: sp.csc_array(X * (np.abs(X) > 1.0)),
    "tiny": lambda X: X * 1e-200,
}


@pytest.fixture(params=FORMS)
def given(request: pytest.FixtureRequest, rng: np.random.Generator) -> Any:
    return FORMS[request.param](rng.normal(size=(N, D)))


def labels_of(X: Any) -> np.ndarray:
    first = np.asarray(X[:, :3].sum(axis=1)).ravel()
    return first > np.quantile(first, 0.75)


def test_products_are_those_of_the_features_in_other_coordinates(given: Any, rng: np.random.Generator) -> None:
    rows, plain = standardise(given), Standardised(given)
    assert isinstance(rows, RowSpace)
    g, h = rng.normal(size=(2, N))
    few = g * (np.arange(N) < 5)
    for weights in (g, few):
        v, w = rows.combine(weights), plain.combine(weights)
        np.testing.assert_allclose(rows.scores(v), plain.scores(w), atol=RTOL * D)
        assert v @ rows.combine(h) == pytest.approx(w @ plain.combine(h), rel=1e-9, abs=RTOL * D * N)
        np.testing.assert_allclose(rows.as_given(v), plain.as_given(w), rtol=1e-6, atol=1e-9 * np.abs(plain.rate).max())
    np.testing.assert_allclose(rows.gram(h**2), np.stack([rows.combine(h**2 * rows.scores(e)) for e in np.eye(N)]))


def test_fits_reach_the_minimum_of_the_same_problem(given: Any) -> None:
    y = labels_of(given)
    found = []
    for features in (standardise(given), Standardised(given)):
        part = Part(
            Samples(features, RankerData(Labels(y), None, None, y), np.ones(N), rw.AveragePrecision()), None, Stop()
        )
        C = 100.0 * natural_C(part.risk())
        coef = next(part.starts(HINGE, (C,)))
        classifier = Classifier(features, y, np.ones(N), "logistic")
        classifier.fit(0.01)
        found.append((C, classifier._at(classifier.point, 0.01).value, features.scores(coef)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-3)
    assert np.corrcoef(found[0][2], found[1][2])[0, 1] > 0.98


def test_a_ranker_is_that_of_all_features(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    y, qid = labels_of(given), np.arange(N) // 2 % 6
    for queries in (None, qid):
        model = rw.LinearRanker(cv=HALVES).fit(given, y, queries)
        with monkeypatch.context() as patch:
            patch.setattr("rankwise.linear.linear_ranker.standardise", Standardised)
            plain = rw.LinearRanker(cv=HALVES).fit(given, y, queries)
        assert model.coef_.shape == (1, D)
        assert model.best_score_ == pytest.approx(plain.best_score_, abs=0.05)
        scores, others = model.decision_function(given), plain.decision_function(given)
        assert np.corrcoef(scores, others)[0, 1] > 0.95
        assert rw.metrics.auc(scores, y) > 0.95


def test_what_would_need_more_memory_keeps_its_features(rng: np.random.Generator) -> None:
    assert isinstance(standardise(sp.random_array((300, 2000), density=0.01, format="csr", rng=rng)), Standardised)
    assert isinstance(standardise(rng.normal(size=(30, 30))), Standardised)


def test_a_wide_fit_takes_less_than_its_features(rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 20_000))
    y = X[:, 0] > 1.0
    rw.LinearRanker(cv=2).fit(X[:, :300], y)  # whatever is imported and compiled once
    tracemalloc.start()
    try:
        rw.LinearRanker(cv=2).fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 0.7 * X.nbytes
    finally:
        tracemalloc.stop()
