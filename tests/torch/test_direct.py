"""Direct loss minimisation: the update against its definition over all rankings, and against the expected loss."""

from __future__ import annotations

from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from rank_losses import NAMED, OWN, PUSH

import rankwise as rw
from rankwise.kernels.published.exhaustive import interleavings

torch = pytest.importorskip("torch")

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402

LOSSES: dict[str, rw.Loss] = {
    **NAMED,
    "discounted": OWN,
    # The third positive counts most: it would stand above those before it, and the ranking must yield.
    "uneven": rw.DiscountedLoss(lambda k: (k % 3 == 0) + 0.01, lambda m: 1 / m**0.5, name="uneven"),
    "step": PUSH,
}
UPDATES = ("positive", "negative")
# Each row is a list, unless a test says otherwise.
direct_loss = partial(functional.direct_loss, dim=-1)


def update_of(scores: Any, relevant: Any, loss: Any, **options: Any) -> tuple[Any, Any]:
    """Value and gradient in NumPy."""
    leaf = torch.as_tensor(scores).clone().requires_grad_()
    value = direct_loss(leaf, torch.as_tensor(relevant), loss, **options)
    value.sum().backward()
    return value.detach().numpy(), leaf.grad.numpy()


class Rankings:
    """All rankings of a query, by the definitions: R_xy = ±1, F = (1/PN) Σ R_xy (s_x − s_y), and Δ."""

    def __init__(self, scores: np.ndarray, relevant: np.ndarray, loss: rw.Loss) -> None:
        pos, neg = np.flatnonzero(relevant), np.flatnonzero(~relevant)
        pos, neg = pos[np.argsort(-scores[pos], kind="stable")], neg[np.argsort(-scores[neg], kind="stable")]
        above = interleavings(pos.size, neg.size)
        matrices = np.where(np.arange(neg.size) < above[:, :, None], -1.0, 1.0)
        self.gradients = np.zeros((len(above), scores.size))
        self.gradients[:, pos] = matrices.mean(axis=2) / pos.size
        self.gradients[:, neg] = -matrices.mean(axis=1) / neg.size
        self.scores = self.gradients @ scores
        self.losses = loss.of_counts(above, neg.size)

    def best(self, weight: float) -> tuple[np.ndarray, float, bool]:
        """∇F of the ranking that maximises F + weight·Δ, the maximum, and whether no other is near it."""
        objective = self.scores + weight * self.losses
        first, second = np.argsort(-objective)[:2]
        return self.gradients[first], float(objective[first]), bool(objective[first] - objective[second] > 1e-7)


def tiny(rng: np.random.Generator, ties: bool) -> tuple[np.ndarray, np.ndarray, float]:
    n_pos, n_neg = rng.integers(1, 5), rng.integers(1, 6)
    relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
    scores = rng.integers(-1, 2, relevant.size) * 0.5 if ties else rng.normal(size=relevant.size) + 0.5 * relevant
    return scores.astype(np.float64), relevant, float(rng.choice([0.1, 1.0, 4.0, 30.0]))


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_update_is_its_definition_over_all_rankings(loss: rw.Loss, update: str) -> None:
    rng = np.random.default_rng(21)
    compared, moved = 0, 0
    for _ in range(40):
        scores, relevant, epsilon = tiny(rng, ties=False)
        rankings = Rankings(scores, relevant, loss)
        by_scores, _, sure = rankings.best(0.0)
        other, _, sure_too = rankings.best(epsilon if update == "positive" else -epsilon)
        if not (sure and sure_too):
            continue
        expected = (other - by_scores) / epsilon * (1 if update == "positive" else -1)
        value, found = update_of(scores, relevant, loss, epsilon=epsilon, update=update)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert value == pytest.approx(rw.ranking_loss(scores, relevant, loss), abs=1e-12)
        compared += 1
        moved += bool(expected.any())
    assert compared > 30
    assert moved >= 8


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_where_scores_tie_the_update_is_that_of_some_maximiser(loss: rw.Loss, update: str) -> None:
    """∇F(R_±ε) is a subgradient of max_R F ± ε·Δ; R_w counts ties so that the two rankings differ."""
    rng = np.random.default_rng(22)
    for _ in range(20):
        scores, relevant, epsilon = tiny(rng, ties=True)
        weight = epsilon if update == "positive" else -epsilon
        value, found = update_of(scores, relevant, loss, epsilon=epsilon, update=update)
        assert value == pytest.approx(rw.ranking_loss(scores, relevant, loss, ties="worst"), abs=1e-12)
        nudge = 1e-6 * np.where(relevant, 1.0, -1.0) * (1 if update == "positive" else -1)
        by_scores, _, _ = Rankings(scores + nudge, relevant, loss).best(0.0)
        other = by_scores + found * weight
        _, maximum, _ = Rankings(scores, relevant, loss).best(weight)
        for spread in (1e-3, 0.3, 3.0):
            elsewhere = scores + spread * rng.normal(size=scores.size)
            _, there, _ = Rankings(elsewhere, relevant, loss).best(weight)
            assert there >= maximum + other @ (elsewhere - scores) - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("positive", [True, False], ids=["positive", "negative"])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["high", "low"])
