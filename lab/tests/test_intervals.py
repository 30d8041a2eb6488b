"""Intervals: by SciPy and by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.intervals import Interval, bootstrap, corrected, interval_cells, paired_tests, percentile, student
from rankwise_lab.reproduce.action_results import PAPER
from scipy import stats

TIGHT = {"rtol": 1e-12, "atol": 1e-15}
DIFFERENCES = np.array([0.01, -0.02, 0.05, 0.03, 0.00, 0.04, 0.02, -0.01, 0.03, 0.02])


@pytest.fixture(params=[2, 3, 10, 57])
def values(request: pytest.FixtureRequest, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.normal(0.02, 0.1, request.param)


def test_students_interval_is_scipys(values: NDArray[np.float64]) -> None:
    found = student(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert found.mean == values.mean()
    np.testing.assert_allclose([found.low, found.high], expected, **TIGHT)


def test_the_corrected_interval_is_nadeau_and_bengios() -> None:
    folds = 5
    found = corrected(DIFFERENCES, folds)
    test_over_train = (1 / folds) / (1 - 1 / folds)
    error = np.sqrt((1 / 10 + test_over_train) * DIFFERENCES.var(ddof=1))
    expected = stats.t.interval(0.95, df=9, loc=DIFFERENCES.mean(), scale=error)
    assert found.mean == pytest.approx(0.017)
    np.testing.assert_allclose([found.low, found.high], expected, **TIGHT)


def test_too_few_values_have_a_mean_alone() -> None:
    assert student([0.25]) == corrected([0.25], 5) == Interval(0.25, None, None)
    assert student([0.25, 0.75], fewest=3) == Interval(0.5, None, None)
    assert student([0.25, 0.75, 0.5], fewest=3).low is not None
    assert interval_cells({"mean": -0.5, "low": None, "high": None}) == ["-0.5000", ""]


def test_percentiles_leave_out_what_is_not_a_number() -> None:
    drawn = np.arange(101.0)
    assert percentile(drawn) == pytest.approx([2.5, 97.5], rel=1e-12)
    assert percentile(np.append(drawn, np.nan)) == percentile(drawn)


def test_the_bootstrap_of_a_mean_is_that_of_a_binomial() -> None:
    ends = bootstrap(np.array([1.0] * 8 + [0.0] * 8), 10_000)
    np.testing.assert_allclose(ends, stats.binom.ppf([0.025, 0.975], 16, 0.5) / 16, **TIGHT)
    assert bootstrap(DIFFERENCES, 200, seed=3) == bootstrap(DIFFERENCES, 200, seed=3) != bootstrap(DIFFERENCES, 200)


def test_paired_tests_are_those_of_one_sample_of_differences() -> None:
    pairs = PAPER["ap"].values()
    d = np.array([second - first for first, second in pairs])
    found = paired_tests(list(pairs))
    t, w = stats.ttest_1samp(d, 0.0), stats.wilcoxon(d)
    assert (found["t"], found["p_t"]) == pytest.approx((t.statistic, t.pvalue))
    assert (found["w"], found["p_w"]) == (w.statistic, w.pvalue)
    half = stats.t.ppf(0.975, d.size - 1) * d.std(ddof=1) / np.sqrt(d.size)
    assert found["interval"] == pytest.approx([d.mean() - half, d.mean() + half])
    assert (found["mean"], found["better"], found["classes"]) == (pytest.approx(3.262), 9, 10)


@pytest.mark.parametrize("pairs", [[(1.0, 2.0)], [(1.0, 2.0), (3.0, 4.0)], [(1.0, 1.0), (2.0, 2.0)]])
def test_too_few_or_equal_differences_have_no_test(pairs: list[tuple[float, float]]) -> None:
    found = paired_tests(pairs)
    assert [found[key] for key in ("interval", "t", "p_t", "w", "p_w")] == [None] * 5
