"""Two rankings compared: means and differences by query, intervals by the same draws, p-values against enumeration."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest
from metric_problems import ATOL, NAMES
from scipy.stats import wilcoxon

from rankwise import metrics
from rankwise.metrics import compare

Problem = tuple[Any, Any, Any, Any]


def two_models(rng: np.random.Generator, n_queries: int = 40, better: float = 0.5) -> Problem:
    """Scores A and B, grades and queries in any order, B the closer to the grades; a tenth of the queries is empty."""
    qid = rng.permutation(np.repeat(np.arange(n_queries), 10))
    grades = rng.integers(0, 4, qid.size)
    grades[qid % 10 == 9] = 0
    a, b = (np.round(grades * weight + rng.normal(size=qid.size), 1) for weight in (0.3, 0.3 + better))
    return a, b, grades, qid


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("empty", ["skip", "zero", "one"])
def test_means_and_differences_are_those_of_the_metric(name: str, empty: str, rng: np.random.Generator) -> None:
    a, b, grades, qid = two_models(rng)
    found = compare(name, a, b, grades, qid, empty=empty, n_resamples=20)
    metric = metrics.as_metric(name)
    assert found.metric == metric
    assert found.mean_a == pytest.approx(metric(a, grades, qid=qid, empty=empty), abs=ATOL)
    assert found.mean_b == pytest.approx(metric(b, grades, qid=qid, empty=empty), abs=ATOL)
    assert found.difference == pytest.approx(found.mean_b - found.mean_a, abs=ATOL)
    ids, values = metrics.per_query(name, b, grades, qid, empty=empty)
    counts = ~np.isnan(values)
    assert found.ids.tolist() == ids[counts].tolist()
    assert found.values_b.tolist() == values[counts].tolist()
    np.testing.assert_allclose(found.differences, found.values_b - found.values_a, rtol=0.0, atol=ATOL)
    assert (found.better, found.worse, found.equal) == tuple(
        np.sum(np.sign(found.differences) == sign) for sign in (1, -1, 0)
    )
    assert found.ids.size == (36 if empty == "skip" and name != "auc" else np.sum(counts))


def test_the_interval_is_that_of_the_mean_difference_over_queries(rng: np.random.Generator) -> None:
    a, b, grades, qid = two_models(rng, 200)
    found = compare("ndcg@5", a, b, grades, qid, n_resamples=4000, level=0.9)
    assert found.over == "queries"
    assert found.level == 0.9
    assert found.interval.low < found.difference < found.interval.high
    # By the central limit theorem, roughly: 2 · 1.645 standard errors wide.
    width = 3.29 * found.differences.std() / np.sqrt(found.differences.size)
    assert found.interval.high - found.interval.low == pytest.approx(width, rel=0.1)


@pytest.mark.parametrize("n_queries", [3, 7])
def test_p_of_sign_flips_is_the_share_of_all_patterns_where_these_are_few(n_queries: int) -> None:
    a, b, grades, qid = two_models(np.random.default_rng(n_queries), n_queries)
    found = compare("ap", a, b, grades, qid)
    d = found.differences
    sums = np.array([abs(np.dot(signs, d)) for signs in product([1, -1], repeat=d.size)])
    assert found.p_sign_flip == pytest.approx(np.mean(sums >= abs(d.sum()) - ATOL))


def test_p_of_drawn_sign_flips_is_near_that_of_all_of_them() -> None:
    a, b, grades, qid = two_models(np.random.default_rng(2), 13, better=0.2)
    exact = compare("ap", a, b, grades, qid, n_flips=np.int64(1 << 13)).p_sign_flip  # type: ignore[arg-type]
    drawn = compare("ap", a, b, grades, qid, n_flips=1000, seed=3).p_sign_flip
    assert 0.01 < exact < 0.99
    assert drawn != exact
    assert drawn == pytest.approx(exact, abs=4.0 * np.sqrt(exact * (1.0 - exact) / 1000))


def test_p_of_wilcoxon_is_that_of_scipy_without_the_equal(rng: np.random.Generator) -> None:
    a, b, grades, qid = two_models(rng)
    found = compare("mrr", a, b, grades, qid)
    assert 0 < found.equal < found.ids.size
    assert found.p_wilcoxon == wilcoxon(found.differences[found.differences != 0.0]).pvalue


def test_the_same_ranking_twice_is_equal_everywhere(rng: np.random.Generator) -> None:
    a, _, grades, qid = two_models(rng)
    found = compare("ndcg", a, 3.0 * a - 1.0, grades, qid)
    assert (found.difference, found.interval) == (0.0, (0.0, 0.0))
    assert (found.p_wilcoxon, found.p_sign_flip) == (1.0, 1.0)
    assert (found.better, found.worse, found.equal) == (0, 0, 36)


def test_sums_in_another_order_are_no_difference() -> None:
    # Ties of other rows: the gains of a step are added up in another order.
    grades = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1.3] * 4)
    qid = np.repeat(np.arange(4), 6)
    rows = np.concatenate([np.random.default_rng(q).permutation(6) + 6 * q for q in range(4)])
    a = np.zeros(24)
    found = compare("ndcg", a[rows], a, grades, qid)
    assert found.equal == 4


def test_swapping_the_two_turns_the_signs_and_a_seed_gives_the_same_again(rng: np.random.Generator) -> None:
    a, b, grades, qid = two_models(rng)
    one, two, again = (compare("err@5", *pair, grades, qid) for pair in ((a, b), (b, a), (a, b)))
    assert one.difference == -two.difference
    assert (one.better, one.worse) == (two.worse, two.better)
    assert one.p_wilcoxon == two.p_wilcoxon
    assert (one.interval, one.p_sign_flip) == (again.interval, again.p_sign_flip)
    assert compare("err@5", a, b, grades, qid, seed=1).interval != one.interval
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.better = 0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["ap", "auc", "ndcg@5", "err", "recall@7"])
def test_one_query_has_an_interval_over_samples_and_no_test(name: str) -> None:
    rng = np.random.default_rng(3)
    grades = np.append(rng.integers(0, 3, 79), 2)
    a, b = (np.round(weight * grades + rng.normal(size=80), 1) for weight in (0.2, 0.8))
    again = np.random.default_rng(5)
    counts = [np.bincount(again.integers(80, size=80), minlength=80) for _ in range(120)]
    drawn = [metrics.resampled(name, scores, grades, counts) for scores in (a, b)]
    expected = np.quantile(drawn[1] - drawn[0], [0.1, 0.9])
    for qid in (None, ["only"] * 80):
        found = compare(name, a, b, grades, qid, n_resamples=120, level=0.8, seed=5)
        assert found.over == "samples"
        assert np.isnan([found.p_wilcoxon, found.p_sign_flip]).all()
        assert (found.better, found.worse, found.equal) == (1, 0, 0)
        assert found.interval == pytest.approx(tuple(expected), abs=ATOL)


def test_where_nothing_counts_there_is_nothing_to_tell() -> None:
    nothing = [0, 0, 0, 0]
    for qid in (None, [0, 0, 1, 1]):
        found = compare("ap", [1, 2, 3, 4], [4, 3, 2, 1], nothing, qid)
        assert np.isnan([found.mean_a, found.mean_b, found.difference, *found.interval, found.p_sign_flip]).all()
        assert (found.better, found.worse, found.equal) == (0, 0, 0)
    one_of_two = compare("ap", [1, 2, 3, 4], [4, 3, 2, 1], [0, 0, 1, 0], ["a", "a", "b", "b"])
    assert one_of_two.difference == 0.5
    assert np.isnan([*one_of_two.interval, one_of_two.p_wilcoxon]).all()
    assert one_of_two.over == "queries"


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"scores_b": [1.0, 2.0]}, ValueError, r"has 4 entries and scores has 2"),
        ({"grades": [0, 1, -1, 0]}, ValueError, r"relevant\[2\] is -1"),
        ({"qid": [0, 0, 1]}, ValueError, r"qid has 3 entries"),
        ({"n_flips": 0}, ValueError, r"n_flips must be at least 1"),
        ({"empty": "none"}, ValueError, r"unknown empty='none'"),
        ({"empty": "error", "grades": [1, 0, 0, 0]}, ValueError, r"query 1 has 0 positives"),
        ({"metric": "map"}, ValueError, r"unknown metric 'map'"),
    ],
)
def test_wrong_input_is_refused(wrong: dict[str, Any], error: type[Exception], said: str) -> None:
    inputs: dict[str, Any] = {
        **{"metric": "ap", "scores_a": [1, 2, 3, 4], "scores_b": [4, 3, 2, 1], "grades": [0, 1, 1, 0]},
        **{"qid": [0, 0, 1, 1], **wrong},
    }
    with pytest.raises(error, match=said):
        compare(**inputs)


def test_a_comparison_says_what_it_found(rng: np.random.Generator) -> None:
    a, b, grades, qid = two_models(rng)
    said = str(compare("ap", a, b, grades, qid))
    assert said.startswith("ap: A 0.")
    assert "B - A +0." in said
    assert "), Wilcoxon p " in said
    assert "B is better on " in said
    assert "Wilcoxon" not in str(compare("ap", a, b, grades))


def test_a_p_that_is_very_small_is_not_written_as_zero() -> None:
    qid, grades = np.repeat(np.arange(400), 2), np.tile([1, 0], 400)
    found = compare("ap", np.tile([0.0, 1.0], 400), np.tile([1.0, 0.0], 400), grades, qid)
    assert "Wilcoxon p < 0.0001, sign flips p = 0.0001" in str(found)