@pytest.mark.parametrize(
    "loss",
    [rw.AveragePrecision(), rw.StepLoss(lambda i, j, p, n: -i / (p * n * (j + 0.5)), name="push")],
    ids=lambda loss: loss.name,
)
def test_far_off_scores_do_not_blur_the_others(loss: rw.Loss, sign: float, positive: bool, update: str) -> None:
    """One score beyond all others is at its place for good, be it 50 away or 1e20."""
    rng = np.random.default_rng(29)
    for _ in range(15):
        relevant = rng.permutation(np.arange(7) < 3)
        scores, epsilon = rng.normal(size=7) + 0.3 * relevant, float(rng.choice([0.3, 1.0, 4.0]))
        far = np.flatnonzero(relevant == positive)[0]
        scores[far] = sign * 50.0
        rankings = Rankings(scores, relevant, loss)
        expected = rankings.best(epsilon if update == "positive" else -epsilon)[0] - rankings.best(0.0)[0]
        scores[far] = sign * 1e20
        _, found = update_of(scores, relevant, loss, epsilon=epsilon, update=update)
        np.testing.assert_allclose(found, expected / (epsilon if update == "positive" else -epsilon), atol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [rw.NDCG(discount="chakrabarti"), rw.DiscountedLoss(discount=lambda m: 1.5 + np.sin(m), name="wave")],
    ids=["chakrabarti", "wave"],
)
def test_the_negative_update_takes_losses_that_are_not_qs_suitable(loss: rw.Loss) -> None:
    """That is not convex, and that rises and falls."""
    rng = np.random.default_rng(23)
    for _ in range(20):
        scores, relevant, epsilon = tiny(rng, ties=False)
        rankings = Rankings(scores, relevant, loss)
        other, _, sure = rankings.best(-epsilon)
        if sure:
            _, found = update_of(scores, relevant, loss, epsilon=epsilon, update="negative")
            np.testing.assert_allclose(found, (rankings.best(0.0)[0] - other) / epsilon, rtol=1e-12, atol=1e-12)
    with pytest.raises(rw.NotQSSuitableError, match="breaks"):
        update_of([3.0, 2.0, 1.0, 0.0], [0, 1, 0, 1], loss, update="positive")


@pytest.mark.parametrize("update", UPDATES)
def test_one_pair_follows_the_gradient_of_the_expected_loss(update: str) -> None:
    """P = N = 1 with noise σ on both: E Δ = Φ(−d/(σ√2))/2, d = s_pos − s_neg; the mean over quantiles of d."""
    sigma, ahead, epsilon, n = 0.7, 0.4, 0.2, 5000
    noisy = NormalDist(ahead, sigma * np.sqrt(2))
    ways = np.array([[noisy.inv_cdf((k + 0.5) / n), 0.0] for k in range(n)])
    options: dict[str, Any] = {"epsilon": epsilon, "update": update, "reduction": "sum"}
    _, gradient = update_of(ways, np.tile([True, False], (n, 1)), "ap", **options)
    slope = -0.5 * noisy.pdf(0.0)
    assert gradient[:, 0].mean() == pytest.approx(slope, rel=0.03)  # a bias of the order of ε
    np.testing.assert_array_equal(gradient[:, 1], -gradient[:, 0])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be positive.*got 0.0"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be positive.*got -1.0"),
        ({"epsilon": float("nan")}, ValueError, "epsilon must be.*finite"),
        ({"epsilon": float("inf")}, ValueError, "epsilon must be.*finite"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number"),
        ({"update": "both"}, ValueError, "'positive', 'negative'"),
        ({"loss": "zero-one"}, ValueError, "takes labels, not rankings"),
        ({"loss": rw.ZeroOne()}, ValueError, "takes labels, not rankings"),
        ({"loss": "map"}, ValueError, "unknown loss 'map'"),
        ({"loss": 3}, TypeError, "name or a Loss"),
    ],
    ids=str,
)
def test_bad_options_are_refused_by_function_and_module(options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        direct_loss(torch.randn(4), torch.tensor([0, 1, 0, 1]), **options)
    with pytest.raises(error, match=words):
        rwt.DirectLoss(**options)
