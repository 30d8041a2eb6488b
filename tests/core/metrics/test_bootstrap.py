"""Metrics of samples drawn again, as often as is said, and the intervals that these give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from metric_problems import ATOL, NAMES, RELEVANT, SCORES, problems, queries

from rankwise import metrics
from rankwise.metrics import resampled


@pytest.mark.parametrize("name", NAMES)
def test_an_interval_over_queries_is_that_of_their_mean(name: str, rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    values = metrics.per_query(name, scores, relevant, qid)[1]
    values = values[~np.isnan(values)]
    low, high = metrics.bootstrap_interval(name, scores, relevant, qid, n_resamples=2000, seed=rng)
    assert low <= values.mean() <= high
    # By the central limit theorem, roughly: 2 · 1.96 standard errors wide.
    assert high - low == pytest.approx(3.92 * values.std() / np.sqrt(values.size), rel=0.1)


@pytest.mark.parametrize("name", ["ap", "auc", "ndcg", "mrr", "precision@20"])
def test_an_interval_over_samples_holds_the_value_and_is_that_of_resampling_them(name: str) -> None:
    rng = np.random.default_rng(3)
    relevant = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + relevant, 1)
    metric = metrics.as_metric(name)
    found = metrics.bootstrap_interval(name, scores, relevant, seed=1, n_resamples=200, level=0.8)
    again = np.random.default_rng(1)
    drawn = [again.integers(200, size=200) for _ in range(200)]
    expected = np.quantile([metric(scores[part], relevant[part]) for part in drawn], [0.1, 0.9])
    assert found == pytest.approx(tuple(expected), abs=ATOL)
    assert found.low <= metric(scores, relevant) <= found.high
    one_query = metrics.bootstrap_interval(name, scores, relevant, [5] * 200, seed=1, n_resamples=200, level=0.8)
    assert one_query == found


def test_a_higher_level_is_a_wider_interval_and_a_seed_gives_the_same_again(rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    narrow, wide = (metrics.bootstrap_interval("ap", scores, relevant, qid, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert metrics.bootstrap_interval("ap", scores, relevant, qid, level=0.5) == narrow
    assert metrics.bootstrap_interval("ap", scores, relevant, qid, level=0.5, seed=1) != narrow


def test_resamples_without_positives_are_drawn_again_or_count_as_zero() -> None:
    scores, relevant = np.arange(20.0), np.arange(20) == 19  # the best, and in about 36 % of resamples missing
    assert metrics.bootstrap_interval("ap", scores, relevant, n_resamples=300) == (1.0, 1.0)
    for empty, low in (("error", 1.0), ("zero", 0.0), ("one", 1.0)):
        assert metrics.bootstrap_interval("ap", scores, relevant, empty=empty, n_resamples=300) == (low, 1.0), empty


@pytest.mark.parametrize("qid", [None, [0, 0, 1, 1]], ids=["samples", "queries"])
def test_there_is_no_interval_where_nothing_has_a_value(qid: Any) -> None:
    empty = [False] * 4
    assert np.isnan(metrics.bootstrap_interval("ap", SCORES, empty, qid)).all()
    assert metrics.bootstrap_interval("ap", SCORES, empty, qid, empty="zero") == (0.0, 0.0)
    assert metrics.bootstrap_interval("ap", SCORES, empty, qid, empty="one") == (1.0, 1.0)
    with pytest.raises(ValueError, match=r"0 positives and \d negatives, so it has no ap"):
        metrics.bootstrap_interval("ap", SCORES, empty, qid, empty="error")
    none = [] if qid else None
    assert np.isnan(metrics.bootstrap_interval("ap", [], [], none)).all()


def test_one_query_with_a_value_among_several_gives_no_interval() -> None:
    assert np.isnan(metrics.bootstrap_interval("ap", SCORES, [1, 0, 0, 0], [0, 0, 1, 1])).all()
    low, high = metrics.bootstrap_interval("ap", SCORES, [1, 0, 0, 0], [0, 0, 1, 1], empty="zero")
    assert (low, high) == (0.0, 0.5)
    low, high = metrics.bootstrap_interval("ap", SCORES, [1, 0, 0, 0], [0, 0, 1, 1], empty="one")
    assert (low, high) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"level": 0.0}, ValueError, r"level must lie between 0 and 1, such as 0.95, got 0.0"),
        ({"level": 95}, ValueError, r"level must lie between 0 and 1, such as 0.95, got 95"),
        ({"level": np.nan}, ValueError, r"level must lie between"),
        ({"level": "0.9"}, TypeError, r"level must be a number between 0 and 1, such as 0.95, got '0.9'"),
        ({"n_resamples": 0}, ValueError, r"n_resamples must be at least 1, got 0"),
        ({"n_resamples": 10.0}, TypeError, r"n_resamples must be an integer, got float"),
    ],
)
def test_wrong_options_of_an_interval_are_refused(options: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        metrics.bootstrap_interval("ap", SCORES, RELEVANT, **options)


@pytest.mark.parametrize("name", NAMES)
def test_samples_count_as_often_as_they_were_drawn(name: str, rng: np.random.Generator) -> None:
    metric = metrics.as_metric(name, max_grade=3.0 if name.startswith("err") else None)  # 3 may not be drawn
    for scores, relevant, grades in problems(5):
        truth = grades if metric.graded else relevant
        counts = rng.integers(0, 4, (3, scores.size))
        expected = [metric(np.repeat(scores, row), np.repeat(truth, row)) for row in counts]
        np.testing.assert_allclose(resampled(metric, scores, truth, counts), expected, rtol=0.0, atol=ATOL)


@pytest.mark.parametrize("name", ["ap", "ndcg", "err@2", "recall@1"])
def test_a_draw_without_positives_has_no_value(name: str) -> None:
    found = resampled(name, [2.0, 1.0], [True, False], [[1, 0], [0, 2], [1, 1]])
    assert np.isnan(found).tolist() == [False, True, False]
    assert np.isnan(resampled(name, [2.0, 1.0], [True, False], [[0, 0]])).all()


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 1], r"shape \(2,\).*one column per sample, 2"),
        ([[1, 1, 1]], r"shape \(1, 3\).*one column per sample, 2"),
        ([[1, -1]], "a number below 0"),
        ([[1, np.nan]], "or NaN"),
    ],
)
def test_counts_that_mean_nothing_are_refused(counts: list, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        resampled("ap", [2.0, 1.0], [True, False], counts)
