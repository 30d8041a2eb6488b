"""What tensor operations promise: maxima and subgradients of the hinge, derivatives, ties, large and distant scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from soft_losses import LOSSES as SMOOTHED

import rankwise as rw
from rankwise.metrics.registry import as_loss

torch = pytest.importorskip("torch")

from torch_batches import with_gradient  # noqa: E402

from rankwise.torch.functional import rank_loss, structured_hinge  # noqa: E402

BACKENDS = ("core", "tensor")
LOSSES: dict[str, rw.Loss | str] = {
    **{name: name for name in ("ap", "ndcg", "mrr", "auc")},
    "discounted": rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own"),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def solve(scores: Any, target: Any, loss: Any, scale: float) -> tuple[float, Any]:
    scores, target = torch.as_tensor(scores), torch.as_tensor(target)
    value, gradient = with_gradient(structured_hinge, scores, target, loss, scale=scale, backend="tensor")
    return value.item(), gradient.double().numpy()


def attained(scores: np.ndarray, relevant: np.ndarray, loss: Any, scale: float, gradient: np.ndarray) -> float:
    """scale·Δ + F − F* of the ranking that a gradient tells, c_k = −PN/2 · gradient; no two scores tie."""
    positives = np.flatnonzero(relevant)[np.argsort(-scores[relevant])]
    n_neg = int((~relevant).sum())
    above = np.rint(-gradient[positives] * positives.size * n_neg / 2).astype(np.int64)
    assert (np.diff(above) >= 0).all()
    return scale * float(as_loss(loss).of_counts(above, n_neg)) + float(gradient @ scores)


SPREADS = {
    "normal": lambda rng, y: rng.normal(size=y.size) + y,
    "separated": lambda rng, y: rng.normal(size=y.size) + 30.0 * y,
    "cauchy": lambda rng, y: rng.standard_cauchy(y.size) + y,
    "lognormal": lambda rng, y: rng.lognormal(sigma=5.0, size=y.size) + y,
    "constant": lambda rng, y: np.full(y.size, 0.3),
    "clusters": lambda rng, y: rng.integers(0, 5, y.size) + 1e-6 * rng.normal(size=y.size),
    "offset": lambda rng, y: 1000.0 + 1e-3 * (rng.normal(size=y.size) + y),
    "outlier": lambda rng, y: np.where(np.cumsum(y) * y == 1, 1e15, rng.normal(size=y.size)),
}


@pytest.mark.parametrize("n_pos", [1, 40, 2500, 4999])
@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
def test_large_queries_agree_too(spread: Any, n_pos: int) -> None:
    rng = np.random.default_rng(13)
    relevant = rng.permutation(np.arange(5000) < n_pos)
    scores = spread(rng, relevant)
    for loss in ("ap", "ndcg", "mrr", "auc"):
        for scale in (1.0, 50.0):
            expected = rw.structured_hinge(scores, relevant, loss, scale=scale)
            slack = max(1.0, abs(expected.value))
            value, gradient = solve(scores, relevant, loss, scale)
            assert abs(value - expected.value) <= 1e-9 * slack
            other = scores + rng.normal(size=5000)
            there = rw.structured_hinge(other, relevant, loss, scale=scale).value
            assert there >= value + gradient @ (other - scores) - 1e-9 * max(slack, abs(there))
            if np.unique(scores).size == 5000:
                assert abs(attained(scores, relevant, loss, scale, gradient) - value) <= 1e-9 * slack
        single = scores.astype(np.float32)
        expected = rw.structured_hinge(single, relevant, loss)
        value, _ = solve(single, relevant, loss, 1.0)
        assert abs(value - expected.value) <= 1e-5 * max(1.0, abs(expected.value))


@every_loss
def test_samples_of_one_class_that_tie_share_their_gradient(loss: Any) -> None:
    rng = np.random.default_rng(17)
    for _ in range(15):
        relevant = rng.permutation(np.arange(16) < rng.integers(1, 16))
        scores, scale = 0.1 * rng.integers(0, 4, 16), float(rng.choice([0.2, 1.0, 5.0]))
        _, gradient = solve(scores, relevant, loss, scale)
        for same in (relevant, ~relevant):
            for score in np.unique(scores[same]):
                np.testing.assert_allclose(np.ptp(gradient[same & (scores == score)]), 0.0, atol=1e-15)


SOFT: dict[str, rw.Surrogate] = {
    "smooth": rw.Smooth(0.3),
    "error-driven": rw.ErrorDriven(0.3, interpolate=False),
    "interpolated": rw.ErrorDriven(0.3),
}


def by_both(scores: Any, target: Any, *pair: Any, **options: Any) -> list[tuple[Any, Any]]:
    """Value and gradient by each backend."""
    return [with_gradient(rank_loss, scores, target, *pair, backend=backend, **options) for backend in BACKENDS]


@pytest.mark.parametrize("surrogate", SOFT.values(), ids=SOFT)
@pytest.mark.parametrize("name", SMOOTHED)
def test_soft_comparisons_agree_on_large_queries_columns_and_ragged_ones(name: str, surrogate: rw.Surrogate) -> None:
    rng = np.random.default_rng(42)
    scores, relevant = torch.tensor(rng.normal(size=(4000, 3))), torch.tensor(rng.random((4000, 3)) < 0.2)
    relevant[:, 1] = False
    flat, label, qid = scores.reshape(-1), relevant.reshape(-1), torch.tensor(rng.integers(0, 40, 12_000) ** 2)
    mask = torch.tensor(rng.random(12_000) < 0.9)
    for given, options in (
        ((scores, relevant), {"dim": 0}),
        ((flat, label), {"qid": qid, "mask": mask}),
        ((flat, label), {"qid": qid, "reduction": "none"}),
    ):
        core, tensor = by_both(*given, SMOOTHED[name], surrogate, **options)
        torch.testing.assert_close(core[0], tensor[0], rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(core[1], tensor[1], rtol=1e-9, atol=1e-12 * core[1].abs().max().item())
        assert core[1].abs().max() > 0.0


@pytest.mark.parametrize("surrogate", SOFT.values(), ids=SOFT)
def test_far_off_scores_do_not_blur_the_others_in_tensors(surrogate: rw.Surrogate) -> None:
    """What a window holds is known from its own members, wherever the other windows are."""
    rng = np.random.default_rng(43)
    relevant = rng.random(600) < 0.4
    scores = rng.normal(size=600) + 1e8
    scores[:200] *= np.where(rng.random(200) < 0.5, -1e12, 1e4)
    core, tensor = by_both(torch.tensor(scores), torch.tensor(relevant), "ap", surrogate)
    torch.testing.assert_close(core[0], tensor[0], rtol=1e-12, atol=0.0)
    torch.testing.assert_close(core[1], tensor[1], rtol=1e-10, atol=1e-13)
