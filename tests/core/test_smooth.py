"""The smooth and the error-driven loss equal their formulas, whatever the scores, the width and the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from soft_losses import LOSSES, error_driven_by_formula, ramp, smooth_by_formula

import rankwise as rw

RTOL, RTOL_FLOAT32 = 1e-12, 3e-7
Array = NDArray[Any]

FAMILIES: tuple[Callable[[np.random.Generator, Array], Array], ...] = (
    lambda rng, y: rng.normal(size=y.size) + y,
    lambda rng, y: rng.integers(-4, 5, y.size).astype(np.float64),
    lambda rng, y: 1e8 + rng.normal(size=y.size),
    lambda rng, y: rng.standard_cauchy(y.size) * 1e-20,
    lambda rng, y: np.sign(rng.normal(size=y.size)) * 10.0 ** rng.uniform(-8, 8, y.size),
    lambda rng, y: np.full(y.size, 0.3),
)


def problem(rng: np.random.Generator, number: int) -> tuple[Array, Array, float]:
    """Scores, positives and a width from 1e-6 to 1e6 times the spread; one positive or one negative now and then."""
    most = 20_000 if number % 100 == 0 else 400
    n = int(np.exp(rng.uniform(np.log(2.0), np.log(most))))
    y = rng.random(n) < rng.choice([0.02, 0.2, 0.7])
    y[0], y[-1] = True, False
    if number % 11 == 0:
        y[:] = number % 2 == 0
        y[n // 2] = not y[0]
    s = FAMILIES[number % len(FAMILIES)](rng, y)
    spread = float(np.ptp(s)) or 1.0
    if number % 7 == 0:
        s = s.astype(np.float32)
    return s, y, spread * 10.0 ** rng.uniform(-6, 6)


def assert_close(result: rw.SmoothResult, value: float, gradient: Array, dtype: Any, scale: float) -> None:
    assert abs(result.value - value) <= RTOL * max(1.0, scale)
    rtol = RTOL if dtype == np.float64 else RTOL_FLOAT32
    np.testing.assert_allclose(result.gradient, gradient, rtol=rtol, atol=rtol * np.abs(gradient).max())
    assert result.gradient.dtype == dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_the_smooth_loss_and_its_gradient_equal_the_formula(name: str) -> None:
    loss = LOSSES[name]
    rng = np.random.default_rng(16)
    for number in range(350 // len(LOSSES) + 1):
        s, y, width = problem(rng, number)
        value, gradient = smooth_by_formula(s, y, loss, width)
        assert_close(rw.smooth_loss(s, y, loss, width=width), value, gradient, s.dtype, abs(value))


@pytest.mark.slow
@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_the_error_driven_loss_and_its_update_equal_the_published_loop(name: str, interpolate: bool) -> None:
    loss = LOSSES[name]
    rng = np.random.default_rng(46)
    for number in range(100, 100 + 200 // len(LOSSES) + 1):  # the first has 8,383 samples
        s, y, width = problem(rng, number)
        value, update = error_driven_by_formula(s, y, loss, width, interpolate)
        found = rw.error_driven_loss(s, y, loss, width=width, interpolate=interpolate)
        assert_close(found, value, update, s.dtype, abs(value))


def ap_loss_as_published(s: Array, y: Array, width: float) -> tuple[float, Array]:
    """Chen et al. 2019, by their loop for "ap" and in their own terms."""
    fg, bg = s[y], s[~y]
    fg_grad, bg_grad, precisions, best = np.zeros(fg.size), np.zeros(bg.size), [], 0.0
    for i in np.argsort(fg, kind="stable"):
        a, b = ramp(fg - fg[i], width).sum() + 0.5, ramp(bg - fg[i], width)
        shares, now = b / (a + b.sum()), a / (a + b.sum())
        if best <= now:
            best = now
        else:
            shares *= (1.0 - best) / (1.0 - now)
        bg_grad += shares / fg.size
        fg_grad[i] = -(1.0 - best) / fg.size
        precisions.append(best)
    gradient = np.empty(s.size)
    gradient[y], gradient[~y] = fg_grad, bg_grad
    return 1.0 - float(np.mean(precisions)), gradient


def test_for_average_precision_the_error_driven_loss_is_ap_loss(rng: np.random.Generator) -> None:
    for _ in range(50):
        y = rng.random(300) < 0.1
        y[:2] = True, False
        s = rng.normal(size=300) + y
        value, update = ap_loss_as_published(s, y, 1.0)
        found = rw.error_driven_loss(s, y)
        assert found.value == pytest.approx(value, rel=RTOL)
        np.testing.assert_allclose(found.gradient, update, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("n", [60, 30_000])
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_derivative(name: str, n: int, rng: np.random.Generator) -> None:
    y = rng.permutation(np.arange(n) < n // 6)
    s = rng.normal(size=n) + y
    found = rw.smooth_loss(s, y, LOSSES[name], width=0.7)
    direction, step = rng.normal(size=n), 1e-7
    ahead, behind = (rw.smooth_loss(s + h * direction, y, LOSSES[name], width=0.7).value for h in (step, -step))
    assert (ahead - behind) / (2 * step) == pytest.approx(float(found.gradient @ direction), rel=2e-3, abs=1e-7)


@pytest.mark.parametrize("name", ["ap", "ndcg", "mrr", "auc"])
def test_as_the_width_falls_the_loss_itself_is_left_ties_counting_half(name: str, rng: np.random.Generator) -> None:
    y = rng.random(500) < 0.2
    distinct = rng.permutation(500) * 1.0
    assert rw.smooth_loss(distinct, y, name, width=1e-9).value == pytest.approx(rw.ranking_loss(distinct, y, name))
    # One positive tied with two of three negatives: one of them counts as above.
    place = {"ap": 1 - 1 / 2, "mrr": 1 - 1 / 2, "ndcg": 1 - 1 / np.log2(3), "auc": 1 / 3}[name]
    tied = rw.smooth_loss([1.0, 1.0, 1.0, 0.0], [True, False, False, False], name, width=1e-9)
    assert tied.value == pytest.approx(place, rel=1e-12)


BOTH = (rw.smooth_loss, rw.error_driven_loss)


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("n", [200, 5000, 40_000])
def test_the_order_of_rows_changes_nothing(function: Any, n: int, rng: np.random.Generator) -> None:
    y = rng.random(n) < 0.1
    s = np.round(rng.normal(size=n) + y, 2)  # with ties
    order = rng.permutation(n)
    a, b = function(s, y, width=0.3), function(s[order], y[order], width=0.3)
    assert a.value == pytest.approx(b.value, rel=1e-13)
    np.testing.assert_allclose(a.gradient[order], b.gradient, rtol=1e-10, atol=1e-16)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_few")
@pytest.mark.parametrize("function", BOTH)
def test_the_number_of_threads_changes_no_bit(function: Any, rng: np.random.Generator) -> None:
    n = 1_100_000  # two parts
    y = rng.random(n) < 1e-3
    s = rng.normal(size=n) + y
    one, two, four = (function(s, y, n_threads=t) for t in (1, 2, 4))
    for other in (two, four):
        assert one.value == other.value
        np.testing.assert_array_equal(one.gradient, other.gradient)
    qid = np.arange(n) // 40
    one, two = (function(s, y, qid=qid, n_threads=t) for t in (1, 2))
    assert one.value == two.value
    np.testing.assert_array_equal(one.gradient, two.gradient)


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("name", ["ap", "ndcg"])
def test_queries_are_solved_as_if_each_were_alone(function: Any, name: str, rng: np.random.Generator) -> None:
    sizes = np.concatenate([rng.integers(1, 150, 60), [9000, 20_000]])
    qid = rng.permutation(np.repeat(np.arange(sizes.size), sizes))
    y = rng.random(qid.size) < 0.25
    y[qid == 3], y[qid == 4] = True, False
    s = rng.normal(size=qid.size) + y
    found = function(s, y, name, qid=qid, width=0.4)
    used = [q for q in range(sizes.size) if 0 < y[qid == q].sum() < sizes[q]]
    alone = {q: function(s[qid == q], y[qid == q], name, width=0.4) for q in used}
    assert found.value == pytest.approx(sum(r.value for r in alone.values()) / sizes.size)
    gradient = np.zeros(qid.size)
    for q, result in alone.items():
        gradient[qid == q] = result.gradient / sizes.size
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11, atol=1e-16)
    skipped = function(s, y, name, qid=qid, width=0.4, empty="skip")
    assert skipped.value == pytest.approx(found.value * sizes.size / len(used))
    assert found.per_query.value[used[0]] == pytest.approx(alone[used[0]].value)
    twice = function(np.tile(s, 2), np.tile(y, 2), name, qid=np.concatenate([qid, qid + 1000]), width=0.4)
    assert twice.value == pytest.approx(found.value, rel=1e-12)


def test_equal_scores_have_equal_gradients(rng: np.random.Generator) -> None:
    y = rng.random(3000) < 0.2
    s = rng.integers(0, 30, 3000) / 7.0
    for function in BOTH:
        gradient = function(s, y, width=0.5).gradient
        for value in np.unique(s):
            for side in (True, False):
                assert np.ptp(gradient[(s == value) & (y == side)]) <= 1e-18


@pytest.mark.parametrize("function", BOTH)
def test_bad_input_is_refused_and_named(function: Any) -> None:
    s, y = [1.0, 2.0, 0.0], [True, False, False]
    for width in (0.0, -1.0, np.nan, np.inf, "1", True, None):
        with pytest.raises(ValueError, match="width must be a positive number"):
            function(s, y, width=width)
    with pytest.raises(ValueError, match="zero-one has no discount"):
        function(s, y, "zero-one")
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        function([1.0, np.nan, 0.0], y)
    with pytest.raises(ValueError, match=r"scores\[2\] is inf"):
        function(np.array([1.0, 0.0, np.inf] * 1), y, qid=[1, 0, 0])
    with pytest.raises(ValueError, match=r"relevant\[1\] is -1: grades must be finite and at least 0"):
        function(s, [0, -1, 2])
    with pytest.raises(ValueError, match="3 positives and 0 negatives"):
        function(s, [True] * 3, empty="error")
    with pytest.raises(ValueError, match="qid has 2 entries"):
        function(s, y, qid=[0, 1])
    with pytest.raises(ValueError, match="n_threads"):
        function(s, y, n_threads=0)
    with pytest.raises(ValueError, match="one-dimensional"):
        function([s, s], [y, y])
    assert function(s, [True] * 3).value == 0.0
    assert not function(s, [False] * 3).gradient.any()


@pytest.mark.parametrize("place", [0, 7000, 49_999])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e300])
def test_a_score_that_is_not_finite_is_named_in_large_queries_too(bad: float, place: int) -> None:
    s, y = np.linspace(0, 1, 50_000), np.arange(50_000) % 50 == 0
    s[place] = bad
    with pytest.raises(ValueError, match=rf"scores\[{place}\]"):
        rw.smooth_loss(s, y)


def test_scores_of_other_types_are_taken_and_gradients_are_of_their_type(rng: np.random.Generator) -> None:
    y = rng.random(200) < 0.3
    s = np.round(rng.normal(size=200), 2).astype(np.float16)
    half, whole = rw.smooth_loss(s, y), rw.smooth_loss(s.astype(np.float64), y)
    assert half.gradient.dtype == np.float16
    assert half.value == pytest.approx(whole.value, rel=1e-12)
    assert not half.gradient.flags.writeable
    assert rw.smooth_loss(np.arange(200), y).gradient.dtype == np.float64


def test_a_slope_of_a_name_that_is_known_is_refused_and_a_wrong_one_shows() -> None:
    with pytest.raises(ValueError, match="slope= needs a discount= function"):
        rw.NDCG("log2", slope=lambda m: m)
    loss = rw.DiscountedLoss(discount=lambda m: 1 / m, slope=lambda m: np.nan * m, name="broken")
    with pytest.raises(ValueError, match=r"broken: slope\(1\) = nan is not finite"):
        rw.smooth_loss([0.0, 0.0], [True, False], loss)


def test_a_built_in_loss_with_another_discount_does_not_keep_its_slope() -> None:
    class Halved(rw.AveragePrecision):
        def discount(self, m: Any) -> Any:
            return 1.0 / (1.0 + m)

    assert not Halved().is_continuous
    assert rw.smooth_loss([0.0, 0.0], [True, False], Halved()).value == pytest.approx(1 - (1 / 2 + 1 / 3) / 2 / (1 / 2))
