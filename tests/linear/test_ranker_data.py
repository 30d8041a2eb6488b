"""Of very many samples LinearRanker tries on a part, and is fitted to all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

import rankwise as rw
from rankwise.linear import ranker_data, tuning
from rankwise.linear.labels import Labels
from rankwise.linear.pointwise import Classifier
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.standardising import Standardised
from rankwise.metrics import as_metric

pytestmark = pytest.mark.usefixtures("short_search")
Data = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    X = rng.normal(size=(900, 4))
    return X, X @ [1.0, -0.5, 0.2, 0.0] + 0.5 * rng.normal(size=900) > 1.6


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranker_data, "_SEARCHED", 300)
    monkeypatch.setattr(ranker_data, "_SEARCHED_IN_QUERIES", 300)
    monkeypatch.setattr(ranker_data, "_POSITIVES", 20)


def searched(y: NDArray[np.bool_], qid: Any = None, seed: int = 0) -> NDArray[np.int64] | None:
    return RankerData(Labels(y), qid, None, y).searched(seed)


def test_few_samples_are_all_tried_on(data: Data) -> None:
    assert searched(data[1]) is None


@pytest.mark.usefixtures("few")
def test_of_one_query_a_stratified_part_is_tried_on(data: Data) -> None:
    _, y = data
    rows, again = searched(y), searched(y, seed=1)
    assert rows is not None
    assert np.unique(rows).size == 300
    assert abs(y[rows].mean() - y.mean()) < 0.005
    assert not np.array_equal(rows, again)


@pytest.mark.usefixtures("few")
def test_queries_stay_whole_in_the_part_that_is_tried_on(data: Data) -> None:
    qid = np.arange(900) % 30
    rows = searched(data[1], qid)
    assert rows is not None
    assert (np.unique(qid[rows], return_counts=True)[1] == 30).all()
    assert rows.size == 300


@pytest.mark.usefixtures("few")
def test_a_part_with_nothing_to_rank_is_not_taken(data: Data) -> None:
    one_large_query_ranks = np.where(np.arange(900) < 800, 0, np.arange(900))
    assert searched(data[1], one_large_query_ranks) is None


@pytest.mark.usefixtures("few")
def test_a_memory_map_is_tried_on_in_memory(data: Data, tmp_path: Path) -> None:
    X, y = data
    np.save(tmp_path / "X.npy", X)
    mapped, plain = rw.LinearRanker(cv=2), rw.LinearRanker(cv=2).fit(X, y)
    mapped.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_array_equal(mapped.report_.folds, plain.report_.folds)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("queries", [False, True])
def test_the_ranker_is_fitted_to_all_samples_with_strengths_found_on_a_part(data: Data, queries: bool) -> None:
    X, y = data
    qid = np.arange(900) % 30 if queries else None
    model = rw.LinearRanker(cv=2).fit(X, y, qid=qid)
    assert model.best_score_ > 0.6
    assert np.corrcoef(model.coef_[0][:3], [1.0, -0.5, 0.2])[0, 1] > 0.98


def test_half_the_weight_on_twice_the_samples_is_the_same_fit(data: Data) -> None:
    X, y = data
    once = Classifier(Standardised(X), y, np.ones(900), "logistic").fit(0.01)
    doubled = Standardised(np.vstack([X, X]))
    twice = Classifier(doubled, np.tile(y, 2), np.full(1800, 0.5), "logistic").fit(0.01)
    np.testing.assert_allclose(once, twice, rtol=1e-6)


@pytest.mark.parametrize("loss", ["balanced logistic", "balanced squared hinge"])
def test_balanced_classes_weigh_the_same(data: Data, loss: str) -> None:
    X, y = data
    weights = np.where(y, 0.5 * 900 / y.sum(), 0.5 * 900 / (~y).sum())
    found = Classifier(Standardised(X), y, np.ones(900), loss).fit(0.1)
    wanted = Classifier(Standardised(X), y, weights, loss.removeprefix("balanced ")).fit(0.1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_logistic_regression_is_that_of_scikit_learn(data: Data) -> None:
    X, y = data
    found = Classifier(Standardised(X), y, np.ones(900), "logistic").fit(0.05)
    expected = LogisticRegression(C=0.05, tol=1e-10, max_iter=10_000).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    np.testing.assert_allclose(found, expected.coef_[0], rtol=1e-3, atol=1e-5)


def test_folds_that_the_metric_cannot_judge_are_refused(data: Data) -> None:
    X, y = data
    negatives = np.flatnonzero(~y)
    folds = [(np.setdiff1d(np.arange(900), held), held) for held in (negatives[:50], negatives[50:100])]
    with pytest.raises(ValueError, match="no fold of cv leaves out samples that the metric can judge"):
        rw.LinearRanker(cv=folds).fit(X, y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("queries", [False, True])
def test_folds_without_copies_of_their_own_find_the_same(
    data: Data, monkeypatch: pytest.MonkeyPatch, sparse: bool, queries: bool
) -> None:
    X, y = data
    qid = np.arange(900) % 30 if queries else None
    given = csr_matrix(X * (np.abs(X) > 0.5)) if sparse else X
    halves = PredefinedSplit(np.arange(900) % 2)  # queries are whole in them
    copied = rw.LinearRanker(cv=halves).fit(given, y, qid)
    monkeypatch.setattr(tuning, "_COPIED", 0)
    shared = rw.LinearRanker(cv=halves).fit(given, y, qid)
    assert shared.report_.names == copied.report_.names
    np.testing.assert_allclose(shared.report_.folds, copied.report_.folds, atol=1e-3)
    np.testing.assert_allclose(shared.coef_, copied.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared hinge"])
@pytest.mark.parametrize("form", [csr_matrix, np.asarray], ids=["sparse", "dense"])
def test_on_a_path_every_fit_reaches_its_minimum(rng: np.random.Generator, form: Any, loss: str) -> None:
    X = form((rng.random((3000, 60)) < 0.1).astype(float))
    y = X @ rng.normal(size=60) + rng.normal(size=3000) > 2.5
    path = Classifier(Standardised(X), y, np.ones(3000), loss)
    for C in (0.004, 0.016, 0.0625, 0.25, 1.0):
        path.fit(C)
        best = minimize(lambda v, C=C: path._at(v, C)[:2], path.point, jac=True, tol=1e-14).fun
        assert path._at(path.point, C).value <= best * (1.0 + 1e-3)


def test_a_metric_refines_by_its_own_loss_if_it_has_one() -> None:
    own = rw.DiscountedLoss(discount=lambda m: m**-0.5, name="root")
    assert refined_by(own) is own
    names = {"ap": "ap", "ndcg@10": "ndcg", "auc": "auc", "precision@5": "ap", "err": "ap"}
    assert {name: refined_by(as_metric(name)).name for name in names} == names
    assert refined_by(None).name == "ap"
