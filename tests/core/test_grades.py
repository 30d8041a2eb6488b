"""Graded relevance: losses, hinges, smooth and error-driven losses against their definitions, and bad grades."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graded_losses import graded_ap, graded_maximum, graded_ndcg, smooth_by_pairs
from numpy.typing import NDArray
from queries_alone import ONE_GAIN

import rankwise as rw
from rankwise.metrics.registry import as_loss

Array = NDArray[Any]
RTOL, RTOL_FLOAT32 = 1e-12, 3e-7
VALUE_RTOL = 1e-9  # of J
NAMES = ("ndcg", "ap", "mrr", "auc", "ndcg@3", "ap@4", "mrr@2", "precision@3")
LINEAR = rw.NDCG(k=5, gain="linear")
SQUARE = rw.NDCG(gain=lambda y: y**2)


def query(rng: np.random.Generator, n: int, kind: int) -> tuple[Array, Array]:
    """Scores and grades: whole or real grades, ties, offsets, a lowest grade above 0 now and then."""
    grades = rng.integers(0, 5, n) * 1.0 if kind % 3 else np.round(rng.exponential(1.0, n), 2)
    grades += 0.5 * (kind % 4 == 0)
    grades[:2] = grades.max() + 1.0, grades.min()
    scores = rng.normal(size=n) if kind % 5 else rng.integers(-3, 4, n) * 1.0
    return scores + (1e8 if kind % 7 == 0 else 0.0), grades


def test_means_over_thresholds_are_graded_ndcg_and_robertsons_ap(rng: np.random.Generator) -> None:
    for number in range(100):
        n = int(rng.integers(2, 40))
        _, grades = query(rng, n, number)
        scores = rng.permutation(n) * 1.0
        ranked = grades[np.argsort(-scores)]
        k, gain = (None, 1, 3, 10, 100)[number % 5], ("exp2", "linear")[number % 2]
        found = [rw.ranking_loss(scores, grades, loss) for loss in (rw.NDCG(k=k, gain=gain), "ap")]
        assert found == pytest.approx([graded_ndcg(ranked, k, gain), graded_ap(ranked)], rel=RTOL, abs=RTOL)


def test_of_tied_samples_the_lower_grade_comes_first_or_last() -> None:
    grades = np.array([3.0, 0.0, 1.0, 2.0])
    tied = [1.0, 1.0, 1.0, 0.0]
    for ties, ranked in (("worst", [0.0, 1.0, 3.0, 2.0]), ("best", [3.0, 1.0, 0.0, 2.0])):
        expected = graded_ndcg(np.array(ranked), None, "exp2")
        assert rw.ranking_loss(tied, grades, "ndcg", ties=ties) == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("name", NAMES)
def test_the_graded_hinge_bounds_the_maximum_over_all_rankings(name: str, rng: np.random.Generator) -> None:
    loss = as_loss(name)
    assert isinstance(loss, rw.DiscountedLoss)
    for number in range(12):
        s, grades = query(rng, int(rng.integers(2, 6)), number)
        found = rw.structured_hinge(s, grades, loss, scale=2.0)
        maximum = graded_maximum(s, grades, loss, scale=2.0)
        assert found.value >= maximum - VALUE_RTOL * max(1.0, abs(maximum))
        assert found.value >= 2.0 * rw.ranking_loss(s, grades, loss) - VALUE_RTOL
        two = np.where(grades > grades.min(), 3.0, 0.0)  # one threshold
        maximum = graded_maximum(s, two, loss, scale=2.0)
        assert rw.structured_hinge(s, two, loss, scale=2.0).value == pytest.approx(maximum, rel=VALUE_RTOL)


def smooth_problem(rng: np.random.Generator, number: int) -> tuple[Array, Array, float]:
    """Scores, grades, and a width from 1e-6 to 1e6 of the spread."""
    n = int(np.exp(rng.uniform(np.log(2.0), np.log(300.0))))
    s, grades = query(rng, n, number)
    if number % 6 == 1:
        s = np.sign(s) * 10.0 ** rng.uniform(-8, 8, n)
    if number % 8 == 3:
        s = s.astype(np.float32)
    return s, grades, (float(np.ptp(s)) or 1.0) * 10.0 ** rng.uniform(-6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "linear", "square"])
def test_the_smooth_graded_loss_and_its_gradient_equal_the_formula(name: str) -> None:
    loss: Any = {"linear": LINEAR, "square": SQUARE}.get(name) or as_loss(name)
    rng = np.random.default_rng(18)
    for number in range(35):
        s, grades, width = smooth_problem(rng, number)
        value, gradient = smooth_by_pairs(s, grades, loss, width)
        found = rw.smooth_loss(s, grades, loss, width=width)
        assert abs(found.value - value) <= RTOL
        rtol = RTOL if s.dtype == np.float64 else RTOL_FLOAT32
        # What pulls a sample up and what pulls it down may cancel.
        size = max(np.abs(gradient).max(), 1.0 / (2.0 * width) / s.size)
        np.testing.assert_allclose(found.gradient, gradient, rtol=rtol, atol=rtol * size)
        assert found.gradient.dtype == s.dtype


FUNCTIONS = (rw.structured_hinge, rw.smooth_loss, rw.error_driven_loss, rw.ranking_loss)
BAD: dict[str, tuple[Any, str]] = {
    "negative": ([0, 2, -1], r"relevant\[2\] is -1: grades must be finite and at least 0"),
    "nan": ([0, np.nan, 2], r"relevant\[1\] is nan: grades must be finite"),
    "infinite": ([3, 0, np.inf], r"relevant\[2\] is inf: grades must be finite"),
    "too large": ([3, 0, 2000], r"the gain of grade 2000, is beyond float64; pass gain='linear'"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_bad_grades_are_refused_and_named(function: Any) -> None:
    for grades, said in BAD.values():
        with pytest.raises(ValueError, match=said):
            function([1.0, 2.0, 3.0], grades, "ndcg")
    for words in (["a", "b", "c"], ["0", "1", "2"], [None, 1, 2], np.array([0, 1, 2], dtype=complex)):
        with pytest.raises(TypeError, match="relevant must be boolean, or 0 and 1"):
            function([1.0, 2.0, 3.0], words, "ndcg")
    with pytest.raises(ValueError, match="zero-one"):
        function([1.0, 2.0, 3.0], [0, 1, 2], "zero-one")


def test_a_hundred_thousand_grades_are_refused_or_smoothed(rng: np.random.Generator) -> None:
    grades, s = rng.permutation(100_000) / 1e4, rng.normal(size=100_000)
    for function in (rw.structured_hinge, rw.error_driven_loss, rw.ranking_loss):
        with pytest.raises(ValueError, match=r"100000 different grades; .* at most 256 above the lowest; bin them"):
            function(s, grades, "ndcg")
    with pytest.raises(ValueError, match="100000 different grades"):
        rw.smooth_loss(s, grades, "ap")
    expected = graded_ndcg(grades[np.argsort(-s)], 10, "exp2")
    assert rw.smooth_loss(s, grades, "ndcg@10", width=1e-12).value == pytest.approx(expected, rel=RTOL)


def test_gains_may_take_one_grade_at_a_time_be_worthless_or_huge() -> None:
    s, grades = [1.0, 2.0, 3.0], [0, 1, 2]
    one_by_one = rw.NDCG(gain=lambda y: 2.0**y - 1.0 if y > 0 else 0.0)
    assert rw.ranking_loss(s, grades, one_by_one) == rw.ranking_loss(s, grades, "ndcg")
    with pytest.raises(ValueError, match="must not fall as grades rise"):
        rw.structured_hinge(s, grades, rw.NDCG(gain=lambda y: -y))
    assert rw.structured_hinge(s, grades, rw.NDCG(gain=lambda y: 0.0 * y)).value == 0.0
    assert 0.0 <= rw.ranking_loss(s, [0, 1020, 1023], rw.NDCG()) < 1e-3
    assert np.isfinite(rw.smooth_loss(s, [0, 1e300, 1e308], rw.NDCG(gain="linear")).gradient).all()


def test_a_graded_query_has_no_single_most_violating_ranking() -> None:
    with pytest.raises(ValueError, match="or has grades"):
        rw.most_violating_ranking([1.0, 2.0, 3.0], [0, 1, 2], "ndcg")


def test_grades_that_a_gain_makes_equal_are_one_grade(rng: np.random.Generator) -> None:
    s, grades = rng.normal(size=40), rng.integers(0, 4, 40)
    binary = [rw.smooth_loss(s, grades > 1, ONE_GAIN), rw.smooth_loss(s, grades, ONE_GAIN)]
    assert binary[0].value == binary[1].value > 0.0
    np.testing.assert_array_equal(binary[0].gradient, binary[1].gradient)
    nothing = rw.smooth_loss(s, 2 + grades, ONE_GAIN)  # all are worth the same
    assert nothing.value == 0.0
    assert not nothing.gradient.any()
