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


BOTH = (rw.smooth_loss, rw.error_driven_loss)


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


@pytest.mark.parametrize(
    ("name", "expected"), [("ap", 1 / 2), ("mrr", 1 / 2), ("ndcg", 1 - 1 / np.log2(3)), ("auc", 1 / 3)]
)
def test_as_the_width_falls_a_tie_counts_half(name: str, expected: float) -> None:
    # One positive tied with two of three negatives: one of them counts as above.
    tied = rw.smooth_loss([1.0, 1.0, 1.0, 0.0], [True, False, False, False], name, width=1e-9)
    assert tied.value == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("function", BOTH)
def test_bad_input_is_refused_and_named(function: Any) -> None:
    s, y = [1.0, 2.0, 0.0], [True, False, False]
    for width in (0.0, -1.0, np.nan, np.inf, "1", True, None):
        with pytest.raises(ValueError, match="width must be a positive number"):
            function(s, y, width=width)
    for options, said in (
        ({"loss": "zero-one"}, "zero-one has no discount"),
        ({"qid": [0, 1]}, "qid has 2 entries"),
        ({"n_threads": 0}, "n_threads"),
    ):
        with pytest.raises(ValueError, match=said):
            function(s, y, **options)
    with pytest.raises(ValueError, match="one-dimensional"):
        function([s, s], [y, y])
