"""Direct loss minimisation: the update against its definition over all rankings, and against the expected loss."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from rank_losses import NAMED, OWN

import rankwise as rw
from rankwise.kernels.published.exhaustive import interleavings

LOSSES: dict[str, rw.Loss] = {
    **NAMED,
    "discounted": OWN,
    # The third positive counts most: it would stand above those before it, and the ranking must yield.
    "uneven": rw.DiscountedLoss(lambda k: (k % 3 == 0) + 0.01, lambda m: 1 / m**0.5, name="uneven"),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
# Of ε: below 0, the update moves towards a better ranking.
both_updates = pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])


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

    def update(self, weight: float) -> tuple[np.ndarray, bool]:
        """The update by its definition, and whether both rankings are sure."""
        (by_scores, _, sure), (other, _, sure_too) = self.best(0.0), self.best(weight)
        return (other - by_scores) / weight, sure and sure_too


def tiny(rng: np.random.Generator, ties: bool) -> tuple[np.ndarray, np.ndarray, float]:
    n_pos, n_neg = rng.integers(1, 5), rng.integers(1, 6)
    relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
    scores = rng.integers(-1, 2, relevant.size) * 0.5 if ties else rng.normal(size=relevant.size) + 0.5 * relevant
    return scores.astype(np.float64), relevant, float(rng.choice([0.1, 1.0, 4.0, 30.0]))


@pytest.mark.slow
@both_updates
@every_loss
def test_the_update_is_its_definition_over_all_rankings(loss: rw.Loss, sign: float) -> None:
    rng = np.random.default_rng(21)
    compared, moved = 0, 0
    for _ in range(40):
        scores, relevant, epsilon = tiny(rng, ties=False)
        expected, sure = Rankings(scores, relevant, loss).update(sign * epsilon)
        if not sure:
            continue
        found = rw.evaluate(rw.Direct(sign * epsilon), scores, relevant, loss)
        np.testing.assert_allclose(found.gradient, expected, rtol=1e-12, atol=1e-12)
        assert found.value == pytest.approx(rw.ranking_loss(scores, relevant, loss), abs=1e-12)
        compared += 1
        moved += bool(expected.any())
    assert compared > 30
    assert moved >= 8


@pytest.mark.slow
@both_updates
@every_loss
def test_where_scores_tie_the_update_is_that_of_some_maximiser(loss: rw.Loss, sign: float) -> None:
    """∇F(R_±ε) is a subgradient of max_R F ± ε·Δ; R_w counts ties so that the two rankings differ."""
    rng = np.random.default_rng(22)
    for _ in range(20):
        scores, relevant, epsilon = tiny(rng, ties=True)
        weight = sign * epsilon
        found = rw.evaluate(rw.Direct(weight), scores, relevant, loss)
        assert found.value == pytest.approx(rw.ranking_loss(scores, relevant, loss, ties="worst"), abs=1e-12)
        nudge = 1e-6 * np.where(relevant, 1.0, -1.0) * sign
        other = Rankings(scores + nudge, relevant, loss).best(0.0)[0] + found.gradient * weight
        maximum = Rankings(scores, relevant, loss).best(weight)[1]
        for spread in (1e-3, 0.3, 3.0):
            elsewhere = scores + spread * rng.normal(size=scores.size)
            there = Rankings(elsewhere, relevant, loss).best(weight)[1]
            assert there >= maximum + other @ (elsewhere - scores) - 1e-9


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
        expected, _ = Rankings(scores, relevant, loss).update(-epsilon)
        if Rankings(scores, relevant, loss).best(-epsilon)[2]:
            found = rw.evaluate(rw.Direct(-epsilon), scores, relevant, loss).gradient
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(rw.NotQSSuitableError, match="breaks"):
        rw.evaluate(rw.Direct(), [3.0, 2.0, 1.0, 0.0], [0, 1, 0, 1], loss)


@both_updates
def test_one_pair_follows_the_gradient_of_the_expected_loss(sign: float) -> None:
    """P = N = 1 with noise σ on both: E Δ = Φ(−d/(σ√2))/2, d = s_pos − s_neg; the mean over quantiles of d."""
    sigma, ahead, n = 0.7, 0.4, 5000
    noisy = NormalDist(ahead, sigma * np.sqrt(2))
    scores = np.array([[noisy.inv_cdf((k + 0.5) / n), 0.0] for k in range(n)])
    qid, relevant = np.repeat(np.arange(n), 2), np.tile([True, False], n)
    gradient = rw.evaluate(rw.Direct(sign * 0.2), scores.ravel(), relevant, "ap", qid=qid).gradient.reshape(n, 2)
    assert gradient[:, 0].sum() == pytest.approx(-0.5 * noisy.pdf(0.0), rel=0.03)  # a bias of the order of ε
    np.testing.assert_array_equal(gradient[:, 1], -gradient[:, 0])
