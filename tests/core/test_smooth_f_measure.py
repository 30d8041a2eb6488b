"""The smooth F-measure equals its formula, and its gradient is the derivative; it has no error-driven loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from soft_losses import ramp

import rankwise as rw

Array = NDArray[Any]
RTOL, DIFFERENCE_RTOL = 1e-12, 1e-5


def by_formula(s: Array, y: Array, width: float) -> tuple[float, Array]:
    """O(PN): 1 − max_k 2k/(k + c_k + P), and the gradient through the first k that has the maximum."""
    pos = np.flatnonzero(y)[np.argsort(-s[y], kind="stable")]
    x = s[~y] - s[pos][:, None]
    k, above = np.arange(1.0, pos.size + 1.0), ramp(x, width).sum(axis=1)
    f = 2.0 * k / (k + above + pos.size)
    best = int(np.argmax(f))
    slope = np.where(np.arange(pos.size) == best, 2.0 * k / (k + above + pos.size) ** 2, 0.0)
    slope = np.array([slope[s[pos] == s[p]].mean() for p in pos])  # ties share
    near, gradient = np.abs(x) < width, np.empty(s.size)
    gradient[pos], gradient[~y] = -slope * near.sum(axis=1) / (2 * width), slope @ near / (2 * width)
    return 1.0 - float(f[best]), gradient


@pytest.mark.parametrize("kind", ["normal", "ties"])
def test_it_equals_the_formula(kind: str, rng: np.random.Generator) -> None:
    for _ in range(150):
        n = int(rng.integers(2, 80))
        y = rng.permutation(np.arange(n) < rng.integers(1, n))
        s = rng.normal(size=n) + y if kind == "normal" else rng.integers(-3, 4, n) * 1.0
        width = 10.0 ** rng.uniform(-2, 1)
        found, (value, gradient) = rw.smooth_loss(s, y, "f1", width=width), by_formula(s, y, width)
        assert found.value == pytest.approx(value, rel=RTOL, abs=RTOL)
        if kind == "normal":  # with ties, rounding may choose among equal maxima
            np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("n", [60, 40_000])
def test_the_gradient_is_the_derivative(n: int, rng: np.random.Generator) -> None:
    y = rng.permutation(np.arange(n) < n // 6)
    s, direction, step = rng.normal(size=n) + y, rng.normal(size=n), 1e-7
    found = rw.smooth_loss(s, y, "f1", width=0.7)
    ahead, behind = (rw.smooth_loss(s + h * direction, y, "f1", width=0.7).value for h in (step, -step))
    expected = float(found.gradient @ direction)
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=DIFFERENCE_RTOL, abs=1e-7)


def test_as_the_width_falls_the_loss_itself_is_left_ties_counting_half(rng: np.random.Generator) -> None:
    y, distinct = rng.random(500) < 0.2, rng.permutation(500) * 1.0
    assert rw.smooth_loss(distinct, y, "f1", width=1e-9).value == pytest.approx(rw.ranking_loss(distinct, y, "f1"))
    tied = rw.smooth_loss([1.0, 1.0, 1.0, 0.0], [True, False, False, False], "f1", width=1e-9)
    assert tied.value == pytest.approx(1 - 2 / 3, rel=RTOL)  # one of two tied negatives counts


def test_queries_are_solved_as_if_each_were_alone_and_grades_by_threshold(rng: np.random.Generator) -> None:
    sizes = rng.integers(1, 30, 40)
    qid, n = np.repeat(np.arange(40), sizes), int(sizes.sum())
    y, s = rng.random(n) < 0.3, rng.normal(size=n)
    found = rw.smooth_loss(s, y, "f1", qid=qid)
    assert found.per_query is not None
    for q in range(40):
        alone = rw.smooth_loss(s[qid == q], y[qid == q], "f1")
        assert found.per_query.value[q] == pytest.approx(alone.value, rel=RTOL, abs=RTOL)
        np.testing.assert_allclose(found.gradient[qid == q] * 40, alone.gradient, rtol=1e-11, atol=1e-15)
    grades = rng.permutation([0, 0, 0, 1, 1, 2, 2])
    parts = [rw.smooth_loss(s[:7], grades >= grade, "f1") for grade in (1, 2)]
    graded = rw.smooth_loss(s[:7], grades, "f1")
    assert graded.value == pytest.approx((parts[0].value + parts[1].value) / 2, rel=RTOL)
    np.testing.assert_allclose(graded.gradient, (parts[0].gradient + parts[1].gradient) / 2, atol=1e-15)


def test_it_has_no_error_driven_loss() -> None:
    with pytest.raises(
        ValueError, match=r"f1 has no discount, so it has no error-driven loss; use 'ap'.*or smooth_loss"
    ):
        rw.error_driven_loss([1.0, 0.0], [False, True], "f1")
