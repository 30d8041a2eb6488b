"""Metrics agree with scikit-learn, ties and all, or with the mean over all orders of the tied."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, partial
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_problems import ATOL, LEVELS, NAMES, RELEVANT, SCORES, problems, queries
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score, precision_recall_curve, roc_auc_score

import rankwise as rw
from rankwise import metrics


@cache
def in_all_orders(levels: int | None) -> list[tuple[Any, Any, NDArray[np.bool_]]]:
    """Problems, and the relevance from the top to the bottom in each order of the samples that the scores allow."""
    found = []
    for scores, relevant, _ in problems(levels, sizes=(2, 4, 6)):
        orders = np.array([*permutations(range(len(scores)))])
        allowed = (np.diff(scores[orders], axis=1) <= 0.0).all(axis=1)
        found.append((scores, relevant, relevant[orders[allowed]]))
    return found


def highest_f1(relevant: Any, scores: Any) -> float:
    precision, recall, _ = precision_recall_curve(relevant, scores)
    return max(2 * p * r / (p + r) if p + r > 0 else 0.0 for p, r in zip(precision, recall, strict=True))


PEERS = {"ap": average_precision_score, "auc": roc_auc_score, "f1": highest_f1}


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("name", PEERS)
def test_metrics_are_those_of_scikit_learn(name: str, levels: int | None) -> None:
    for scores, relevant, _ in problems(levels):
        found, expected = metrics.as_metric(name)(scores, relevant), PEERS[name](relevant, scores)
        assert type(found) is float
        assert found == pytest.approx(expected, abs=ATOL)
        if levels is None and isinstance(metrics.as_metric(name), rw.Loss):
            assert rw.ranking_loss(scores, relevant, name) == pytest.approx(1.0 - expected, abs=ATOL)


@pytest.mark.slow
@pytest.mark.parametrize("k", [None, 1, 2, 5, 9, 10, 11, 1000])
@pytest.mark.parametrize("levels", LEVELS)
def test_ndcg_is_that_of_scikit_learn_for_grades_and_for_binary_relevance(levels: int | None, k: int | None) -> None:
    for number, (scores, relevant, grades) in enumerate(problems(levels)):  # of each size, two in each of four ways
        truth = (relevant, grades)[number % 2]
        if number % 4 < 2:
            expected = ndcg_score([2.0**truth - 1.0], [scores], k=k)
            assert metrics.ndcg(scores, truth, k=k) == pytest.approx(expected, abs=ATOL)
        else:
            linear = ndcg_score([truth.astype(float)], [scores], k=k)
            assert metrics.ndcg(scores, truth, k=k, gain="linear") == pytest.approx(linear, abs=ATOL)


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


@pytest.mark.parametrize("levels", [1, 2, 3, None])
def test_reciprocal_rank_precision_and_recall_are_means_over_the_orders_of_ties(levels: int | None) -> None:
    for scores, relevant, orders in in_all_orders(levels):
        place = np.argmax(orders, axis=1) + 1
        assert metrics.reciprocal_rank(scores, relevant) == pytest.approx(np.mean(1.0 / place), abs=ATOL)
        for k in (1, 2, 3, 5, 6, 10):
            found = orders[:, :k].sum(axis=1)
            expected = np.where(place <= k, 1.0 / place, 0.0).mean(), np.mean(found / k), found.mean() / relevant.sum()
            functions = metrics.reciprocal_rank, metrics.precision_at, metrics.recall_at
            for function, value in zip(functions, expected, strict=True):
                assert function(scores, relevant, k=k) == pytest.approx(value, abs=ATOL), (function, k)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 1000])
def test_average_precision_at_k_is_the_sum_to_there_over_the_best_there_is(k: int) -> None:
    for scores, relevant, _ in problems(None):
        ranked = relevant[np.argsort(-scores)]
        precisions = np.cumsum(ranked) / np.arange(1, ranked.size + 1)
        expected = np.sum((precisions * ranked)[:k]) / min(k, ranked.sum())
        assert metrics.average_precision(scores, relevant, k=k) == pytest.approx(expected, abs=ATOL)


def test_a_tie_that_average_precision_at_k_cuts_is_one_step_of_what_is_left() -> None:
    # The third place is a third of a step of 3 with 2 positives: 2/3 of a positive, at precision (1 + 2/3)/3.
    found = metrics.average_precision([9, 8, 5, 5, 5, 1], [1, 0, 1, 1, 0, 1], k=3)
    assert found == pytest.approx((1.0 + (2 / 3) * (1 + 2 / 3) / 3) / 3, abs=ATOL)


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
    ones = np.nan_to_num(alone, nan=1.0).mean()
    assert metric(scores, relevant, qid=qid, empty="one") == pytest.approx(ones, abs=ATOL)
    for empty, instead in (("zero", 0.0), ("one", 1.0)):
        found = metrics.per_query(name, scores, relevant, qid, empty=empty)[1]
        np.testing.assert_allclose(found, np.nan_to_num(alone, nan=instead), rtol=0.0, atol=ATOL)
    first = ids[np.isnan(alone)][0]
    with pytest.raises(ValueError, match=rf"query {first} has \d+ positives and \d+ neg.*so it has no {name}; remove"):
        metric(scores, relevant, qid=qid, empty="error")
    named = metrics.per_query(name, scores, relevant, np.char.add("q", (qid + 100).astype(str)))[1]
    assert np.nanmean(named) == pytest.approx(np.nanmean(alone), abs=ATOL)


def test_more_queries_than_16_bits_count_are_kept_apart(rng: np.random.Generator) -> None:
    qid = np.repeat(np.arange(70_000), 2)
    first = rng.random(70_000) < 0.5
    relevant = np.stack([first, ~first], axis=1).ravel()
    values = metrics.per_query("ap", np.tile([1.0, 0.0], 70_000), relevant, qid)[1]
    assert np.array_equal(values, np.where(first, 1.0, 0.5))


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_by_name_is_its_function(name: str, rng: np.random.Generator) -> None:
    scores, relevant, qid = queries(rng)
    functions: dict[str, Callable[..., float]] = {
        "ap": metrics.average_precision,
        "auc": metrics.auc,
        "err": metrics.expected_reciprocal_rank,
        "f1": metrics.f_measure,
        "mrr": metrics.reciprocal_rank,
        "ndcg": metrics.ndcg,
        "precision": metrics.precision_at,
        "recall": metrics.recall_at,
    }
    base, _, cut = name.partition("@")
    options = {"k": int(cut)} if cut else {}
    metric = metrics.as_metric(name)
    assert (metric.name, metric.k) == (name, options.get("k"))
    assert metrics.as_metric(metric) is metric
    assert metrics.as_metric(base, **options) == metric == pickle.loads(pickle.dumps(metric))
    for empty in ("skip", "zero", "one"):
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


ONE_CLASS = {"no positives": [False] * 3, "no negatives": [True] * 3, "no samples": []}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ONE_CLASS)
def test_an_empty_query_is_nan_or_zero_or_refused_and_one_without_negatives_is_perfect(kind: str, name: str) -> None:
    relevant = np.array(ONE_CLASS[kind], bool)
    scores = np.array([0.5, 2.0, 0.5])[: relevant.size]
    metric = metrics.as_metric(name)
    if kind == "no negatives" and name != "auc":
        perfect = {"precision@4": 3 / 4, "precision@50": 3 / 50, "recall@1": 1 / 3}.get(name, 1.0)
        if name.startswith("err"):
            perfect = 1 / 2 + 1 / 4 / 2 + 1 / 8 / 3
        for empty in ("skip", "zero", "one", "error"):
            assert metric(scores, relevant, empty=empty) == pytest.approx(perfect)
        return
    assert np.isnan(metric(scores, relevant))
    assert metric(scores, relevant, empty="zero") == 0.0
    assert metric(scores, relevant, empty="one") == 1.0
    counts = f"{relevant.sum()} positives and {(~relevant).sum()} negatives"
    said = f"the query has {counts}, so it has no {name}; remove it"
    with pytest.raises(ValueError, match=said):
        metric(scores, relevant, empty="error")


def test_no_queries_have_no_mean() -> None:
    assert np.isnan(metrics.auc([], [], qid=[]))
    assert metrics.auc([], [], qid=[], empty="zero") == 0.0
    assert metrics.auc([], [], qid=[], empty="one") == 1.0
    with pytest.raises(ValueError, match=r"there are no queries, so there is no auc"):
        metrics.auc([], [], qid=[], empty="error")
    assert [part.size for part in metrics.per_query("ndcg", [], [], [])] == [0, 0]


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
    "empty": ({"empty": "drop"}, ValueError, r"unknown empty='drop'; use one of 'skip', 'zero', 'one', 'error'"),
}


@pytest.mark.parametrize("name", NAMES)
def test_wrong_input_is_refused_by_every_metric(name: str) -> None:
    for wrong, error, said in WRONG_FOR_ALL.values():
        inputs = {"scores": SCORES, "relevant": RELEVANT, "qid": [1, 1, 2, 2], "empty": "skip", **wrong}
        for function in (metrics.as_metric(name), partial(metrics.per_query, name)):
            with pytest.raises(error, match=said):
                function(**inputs)


@settings(max_examples=60)
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
    ("map", None, ValueError, r"unknown metric 'map'; use one of 'ap', 'ndcg', 'mrr', 'auc', .*'recall', 'err'"),
    ("", None, ValueError, r"unknown metric ''"),
    ("ndcg@", None, ValueError, r"the cut-off of 'ndcg@' must be a whole number, at least 1, as in 'ndcg@10'"),
    ("ndcg@0", None, ValueError, r"cut-off of 'ndcg@0'"),
    ("ndcg@-1", None, ValueError, r"cut-off of 'ndcg@-1'"),
    ("ndcg@1.5", None, ValueError, r"cut-off of 'ndcg@1.5'"),
    ("auc@10", None, ValueError, r"auc cannot be cut at k=10; only 'ap', 'ndcg', 'mrr', 'precision', 'recall'"),
    ("recall", None, ValueError, r"recall needs the last place that counts; .*'recall@10'"),
    ("err@0", None, ValueError, r"cut-off of 'err@0'"),
    ("auc", 3, ValueError, r"auc cannot be cut at k=3"),
    ("ndcg@5", 3, ValueError, r"ndcg@5 is already cut at 5, not at k=3; pass only one of them"),
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
