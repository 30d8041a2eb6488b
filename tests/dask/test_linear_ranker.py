"""LinearRanker on a cluster: what one machine chooses, and what it fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dask_problems import in_parts, rare
from distributed import Client
from scipy import sparse
from short_search import fewer_candidates

import rankwise as rw
from rankwise.dask import DaskLinearRanker

pytestmark = pytest.mark.distributed
RTOL = 1e-6


def assert_same(found: Any, local: Any) -> None:
    for name in ("model", "at", "pull"):
        np.testing.assert_array_equal(found.history_[name], local.history_[name])
    np.testing.assert_allclose(found.best_score_, local.best_score_, rtol=1e-10)
    scale = np.abs(local.coef_).max()
    np.testing.assert_allclose(found.coef_ / scale, local.coef_ / scale, rtol=0, atol=RTOL)
    np.testing.assert_allclose(found.intercept_ / scale, local.intercept_ / scale, rtol=RTOL, atol=RTOL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_many_samples_of_one_query(client: Client, rng: np.random.Generator, kind: str) -> None:
    X, y = rare(rng, 40_000, 4)
    X = X + 5.0 if kind == "dense" else sparse.csr_matrix(X * (np.abs(X) > 0.7))
    sizes = [15_000, 0, 25_000]
    local = rw.LinearRanker("ap", cv=2).fit(X, y)
    found = DaskLinearRanker("ap", cv=2).fit(in_parts(X, sizes), in_parts(y, sizes))
    assert_same(found, local)
    assert found.exchanged_["rounds"] > 0
    assert type(found.to_local()) is rw.LinearRanker


def test_few_samples_and_grades_in_queries(client: Client, rng: np.random.Generator) -> None:
    X, _ = rare(rng, 2_000, 5)
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=2_000)), 0, 3)
    qid, sizes = rng.integers(0, 40, 2_000), [900, 1_100]
    local = rw.LinearRanker("ndcg@10", cv=2).fit(X, grades, qid)
    found = DaskLinearRanker("ndcg@10", cv=2).fit(*(in_parts(values, sizes) for values in (X, grades, qid)))
    assert_same(found, local)


def test_a_scorer_is_refused(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    with pytest.raises(TypeError, match="on Dask, metric cannot be a scorer"):
        DaskLinearRanker(lambda model, X, y: 0.0).fit(in_parts(X, [50, 50]), in_parts(y, [50, 50]))


GRADES = {
    "one query has the lowest alone": lambda found, qid: np.where(qid == 0, 0, np.digitize(found, [-1, 0, 1]) + 1),
    "every grade is another": lambda found, qid: found - found.min(),
}


@pytest.mark.parametrize(("case", "factor"), [*zip(GRADES, (1e200, 1e-200), strict=True)])
def test_parts_without_the_lowest_grade_and_features_whose_squares_are_no_numbers(
    near_client: Client, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, case: str, factor: float
) -> None:
    monkeypatch.setattr("rankwise.linear.ranker_data._SEARCHED_IN_QUERIES", 120)
    X = rng.normal(size=(200, 2))
    qid = np.arange(200) // 20
    grades = GRADES[case](X[:, 0] + rng.normal(size=200), qid)
    X *= factor
    with fewer_candidates():
        local = rw.LinearRanker("ndcg", cv=2).fit(X, grades, qid)
        found = DaskLinearRanker("ndcg", cv=2).fit(*(in_parts(values, [90, 110]) for values in (X, grades, qid)))
    assert found.exchanged_["rounds"] > 5
    assert_same(found, local)
