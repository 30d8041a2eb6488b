"""Samples of LW-SVM in blocks and their loss: a fixed partition, J by the definition, bad samples refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from block_losses import LOSSES, by_class

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from torch import nn  # noqa: E402

losses = pytest.mark.parametrize("loss", LOSSES)


def samples(n: int = 23, dtype: str = "float32") -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2, 3, 3)).astype(dtype), np.arange(n) % 4


@pytest.mark.parametrize(("n", "block_size"), [(1, 1), (7, 7), (23, 5), (23, 6), (23, 100), (24, 1)])
def test_blocks_part_the_samples_into_sizes_that_differ_by_at_most_one(n: int, block_size: int) -> None:
    images, labels = samples(n)
    images[:, 0, 0, 0] = np.arange(n)
    blocks = Blocks(images, labels.astype(np.uint8), 4, block_size=block_size, seed=3, dtype=torch.float64)
    sizes = [blocks.size(b) for b in range(len(blocks))]
    assert len(blocks) == -(-n // block_size)
    assert max(sizes) <= block_size
    assert max(sizes) - min(sizes) <= 1
    assert sum(blocks.share(b) for b in range(len(blocks))) == pytest.approx(1.0, abs=1e-12)
    found = torch.cat([blocks.images(b)[:, 0, 0, 0] for b in range(len(blocks))])
    assert found.dtype == torch.float64
    assert sorted(found.tolist()) == list(range(n))
    assert torch.equal(torch.cat([blocks.labels(b) for b in range(len(blocks))]), found.long() % 4)
    again, other = (Blocks(images, labels, 4, block_size=block_size, seed=seed) for seed in (3, 4))
    assert torch.equal(again.images(0).double(), blocks.images(0))
    assert len(blocks) in (1, n) or not torch.equal(again.images(0), other.images(0))


def with_value(value: float) -> Any:
    images, _ = samples(9)
    images[7, 1, 0, 2] = value
    return images


IMAGES, LABELS = samples(9)
BAD = {
    "negative": (IMAGES, np.where(np.arange(9) == 4, -1, LABELS), ValueError, r"labels\[4\] is -1"),
    "float labels": (IMAGES, LABELS.astype(float), TypeError, "labels have dtype torch.float64"),
    "word labels": (IMAGES, ["cat"] * 9, TypeError, "labels must be an array or a tensor of numbers"),
    "lengths": (IMAGES, LABELS[:8], ValueError, r"9 images but labels have shape \(8,\)"),
    "bytes": ((IMAGES * 9).astype(np.uint8), LABELS, TypeError, r"images have dtype torch.uint8; scale them"),
    "nan": (with_value(np.nan), LABELS, ValueError, "image 7 has a value that is NaN"),
    "overflow": (with_value(1).astype(np.float64) * 1e39, LABELS, ValueError, "image 0 .* too large for"),
    "empty": (IMAGES[:0], LABELS[:0], ValueError, "there are no images"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_are_refused_by_name(case: str) -> None:
    images, labels, error, match = BAD[case]
    with pytest.raises(error, match=f"^val: .*{match}"):
        Blocks(images, labels, 4, name="val")


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
    wrong = torch.where(positive, -1e3, 1e3 + torch.rand(12, 4, dtype=torch.float64))
    drawn = [torch.from_numpy(size * rng.normal(size=(12, 4))) for size in np.repeat([0.1, 1.0, 10.0, 1e3], 10)]
    largest = torch.zeros_like(bounds)
    for scores in (*drawn, wrong):
        slope = how.solve(scores, labels)[1]
        assert (slope[positive] <= 0.0).all()
        assert (slope[~positive] >= 0.0).all()
        assert (slope.abs() <= bounds + 1e-15).all()
        largest = largest.maximum(slope.abs())
    torch.testing.assert_close(largest, bounds, rtol=1e-12, atol=0)
