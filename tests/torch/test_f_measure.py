"""The F-measure in torch: the core's values and gradients; where it is not known, an error that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rankwise as rw

torch = pytest.importorskip("torch")

import rankwise.torch as rwt  # noqa: E402


def batch(rng: np.random.Generator) -> tuple[Any, Any]:
    return torch.tensor(rng.normal(size=(6, 20)), requires_grad=True), torch.tensor(rng.random((6, 20)) < 0.3)


@pytest.mark.parametrize("backend", ["auto", "core"])
@pytest.mark.parametrize("smooth", [False, True])
def test_values_and_gradients_are_those_of_the_core(backend: str, smooth: bool, rng: np.random.Generator) -> None:
    scores, target = batch(rng)
    loss = (rwt.SmoothRankLoss if smooth else rwt.RankHingeLoss)("f1", dim=1, backend=backend)
    value = loss(scores, target)
    value.backward()
    qid = np.repeat(np.arange(6), 20)
    function = rw.smooth_loss if smooth else rw.structured_hinge
    found = function(scores.detach().numpy().ravel(), target.numpy().ravel(), "f1", qid=qid)
    assert value.item() == pytest.approx(found.value, rel=1e-12)
    np.testing.assert_allclose(scores.grad.numpy().ravel(), found.gradient, rtol=1e-12, atol=1e-15)


def test_the_direct_loss_has_its_positive_update_only(rng: np.random.Generator) -> None:
    scores, target = batch(rng)
    value = rwt.DirectLoss("f1", dim=1, update="positive", reduction="sum")(scores, target)
    losses = [rw.ranking_loss(s, y, "f1") for s, y in zip(scores.detach().numpy(), target.numpy(), strict=True)]
    assert value.item() == pytest.approx(sum(losses), rel=1e-12)
    with pytest.raises(ValueError, match="update='negative' is not available for f1; use update='positive'"):
        rwt.DirectLoss("f1", dim=1, update="negative")(scores, target)


@pytest.mark.parametrize("kind", ["RankHingeLoss", "SmoothRankLoss"])
@pytest.mark.parametrize("graded", [False, True])
def test_it_has_no_tensor_operations(kind: str, graded: bool, rng: np.random.Generator) -> None:
    scores, target = batch(rng)
    with pytest.raises(ValueError, match=r"no operations for the (hinge|smooth loss) of 'f1'; use backend='auto'"):
        getattr(rwt, kind)("f1", dim=1, backend="tensor")(scores, target * 2 if graded else target)


def test_it_has_no_error_driven_loss() -> None:
    with pytest.raises(ValueError, match="f1 has no discount, so it has no error-driven loss"):
        rwt.ErrorDrivenLoss("f1")(torch.tensor([1.0, 0.0]), torch.tensor([0, 1]))
