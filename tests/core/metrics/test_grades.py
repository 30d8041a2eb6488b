"""Grades: gains of NDCG, the cascade of ERR, relevance as grade > 0, and what is refused."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_problems import ATOL, NAMES, SCORES, draw_scores
from sklearn.metrics import ndcg_score

from rankwise import metrics
from rankwise.metrics.gains import gains_of

RELEVANCE = [name for name in NAMES if not metrics.as_metric(name).graded]
GRADED = [name for name in NAMES if metrics.as_metric(name).graded]


# Expected reciprocal rank


def err_of_order(grades: Any, k: int | None, max_grade: float) -> float:
    """Chapelle et al. (2009), Algorithm 2: from the top down; the mean, where there are several orders."""
    value: Any = 0.0
    on: Any = 1.0
    for place, grade in enumerate(np.moveaxis(np.asarray(grades), -1, 0)[:k], 1):
        stop = (2.0**grade - 1.0) / 2.0**max_grade
        value = value + on * stop / place
        on = on * (1.0 - stop)
    return float(np.mean(value))


@pytest.mark.parametrize("levels", [1, 2, 3, None])
def test_err_is_the_mean_over_the_orders_of_ties(levels: int | None) -> None:
    for seed, n in enumerate([1, 2, 4, 5, 6, 6]):
        rng = np.random.default_rng(seed)
        grades = np.append(rng.choice([0.0, 1.0, 2.0, 4.0, 0.3], n - 1), 3.0)
        scores = draw_scores(rng, n, levels)
        orders = np.array([*permutations(range(n))])
        ranked = grades[orders[(np.diff(scores[orders], axis=1) <= 0.0).all(axis=1)]]  # as the scores allow
        for k in (None, 1, 2, 3, 6, 10):
            expected = err_of_order(ranked, k, grades.max())
            assert metrics.expected_reciprocal_rank(scores, grades, k=k) == pytest.approx(expected, abs=ATOL), k
            expected = err_of_order(ranked, k, 5.0)
            found = metrics.expected_reciprocal_rank(scores, grades, k=k, max_grade=5)
            assert found == pytest.approx(expected, abs=ATOL), k


def test_err_of_queries_has_the_largest_grade_of_all_of_them(rng: np.random.Generator) -> None:
    qid = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 9, 60)))
    scores, grades = rng.integers(0, 4, qid.size), rng.integers(0, 5, qid.size)
    ids, values = metrics.per_query("err@4", scores, grades, qid)
    alone = [metrics.expected_reciprocal_rank(scores[qid == q], grades[qid == q], k=4, max_grade=4) for q in ids]
    np.testing.assert_allclose(values, alone, rtol=0.0, atol=ATOL)


def test_err_of_one_tie_of_equal_grades_is_a_geometric_series() -> None:
    n, stop = 3000, 3.0 / 16.0
    expected = np.sum(stop * (1.0 - stop) ** np.arange(n) / np.arange(1, n + 1))
    found = metrics.expected_reciprocal_rank(np.zeros(n), np.full(n, 2.0), max_grade=4)
    assert found == pytest.approx(expected, abs=ATOL)


def test_err_of_a_large_tie_with_one_relevant_sample_is_a_harmonic_number() -> None:
    n = 100_000
    found = metrics.expected_reciprocal_rank(np.zeros(n), np.arange(n) == 7)
    assert found == pytest.approx(0.5 * np.sum(1.0 / np.arange(1, n + 1)) / n, rel=1e-9)


def test_err_knows_grades_of_any_size() -> None:
    # 2^2000 is beyond float64, and so little of grade 0.5 is left that it rounds to none.
    assert metrics.expected_reciprocal_rank([3.0, 2.0], [2000.0, 0.5]) == 1.0
    found = metrics.per_query("err", [1.0, 2.0], [2000.0, 0.5], qid=[0, 1])[1]
    assert found.tolist() == [1.0, 0.0]  # a grade above 0 is relevant, and so the query is not empty


# Gains of NDCG


@pytest.mark.parametrize("k", [None, 1, 4, 100])
def test_a_function_of_grades_may_be_the_gain(k: int | None, rng: np.random.Generator) -> None:
    scores, grades = rng.integers(0, 6, 30), rng.integers(0, 4, 30)
    found = metrics.ndcg(scores, grades, k=k, gain=np.sqrt)
    assert found == pytest.approx(ndcg_score([np.sqrt(grades)], [scores], k=k), abs=ATOL)
    metric = metrics.as_metric("ndcg", k, gain=np.sqrt)
    assert metric.gain is np.sqrt
    assert metric(scores, grades) == found


def test_binary_relevance_is_the_same_by_any_gain(rng: np.random.Generator) -> None:
    scores, relevant = rng.integers(0, 9, 50), rng.random(50) < 0.3
    values = {metrics.ndcg(scores, relevant, gain=gain) for gain in ("exp2", "linear", np.sqrt, lambda y: 7.0 * y)}
    assert len(values) == 1


def test_exponential_gains_are_exact_for_whole_grades_and_keep_the_digits_of_small_ones() -> None:
    grades = np.arange(53.0)
    assert gains_of(grades, "exp2").tolist() == [2**y - 1 for y in range(53)]
    tiny = np.array([1e-300, 1e-18, 1e-9])
    np.testing.assert_allclose(gains_of(tiny, "exp2"), tiny * np.log(2.0), rtol=1e-8)


def test_graded_queries_of_very_different_scale_agree_with_scikit_learn_on_each(rng: np.random.Generator) -> None:
    qid = rng.permutation(np.repeat(np.arange(6), 9))
    small = rng.integers(0, 4, qid.size)
    grades = small * 10.0 ** (100.0 * (qid - 3))
    scores = rng.integers(0, 5, qid.size)
    linear = metrics.as_metric("ndcg@4", gain="linear")
    values = metrics.per_query(linear, scores, grades, qid)[1]
    expected = [ndcg_score([small[qid == q]], [scores[qid == q]], k=4) for q in range(6)]
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=ATOL)
    assert metrics.ndcg([1.0, 2.0, 3.0], [1.7e308, 1.7e308, 1.7e308], gain="linear") == 1.0
    assert metrics.ndcg([1.0, 2.0, 3.0], [1023.0, 1023.0, 1023.0]) == 1.0


def test_grades_beyond_two_to_the_power_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"2\^1024, the gain of grade 1024, is beyond float64; pass gain='linear'"):
        metrics.ndcg([1.0, 2.0], [0.0, 1024.0])
    assert metrics.ndcg([1.0, 2.0], [0.0, 1024.0], gain="linear") == 1.0


BAD_GAINS: list[tuple[Any, str]] = [
    ("exp", r"unknown gain 'exp'; use 'exp2' or 'linear'"),
    (2.0, r"unknown gain 2.0"),
    (lambda y: y + 1.0, r"gain must be finite, must be 0 for grade 0, and must not fall"),
    (lambda y: y * (3.0 - y), r"must not fall as grades rise"),
    (lambda y: y[:1], r"and return the same number of values"),
    (lambda y: 1.0 / (y - 1e300) * 0.0 + np.where(y > 1, np.inf, 0.0), r"gain must be finite"),
    (lambda y: "a", r"and return the same number of values"),
]


@pytest.mark.parametrize(("gain", "said"), BAD_GAINS)
def test_gains_that_are_none_are_refused(gain: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        metrics.ndcg(SCORES, [0, 1, 2, 3], gain=gain)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metric": "ap", "gain": "linear"}, r"ap has no gains; gain= is for 'ndcg'"),
        ({"metric": "err@3", "gain": "linear"}, r"err@3 has no gains"),
        ({"metric": "ndcg", "max_grade": 4}, r"ndcg has no largest grade; max_grade= is for 'err'"),
        ({"metric": "mrr", "max_grade": 4}, r"mrr has no largest grade"),
        *[({"metric": "err", "max_grade": wrong}, r"max_grade must be a positive number") for wrong in (0, -1, "4")],
        *[({"metric": "err", "max_grade": wrong}, r"max_grade must be") for wrong in (np.nan, np.inf, True)],
    ],
)
def test_options_that_a_metric_does_not_know_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        metrics.as_metric(**options)


def test_a_grade_above_the_largest_is_refused() -> None:
    with pytest.raises(ValueError, match=r"grades\[2\] is 5, above max_grade=4; pass the largest possible grade"):
        metrics.expected_reciprocal_rank([1.0, 2.0, 3.0], [0, 4, 5], max_grade=4)


# Relevance


@pytest.mark.parametrize("name", RELEVANCE)
def test_metrics_of_relevance_take_grades_above_zero_for_relevant(name: str, rng: np.random.Generator) -> None:
    scores, grades = rng.integers(0, 20, 60), rng.choice([0.0, 0.25, 1.0, 4.0], 60, p=[0.6, 0.2, 0.1, 0.1])
    qid = rng.permutation(np.repeat(["a", "b", "c", "d"], 15))
    metric = metrics.as_metric(name)
    assert metric(scores, grades, qid=qid) == metric(scores, grades > 0.0, qid=qid)
    assert metrics.bootstrap_interval(name, scores, grades, qid) == metrics.bootstrap_interval(
        name, scores, grades > 0.0, qid
    )


@pytest.mark.parametrize("name", GRADED)
def test_metrics_of_grades_tell_grades_apart(name: str) -> None:
    metric = metrics.as_metric(name)
    assert metric([2.0, 1.0], [2, 1]) > metric([1.0, 2.0], [2, 1])
    assert metric([2.0, 1.0], [True, True]) == metric([1.0, 2.0], [1, 1])


# Hostile


@given(
    wrong=st.floats(max_value=0.0, exclude_max=True) | st.just(np.nan) | st.just(np.inf),
    at=st.integers(0, 3),
)
def test_grades_that_are_negative_or_not_finite_are_refused(wrong: float, at: int) -> None:
    grades = np.arange(4.0)
    grades[at] = wrong
    for metric in map(metrics.as_metric, NAMES):
        called = "grades" if metric.graded else "relevant"
        with pytest.raises(ValueError, match=rf"{called}\[{at}\] is .*: grades must be finite and at least 0; shift"):
            metric(SCORES, grades)


@pytest.mark.parametrize("name", NAMES)
def test_one_grade_only_is_perfect_or_empty(name: str) -> None:
    metric, scores, three = metrics.as_metric(name), np.arange(5.0), np.full(5, 3.0)
    assert np.isnan(metric(scores, 0.0 * three))
    expected = metric(scores, np.ones(5, bool))
    if name.startswith("err"):  # 7/8 of the readers stop at the first, and so on
        expected = sum(7 / 8 ** (m + 1) / (m + 1) for m in range(metric.k or 5))
    assert metric(scores, three) == pytest.approx(expected, abs=ATOL, nan_ok=True)


@pytest.mark.parametrize("name", ["ap", "ndcg", "mrr", "err"])
def test_a_cut_beyond_the_query_cuts_nothing(name: str, rng: np.random.Generator) -> None:
    scores, grades = rng.integers(0, 5, 20), rng.integers(0, 3, 20)
    whole = metrics.as_metric(name)(scores, grades)
    assert metrics.as_metric(name, 20)(scores, grades) == pytest.approx(whole, abs=ATOL)
    assert metrics.as_metric(f"{name}@1000")(scores, grades) == pytest.approx(whole, abs=ATOL)
    assert metrics.recall_at(scores, grades, 1000) == 1.0
