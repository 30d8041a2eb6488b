"""The loss of a block: J by the definition, the mean over classes, and the bound on its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from block_losses import LOSSES, by_class

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from torch import nn  # noqa: E402

losses = pytest.mark.parametrize("loss", LOSSES)


@losses
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_loss_of_a_block_is_the_mean_over_classes_of_J(loss: str, dtype: Any, rng: np.random.Generator) -> None:
    for n, scale in ((1, 1.0), (2, 1.3), (9, 1.3), (30, 0.2)):
        scores, labels = torch.from_numpy(rng.normal(size=(n, 4))).to(dtype), torch.from_numpy(rng.integers(3, size=n))
        how = BlockLoss(LOSSES[loss], 4, scale=scale)
        values, gradient = how.solve(scores, labels)
        wanted = by_class(loss, scores, labels, scale)
        assert values.dtype == torch.float64
        assert gradient.dtype == dtype
        np.testing.assert_allclose(values.numpy(), wanted, rtol=1e-6, atol=1e-7 if dtype == torch.float32 else 1e-12)
        leaf = scores.clone().requires_grad_()
        value = how.as_function(leaf, labels)
        (2.0 * value).backward()
        assert value.item() == pytest.approx(sum(wanted), rel=1e-5, abs=1e-6)
        assert torch.equal(leaf.grad, 2.0 * gradient)
        if loss != "hinge":
            assert values[3] == 0.0
            assert not gradient[:, 3].any()
    assert how.calls == 2
    assert how.seconds > 0.0


@losses
def test_bounds_are_the_least_that_no_gradient_exceeds(loss: str, rng: np.random.Generator) -> None:
    labels = torch.from_numpy(rng.integers(3, size=12))
    how = BlockLoss(LOSSES[loss], 4, scale=3.0)
    bounds, positive = how.bounds(labels), nn.functional.one_hot(labels, 4).bool()
    largest = torch.zeros_like(bounds)
    for size in np.repeat([0.1, 1.0, 10.0, 1e3], 20):
        slope = how.solve(torch.from_numpy(size * rng.normal(size=(12, 4))), labels)[1]
        assert (slope[positive] <= 0.0).all()
        assert (slope[~positive] >= 0.0).all()
        assert (slope.abs() <= bounds + 1e-15).all()
        largest = largest.maximum(slope.abs())
    wrong = how.solve(torch.where(positive, -1e3, 1e3 + torch.rand(12, 4, dtype=torch.float64)), labels)[1]
    torch.testing.assert_close(largest.maximum(wrong.abs()), bounds, rtol=1e-12, atol=0)
