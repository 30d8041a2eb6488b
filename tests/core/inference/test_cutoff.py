"""Losses of the first k places: the programme for them against every ranking, against `dynamic`, and at the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rank_losses import slack

import rankwise as rw
from rankwise.kernels import engine
from rankwise.metrics.registry import as_loss

Array = NDArray[Any]
RTOL, GRADIENT_RTOL = 1e-12, 1e-11
KINDS = ("ndcg", "ap", "mrr", "precision")
OWN = {
    "own": lambda k: rw.DiscountedLoss(lambda i: 1.0 / i, lambda m: 0.9**m, k=k),
    "bumpy": lambda k: rw.DiscountedLoss(lambda i: i % 2, lambda m: 1.0 + (m % 3), k=k),
    "one at a time": lambda k: rw.DiscountedLoss(discount=lambda m: 1.0 if m < 3 else 0.5, k=k),
    "chakrabarti": lambda k: rw.NDCG("chakrabarti", k=k),
}
SCORES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n) * rng.choice([0.01, 0.1, 1.0]),
    "ties": lambda rng, n: rng.integers(-2, 3, n) * 0.1,
    "offset": lambda rng, n: 1e10 + rng.integers(-3, 4, n) * 0.25,
    "all scales": lambda rng, n: np.sign(rng.normal(size=n)) * 10.0 ** rng.uniform(-8, 8, n),
    "one score": lambda rng, n: np.full(n, 0.3),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
}


def truth(rng: np.random.Generator, n: int, share: float) -> Array:
    y = rng.random(n) < share
    y[0], y[-1] = True, False
    return rng.permutation(y)


def cut(kind: str, k: int) -> Any:
    return OWN[kind](k) if kind in OWN else f"{kind}@{k}"


def assert_gradient_tells_the_value(found: rw.HingeResult, s: Array, y: Array, scale: float) -> None:
    """J = scale·Δ + gradient·scores, and the gradient sums to 0."""
    ref, s = float(np.median(s[y])), s.astype(np.float64)
    rounding = slack(found.value) + np.finfo(found.gradient.dtype).eps * 8 * np.abs(s - ref).sum()
    assert abs(scale * found.loss + float(found.gradient.astype(np.float64) @ (s - ref)) - found.value) <= rounding


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("kind", [*KINDS, *OWN])
def test_it_is_exact_against_every_ranking_and_the_dynamic_programme(
    kind: str, scores: str, rng: np.random.Generator
) -> None:
    for number in range(32):
        n, k = int(rng.integers(2, 10)), int(rng.integers(1, 12))
        y, scale = truth(rng, n, rng.choice([0.2, 0.5, 0.8])), (0.0, 0.3, 1.0, 8.0)[number % 4]
        s, loss = SCORES[scores](rng, n), cut(kind, k)
        found = rw.structured_hinge(s, y, loss, scale=scale)
        for method in ("exhaustive", "dynamic"):
            expected = rw.structured_hinge(s, y, loss, scale=scale, method=method).value
            assert abs(found.value - expected) <= slack(expected), (k, method)
        assert_gradient_tells_the_value(found, s, y, scale)
        ranking = found.interleaving
        lost = float(as_loss(loss).of_counts(ranking.above, ranking.n_neg))
        assert found.loss == pytest.approx(lost, rel=RTOL, abs=RTOL)


def test_a_discount_below_zero_within_k_is_left_to_the_dynamic_programme(rng: np.random.Generator) -> None:
    loss = rw.DiscountedLoss(discount=lambda m: 2.5 - m, k=3)
    for _ in range(30):
        y, s = np.arange(6) < 2, rng.normal(size=6)
        expected = rw.structured_hinge(s, y, loss, method="exhaustive").value
        assert rw.structured_hinge(s, y, loss).value == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_large_queries_agree_with_the_dynamic_programme(kind: str, rng: np.random.Generator) -> None:
    for number in range(24):
        n_pos = (1, 3, 50, 500)[number % 4]
        n = engine.LARGE + engine.A_POSITIVE * n_pos + int(rng.integers(0, 5000))
        y = rng.permutation(np.arange(n) < n_pos)
        noise = rng.normal(size=n) + y * rng.choice([-1.0, 0.0, 2.0, 4.0])
        s = (noise, np.round(noise, 1), 1e10 + np.round(noise, 2), noise.astype(np.float32))[number // 4 % 4]
        k, scale = int(rng.choice([1, 2, 10, 100, 1000, n, 2 * n])), float(rng.choice([0.3, 1.0, 50.0]))
        found = rw.structured_hinge(s, y, f"{kind}@{k}", scale=scale)
        expected = rw.structured_hinge(s, y, f"{kind}@{k}", scale=scale, method="dynamic").value
        assert abs(found.value - expected) <= slack(expected)
        assert_gradient_tells_the_value(found, s, y, scale)


def test_negatives_that_tie_with_the_last_place_share_their_gradient(rng: np.random.Generator) -> None:
    n = engine.LARGE + 1000
    y = np.arange(n) < 3
    s = np.where(np.arange(n) % 2 == 0, 1.0, 0.0)
    s[:3] = 0.9, 0.95, 0.5
    found = rw.structured_hinge(s, y, "ndcg@5", scale=2.0)
    for score in (0.0, 1.0):
        assert np.ptp(found.gradient[(s == score) & ~y]) == 0.0
    expected = rw.structured_hinge(s, y, "ndcg@5", scale=2.0, method="dynamic")
    assert found.value == pytest.approx(expected.value, rel=RTOL)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=GRADIENT_RTOL, atol=1e-16)


@pytest.mark.parametrize("n", [60, engine.LARGE + 2000])
def test_a_cut_off_beyond_the_last_place_changes_nothing(n: int, rng: np.random.Generator) -> None:
    y, s = rng.random(n) < 0.05, rng.normal(size=n)
    y[0] = True
    for name in ("ndcg", "ap", "mrr"):
        found, whole = rw.structured_hinge(s, y, f"{name}@{n}"), rw.structured_hinge(s, y, name)
        assert found.value == pytest.approx(whole.value, rel=RTOL)
        np.testing.assert_allclose(found.gradient, whole.gradient, rtol=GRADIENT_RTOL)
        assert rw.ranking_loss(s, y, f"{name}@{n}") == pytest.approx(rw.ranking_loss(s, y, name), rel=RTOL)
    assert rw.ranking_loss(s, y, f"precision@{n}") == 0.0


def test_methods_that_need_c2_and_negative_scales_are_refused() -> None:
    s, y = [3.0, 2.0, 1.0, 0.0, -1.0], [False, True, False, False, False]
    for method in ("bucketed", "quicksort", "yue", "mohapatra2014"):
        with pytest.raises(rw.NotQSSuitableError, match=r"breaks \(C2\)"):
            rw.structured_hinge(s, y, "ndcg@3", method=method)
    with pytest.raises(ValueError, match="scale must be finite and at least 0"):
        rw.structured_hinge(s, y, "ndcg@3", scale=-1.0)
    for scale in (-1.0, 1.0):
        expected = rw.structured_hinge(s, y, "ndcg@3", scale=scale, method="exhaustive").value
        assert rw.structured_hinge(s, y, "ndcg@3", scale=scale, method="dynamic").value == pytest.approx(expected)


def test_too_many_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankwise.kernels.cutoff.MOST_CELLS", 100)
    n = engine.LARGE + engine.A_POSITIVE * 20
    with pytest.raises(ValueError, match="a cut-off of 50 places with 20 positives"):
        rw.structured_hinge(np.arange(n) * 1.0, np.arange(n) < 20, "ndcg@50")
