"""Metrics agree with scikit-learn, ties and all, or with the mean over all orders of the tied; as do their scorers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from rankwise import metrics
from rankwise.metrics.steps import rank

ATOL = 1e-12
NAMES = ["ap", "auc", "mrr", "mrr@3", "ndcg", "ndcg@1", "ndcg@7", "precision@1", "precision@4", "precision@50"]
# Many ties, some, none; one value only.
LEVELS = [1, 2, 5, 30, None]
Problem = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]


def draw_scores(rng: np.random.Generator, n: int, levels: int | None) -> NDArray[np.float64]:
    return rng.normal(size=n) if levels is None else rng.integers(0, levels, n) / 4.0 - 1.0


def problems(levels: int | None, sizes: tuple[int, ...] = (2, 3, 10, 200)) -> Iterator[tuple[Any, Any, Any]]:
    """Scores, relevance with both classes, gains of which not all are 0."""
    for seed, n in enumerate([n for n in sizes for _ in range(8)]):
        rng = np.random.default_rng(seed)
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
        yield draw_scores(rng, n, levels), relevant, relevant * rng.choice([0.5, 1.0, 2.0, 3.0, 1e-3], n)


def queries(rng: np.random.Generator) -> Problem:
    """Queries of 1 to 12 samples in shuffled order: some without positives or negatives."""
    qid = rng.permutation(np.repeat(np.arange(-20, 20) * 3, rng.integers(1, 13, 40)))
    return rng.integers(0, 4, qid.size) / 2.0, rng.random(qid.size) < 0.4, qid


def over_orders(scores: Any, relevant: Any, of_order: Callable[[NDArray[np.bool_]], float]) -> float:
    """The mean over all orders of the samples that the scores allow."""
    values = [
        of_order(relevant[list(order)])
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return float(np.mean(values))


@pytest.mark.parametrize("levels", LEVELS)
def test_average_precision_is_that_of_scikit_learn(levels: int | None) -> None:
    for scores, relevant, _ in problems(levels):
        found = metrics.average_precision(scores, relevant)
        assert type(found) is float
        assert found == pytest.approx(average_precision_score(relevant, scores), abs=ATOL)


@pytest.mark.parametrize("levels", LEVELS)
def test_auc_is_that_of_scikit_learn(levels: int | None) -> None:
    for scores, relevant, _ in problems(levels):
        assert metrics.auc(scores, relevant) == pytest.approx(roc_auc_score(relevant, scores), abs=ATOL)


@pytest.mark.parametrize("k", [None, 1, 2, 5, 9, 10, 11, 1000])
@pytest.mark.parametrize("levels", LEVELS)
def test_ndcg_is_that_of_scikit_learn_for_gains_and_for_binary_relevance(levels: int | None, k: int | None) -> None:
    for scores, relevant, gains in problems(levels):
        for truth in (relevant, gains):
            expected = ndcg_score([truth.astype(float)], [scores], k=k)
            assert metrics.ndcg(scores, truth, k=k) == pytest.approx(expected, abs=ATOL)


@pytest.mark.parametrize("name", ["ap", "auc", "ndcg"])
def test_a_large_query_agrees_with_scikit_learn(name: str, rng: np.random.Generator) -> None:
    relevant = rng.random(100_000) < 0.01
    scores = np.round(rng.normal(size=relevant.size) + relevant, 3).astype(np.float32)
    expected = {
        "ap": lambda: average_precision_score(relevant, scores),
        "auc": lambda: roc_auc_score(relevant, scores),
        "ndcg": lambda: ndcg_score([relevant.astype(float)], [scores]),
    }[name]()
    assert metrics.as_metric(name)(scores, relevant) == pytest.approx(expected, abs=ATOL)


@pytest.mark.parametrize("k", [None, 1, 2, 3, 10])
@pytest.mark.parametrize("levels", [1, 2, 3, None])
def test_reciprocal_rank_is_the_mean_over_the_orders_of_ties(levels: int | None, k: int | None) -> None:
    def of_order(relevant: NDArray[np.bool_]) -> float:
        place = int(np.argmax(relevant)) + 1
        return 1.0 / place if k is None or place <= k else 0.0

    for scores, relevant, _ in problems(levels, sizes=(2, 4, 6)):
        expected = over_orders(scores, relevant, of_order)
        assert metrics.reciprocal_rank(scores, relevant, k=k) == pytest.approx(expected, abs=ATOL)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6, 10])
@pytest.mark.parametrize("levels", [1, 2, 3, None])
def test_precision_is_the_mean_over_the_orders_of_ties_and_is_over_k(levels: int | None, k: int) -> None:
    for scores, relevant, _ in problems(levels, sizes=(2, 4, 6)):
        expected = over_orders(scores, relevant, lambda ranked: np.sum(ranked[:k]) / k)
        assert metrics.precision_at(scores, relevant, k) == pytest.approx(expected, abs=ATOL)


def test_the_reciprocal_rank_of_a_large_tie_is_a_harmonic_number() -> None:
    n = 100_000
    found = metrics.reciprocal_rank(np.zeros(n), np.arange(n) == 7)
    assert found == pytest.approx(np.sum(1.0 / np.arange(1, n + 1)) / n, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_queries_in_any_order_are_judged_one_by_one(name: str, rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    metric = metrics.as_metric(name)
    ids, values = metrics.per_query(name, scores, relevant, qid)
    assert ids.tolist() == np.unique(qid).tolist()
    alone = [metric(scores[qid == q], relevant[qid == q]) for q in ids]
    np.testing.assert_allclose(values, alone, rtol=0.0, atol=ATOL)
    assert np.isnan(values).any()
    assert metric(scores, relevant, qid=qid) == pytest.approx(np.nanmean(alone), abs=ATOL)
    assert metric(scores, relevant, qid=qid, empty="zero") == pytest.approx(np.nan_to_num(alone).mean(), abs=ATOL)
    named = metrics.per_query(name, scores, relevant, np.char.add("q", (qid + 100).astype(str)))[1]
    assert np.nanmean(named) == pytest.approx(np.nanmean(alone), abs=ATOL)


def test_more_queries_than_16_bits_count_are_kept_apart(rng: np.random.Generator) -> None:
    qid = np.repeat(np.arange(70_000), 2)
    first = rng.random(70_000) < 0.5
    relevant = np.stack([first, ~first], axis=1).ravel()
    values = metrics.per_query("ap", np.tile([1.0, 0.0], 70_000), relevant, qid)[1]
    assert np.array_equal(values, np.where(first, 1.0, 0.5))


def test_graded_queries_of_very_different_scale_agree_with_scikit_learn_on_each(rng: np.random.Generator) -> None:
    qid = rng.permutation(np.repeat(np.arange(6), 9))
    grades = rng.integers(0, 4, qid.size)
    gains = grades * 10.0 ** (100.0 * (qid - 3))
    scores = rng.integers(0, 5, qid.size)
    values = metrics.per_query("ndcg", scores, gains, qid, k=4)[1]
    expected = [ndcg_score([grades[qid == q]], [scores[qid == q]], k=4) for q in range(6)]
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=ATOL)
    assert metrics.ndcg([1.0, 2.0, 3.0], [1.7e308, 1.7e308, 1.7e308]) == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_by_name_is_its_function(name: str, rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    functions: dict[str, Callable[..., float]] = {
        "ap": metrics.average_precision,
        "auc": metrics.auc,
        "mrr": metrics.reciprocal_rank,
        "ndcg": metrics.ndcg,
        "precision": metrics.precision_at,
    }
    base, _, cut = name.partition("@")
    options = {"k": int(cut)} if cut else {}
    metric = metrics.as_metric(name)
    assert (metric.name, metric.k) == (name, options.get("k"))
    assert metrics.as_metric(metric) is metric
    assert metrics.as_metric(base, **options) == metric == pickle.loads(pickle.dumps(metric))
    for empty in ("skip", "zero"):
        found = functions[base](scores, relevant, qid=qid, empty=empty, **options)
        assert found == metric(scores, relevant, qid=qid, empty=empty)
    assert np.array_equal(
        metrics.per_query(base, scores, relevant, qid, **options)[1],
        metrics.per_query(metric, scores, relevant, qid)[1],
        equal_nan=True,
    )


@pytest.mark.parametrize("name", NAMES)
def test_inputs_may_be_lists_or_pandas_or_of_any_type(name: str) -> None:
    scores, relevant, qid = [3, 1, 1, 0, 2], [1, 0, 1, 0, 1], ["b", "a", "a", "b", "b"]
    metric = metrics.as_metric(name)
    expected = metric(np.array(scores, float), np.array(relevant, bool), qid=np.array(qid))
    assert metric(scores, relevant, qid=qid) == expected
    index = [4, 3, 2, 1, 0]
    series = [pd.Series(values, index=index) for values in (scores, relevant, qid)]
    assert metric(series[0], series[1], qid=series[2]) == expected
    assert metric(np.array(scores, np.float32), np.array(relevant, np.uint8), qid=qid) == expected


@pytest.mark.parametrize("name", NAMES)
def test_scores_that_keep_the_order_and_the_ties_keep_the_value(name: str) -> None:
    metric = metrics.as_metric(name)
    for scores, relevant, _ in problems(5):
        assert metric(1e5 * scores - 3.0, relevant) == pytest.approx(metric(scores, relevant), abs=ATOL)


ONE_CLASS = {"no positives": [False] * 3, "no negatives": [True] * 3, "no samples": []}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ONE_CLASS)
def test_an_empty_query_is_nan_or_zero_or_refused_and_one_without_negatives_is_perfect(kind: str, name: str) -> None:
    relevant = np.array(ONE_CLASS[kind], bool)
    scores = np.array([0.5, 2.0, 0.5])[: relevant.size]
    metric = metrics.as_metric(name)
    if kind == "no negatives" and name != "auc":
        perfect = min(1.0, 3 / metric.k) if name.startswith("precision") and metric.k else 1.0
        for empty in ("skip", "zero", "error"):
            assert metric(scores, relevant, empty=empty) == pytest.approx(perfect)
        return
    assert np.isnan(metric(scores, relevant))
    assert metric(scores, relevant, empty="zero") == 0.0
    said = rf"the query has {relevant.sum()} positives and {(~relevant).sum()} negatives and so no {name}; remove it"
    with pytest.raises(ValueError, match=said):
        metric(scores, relevant, empty="error")


@pytest.mark.parametrize("name", NAMES)
def test_empty_queries_are_skipped_or_zero_or_named(name: str) -> None:
    scores, relevant, qid = [3.0, 2.0, 5.0, 1.0], [True, False, False, False], [8, 8, 9, 9]
    metric = metrics.as_metric(name)
    alone = metric(scores[:2], relevant[:2])
    assert metric(scores, relevant, qid=qid) == alone
    assert metric(scores, relevant, qid=qid, empty="zero") == alone / 2
    assert metrics.per_query(name, scores, relevant, qid, empty="zero")[1].tolist() == [alone, 0.0]
    with pytest.raises(ValueError, match=rf"query 9 has 0 positives and 2 negatives and so no {name}; remove it"):
        metric(scores, relevant, qid=qid, empty="error")
    with pytest.raises(ValueError, match=r"query 9 has 0 positives"):
        metrics.per_query(name, scores, relevant, qid, empty="error")


def test_no_queries_have_no_mean() -> None:
    assert np.isnan(metrics.auc([], [], qid=[]))
    assert metrics.auc([], [], qid=[], empty="zero") == 0.0
    with pytest.raises(ValueError, match=r"there are no queries and so no auc"):
        metrics.auc([], [], qid=[], empty="error")
    assert [part.size for part in metrics.per_query("ndcg", [], [], [])] == [0, 0]


SCORES, RELEVANT = [0.5, 2.0, -1.0, 0.25], [True, False, True, False]
WRONG_FOR_ALL: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nan": ({"scores": [0.5, np.nan, 1.0, 2.0]}, ValueError, r"scores\[1\] is nan: not finite"),
    "inf": ({"scores": [0.5, 1.0, 1.0, np.inf]}, ValueError, r"scores\[3\] is inf: not finite"),
    "matrix": ({"scores": np.zeros((4, 1))}, ValueError, r"scores must be one-dimensional, got shape \(4, 1\)"),
    "strings": ({"scores": list("abcd")}, TypeError, r"scores must be real numbers"),
    "too few": ({"scores": SCORES[:3]}, ValueError, r"has 4 entries and scores has 3.*equal length"),
    "too many": ({"relevant": [*RELEVANT, True]}, ValueError, r"has 5 entries and scores has 4"),
    "relevant matrix": ({"relevant": np.zeros((2, 2))}, ValueError, r"has shape \(2, 2\) and scores has 4"),
    "relevant strings": ({"relevant": list("1010")}, TypeError, r"got dtype <U1; convert"),
    "no relevant": ({"relevant": None}, TypeError, r"must be an array, got NoneType"),
    "qid": ({"qid": [0, 0, 1]}, ValueError, r"qid has 3 entries and scores has 4"),
    "qid nan": ({"qid": [0, 0, 1, np.nan]}, ValueError, r"qid\[3\] is nan"),
    "empty": ({"empty": "drop"}, ValueError, r"unknown empty='drop'; use one of 'zero', 'skip', 'error'"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", WRONG_FOR_ALL)
def test_wrong_input_is_refused_by_every_metric(kind: str, name: str) -> None:
    wrong, error, said = WRONG_FOR_ALL[kind]
    inputs = {"scores": SCORES, "relevant": RELEVANT, "qid": [1, 1, 2, 2], "empty": "skip", **wrong}
    with pytest.raises(error, match=said):
        metrics.as_metric(name)(**inputs)
    with pytest.raises(error, match=said):
        metrics.per_query(name, **inputs)
    with pytest.raises(error, match=said):
        metrics.bootstrap_interval(name, **inputs, n_resamples=2)


@pytest.mark.parametrize("name", [name for name in NAMES if "ndcg" not in name])
@pytest.mark.parametrize("wrong", [2.0, -1.0, 0.5, np.nan])
def test_relevance_that_is_not_binary_is_refused_by_metrics_without_grades(name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=rf"must be binary: relevant\[2\] is {wrong}"):
        metrics.as_metric(name)(SCORES, [0.0, 1.0, wrong, 0.0])


@given(wrong=st.floats(max_value=0.0, exclude_max=True) | st.just(np.nan) | st.just(np.inf), at=st.integers(0, 3))
def test_gains_that_are_negative_or_not_finite_are_refused(wrong: float, at: int) -> None:
    gains = np.arange(4.0)
    gains[at] = wrong
    with pytest.raises(ValueError, match=rf"gains\[{at}\] is .*: gains must be finite and at least 0; shift them"):
        metrics.ndcg(SCORES, gains)


@given(st.data())
def test_values_lie_between_zero_and_one(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    scores = data.draw(st.lists(st.sampled_from([-1e300, -0.0, 0.0, 5e-324, 1.0, 1e300]), min_size=n, max_size=n))
    relevant = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    qid = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    for name in NAMES:
        values = metrics.per_query(name, scores, relevant, qid, empty="zero")[1]
        assert (values >= 0.0).all()
        assert (values <= 1.0 + ATOL).all()


WRONG_NAMES: list[tuple[Any, int | None, type[Exception], str]] = [
    ("map", None, ValueError, r"unknown metric 'map'; use one of 'ap', 'ndcg', 'mrr', 'auc', 'precision'"),
    ("", None, ValueError, r"unknown metric ''"),
    ("ndcg@", None, ValueError, r"the cut-off of 'ndcg@' must be a whole number, at least 1, as in 'ndcg@10'"),
    ("ndcg@0", None, ValueError, r"cut-off of 'ndcg@0'"),
    ("ndcg@-1", None, ValueError, r"cut-off of 'ndcg@-1'"),
    ("ndcg@1.5", None, ValueError, r"cut-off of 'ndcg@1.5'"),
    ("ap@10", None, ValueError, r"ap is not cut at k=10; cut one of 'ndcg', 'mrr', 'precision'"),
    ("auc", 3, ValueError, r"auc is not cut at k=3"),
    ("ndcg@5", 3, ValueError, r"ndcg@5 is cut at 5 already, not at k=3; pass one of the two"),
    ("precision", None, ValueError, r"precision needs the last place that counts; .*'precision@10'"),
    ("ndcg", 0, ValueError, r"k must be at least 1, got 0"),
    ("precision", -3, ValueError, r"k must be at least 1, got -3"),
    ("ndcg", True, TypeError, r"k must be an integer, got bool"),
    ("ndcg", 2.0, TypeError, r"k must be an integer, got float"),
    (3, None, TypeError, r"metric must be a name, such as 'ap' or 'ndcg@10', or a Metric, got int"),
]


@pytest.mark.parametrize(("name", "k", "error", "said"), WRONG_NAMES)
def test_wrong_names_and_cut_offs_are_refused(name: Any, k: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        metrics.as_metric(name, k)
    with pytest.raises(error, match=said):
        metrics.per_query(name, SCORES, RELEVANT, [1, 1, 1, 1], k=k)


def test_the_registry_metric_without_its_cut_off_is_refused_when_called() -> None:
    with pytest.raises(ValueError, match=r"precision needs the last place"):
        metrics.METRICS["precision"](SCORES, RELEVANT)


# Intervals


@pytest.mark.parametrize("name", NAMES)
def test_samples_drawn_several_times_count_as_often(name: str, rng: np.random.Generator) -> None:
    metric = metrics.as_metric(name)
    for scores, relevant, gains in problems(5):
        truth = gains if metric.graded else relevant
        times = rng.integers(0, 4, scores.size)
        ranked = rank(scores, truth, None, metric.graded)[2]
        assert ranked is not None
        found = metric.of_steps(ranked.steps(times.astype(float)))
        expected = metric(np.repeat(scores, times), np.repeat(truth, times))
        np.testing.assert_allclose(found, [expected], rtol=0.0, atol=ATOL)


@pytest.mark.parametrize("name", NAMES)
def test_an_interval_over_queries_is_that_of_their_mean(name: str, rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    values = metrics.per_query(name, scores, relevant, qid)[1]
    values = values[~np.isnan(values)]
    low, high = metrics.bootstrap_interval(name, scores, relevant, qid, n_resamples=4000, seed=rng)
    assert low <= values.mean() <= high
    # By the central limit theorem, roughly: 2 · 1.96 standard errors wide.
    assert high - low == pytest.approx(3.92 * values.std() / np.sqrt(values.size), rel=0.1)


@pytest.mark.parametrize("name", ["ap", "auc", "ndcg", "mrr", "precision@20"])
def test_an_interval_over_samples_holds_the_value_and_is_that_of_resampling_them(name: str) -> None:
    rng = np.random.default_rng(3)
    relevant = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + relevant, 1)
    metric = metrics.as_metric(name)
    found = metrics.bootstrap_interval(name, scores, relevant, seed=1, n_resamples=400, level=0.8)
    again = np.random.default_rng(1)
    drawn = [again.integers(200, size=200) for _ in range(400)]
    expected = np.quantile([metric(scores[part], relevant[part]) for part in drawn], [0.1, 0.9])
    assert found == pytest.approx(tuple(expected), abs=ATOL)
    assert found.low <= metric(scores, relevant) <= found.high
    one_query = metrics.bootstrap_interval(name, scores, relevant, [5] * 200, seed=1, n_resamples=400, level=0.8)
    assert one_query == found


def test_a_higher_level_is_a_wider_interval_and_a_seed_gives_the_same_again(rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    narrow, wide = (metrics.bootstrap_interval("ap", scores, relevant, qid, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert metrics.bootstrap_interval("ap", scores, relevant, qid, level=0.5) == narrow
    assert metrics.bootstrap_interval("ap", scores, relevant, qid, level=0.5, seed=1) != narrow


def test_resamples_without_positives_are_drawn_again_or_count_as_zero() -> None:
    scores, relevant = np.arange(20.0), np.arange(20) == 19  # the best, and in about 36 % of resamples missing
    assert metrics.bootstrap_interval("ap", scores, relevant) == (1.0, 1.0)
    assert metrics.bootstrap_interval("ap", scores, relevant, empty="error") == (1.0, 1.0)
    assert metrics.bootstrap_interval("ap", scores, relevant, empty="zero") == (0.0, 1.0)


@pytest.mark.parametrize("qid", [None, [0, 0, 1, 1]], ids=["samples", "queries"])
def test_there_is_no_interval_where_nothing_has_a_value(qid: Any) -> None:
    empty = [False] * 4
    assert np.isnan(metrics.bootstrap_interval("ap", SCORES, empty, qid)).all()
    assert metrics.bootstrap_interval("ap", SCORES, empty, qid, empty="zero") == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"0 positives and \d negatives and so no ap"):
        metrics.bootstrap_interval("ap", SCORES, empty, qid, empty="error")
    none = [] if qid else None
    assert np.isnan(metrics.bootstrap_interval("ap", [], [], none)).all()


def test_one_query_with_a_value_among_several_gives_no_interval() -> None:
    assert np.isnan(metrics.bootstrap_interval("ap", SCORES, [1, 0, 0, 0], [0, 0, 1, 1])).all()
    low, high = metrics.bootstrap_interval("ap", SCORES, [1, 0, 0, 0], [0, 0, 1, 1], empty="zero")
    assert (low, high) == (0.0, 0.5)


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


# Scorers


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


@pytest.mark.parametrize("name", NAMES)
def test_a_scorer_is_the_metric_of_the_scores(name: str, data: Any) -> None:
    X, y, qid = data
    model = LogisticRegression().fit(X, y)
    scorer = metrics.make_ranking_scorer(name)
    metric = metrics.as_metric(name)
    assert _whole(name)(model, X, y) == metric(model.decision_function(X), y)
    assert scorer(model, X, y, qid=qid) == metric(model.decision_function(X), y, qid=qid)


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
    with pytest.raises(TypeError, match=r"_Labels ranks nothing: .* neither decision_function nor predict_proba"):
        scorer(_Labels(), X, y)
    three = LogisticRegression().fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"LogisticRegression has 3 classes and a ranking has 2.*y == label"):
        scorer(three, X, y)
    with pytest.raises(TypeError, match=r"y must be numbers for an estimator without classes_, got dtype <U"):
        scorer(LinearRegression().fit(X, y), X, y.astype(str))
    with pytest.raises(ValueError, match=r"unknown metric 'map'"):
        metrics.make_ranking_scorer("map")
    with pytest.raises(ValueError, match=r"unknown empty='drop'"):
        metrics.make_ranking_scorer("ap", empty="drop")
    with pytest.raises(TypeError, match=r"one_query must be True or False, got array.*passed as qid"):
        metrics.make_ranking_scorer("ap", one_query=np.arange(3))  # type: ignore[arg-type]


def test_a_scorer_treats_empty_queries_as_it_was_told(data: Any) -> None:
    X, _, qid = data
    y = (qid < 15).astype(int)
    model = Perceptron().fit(X, y)
    found = [metrics.make_ranking_scorer("ap", empty=empty)(model, X, y, qid) for empty in ("skip", "zero")]
    assert found[1] == pytest.approx(found[0] / 2)
    with pytest.raises(ValueError, match=r"query 15 has 0 positives"):
        metrics.make_ranking_scorer("ap", empty="error")(model, X, y, qid)


ROUTE = (
    r"got no qid, and would rank all samples as one query.*sklearn\.set_config\(enable_metadata_routing=True\).*"
    r"scorer\.set_score_request\(qid=True\).*params=\{'qid': qid\}.*make_ranking_scorer\('ap', one_query=True\)"
)


def test_a_scorer_without_qid_refuses_and_says_how_to_route_it(data: Any) -> None:
    X, y, qid = data
    with pytest.raises(ValueError, match=ROUTE):
        _scorer("ap")(LogisticRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"one_query=True\) takes all samples as one query and got qid"):
        _whole("ap")(LogisticRegression().fit(X, y), X, y, qid)


@pytest.mark.parametrize("routed", [False, True])
def test_cross_validation_without_routed_qid_has_no_score(data: Any, routed: bool) -> None:
    X, y, qid = data
    folds = list(GroupKFold(3).split(X, y, qid))
    with sklearn.config_context(enable_metadata_routing=routed):
        with pytest.raises(ValueError, match=ROUTE):
            cross_val_score(LogisticRegression(), X, y, cv=folds, scoring=_scorer("ap"), error_score="raise")
        with pytest.warns(UserWarning, match=r"(?s)Scoring failed.*got no qid.*set_score_request\(qid=True\)"):
            found = cross_val_score(LogisticRegression(), X, y, cv=folds, scoring=_scorer("ap"))
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


def _scorer(name: str) -> metrics.RankingScorer:
    return metrics.make_ranking_scorer(name)


def _whole(name: str) -> metrics.RankingScorer:
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
    alone = cross_val_score(
        LogisticRegression(), X, y, cv=GroupKFold(3), scoring=_scorer("ap").set_score_request(qid=False),
        params={"groups": qid},
    )  # fmt: skip
    assert (alone != named[0]).all()
    told = cross_val_score(  # the estimator, or the splitter, may have qid for itself
        LogisticRegression(), X, y, cv=GroupKFold(3), scoring=_whole("ap"), params={"groups": qid}
    )
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
def test_a_scorer_is_pickled_and_cloned_with_its_request(data: Any) -> None:
    X, y, qid = data
    scorer = metrics.make_ranking_scorer("precision@5", empty="zero")
    assert scorer.set_score_request(qid="query") is scorer
    model = LogisticRegression().fit(X, y)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer)
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer), clone(search).scoring):
        assert copy is not scorer
        assert repr(copy) == repr(scorer) == "make_ranking_scorer('precision@5', empty='zero')"
        assert get_routing_for_object(copy).score.requests == {"qid": "query"}
        assert copy(model, X, y, qid) == scorer(model, X, y, qid)


@pytest.mark.usefixtures("routing")
def test_a_scorer_of_one_query_is_copied_and_may_be_asked_for_qid_after_all(data: Any) -> None:
    X, y, qid = data
    model, scorer = LogisticRegression().fit(X, y), _whole("ap")
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer)):
        assert copy.one_query
        assert repr(copy) == "make_ranking_scorer('ap', empty='skip', one_query=True)"
        assert get_routing_for_object(copy).score.requests == {"qid": False}
        assert copy(model, X, y) == scorer(model, X, y)
    assert not scorer.set_score_request(qid=True).one_query
    assert scorer(model, X, y, qid) == metrics.average_precision(model.decision_function(X), y, qid=qid)


def test_importing_the_metrics_and_making_a_scorer_imports_nothing_heavy() -> None:
    code = (
        "import sys, rankwise.metrics as m; m.make_ranking_scorer('ap'); m.ndcg([1.0, 2.0], [1, 0], qid=[1, 2]);"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "numpy" in loaded
    assert not loaded & {"sklearn", "scipy", "numba", "pandas", "torch"}
