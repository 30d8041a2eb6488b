"""The smooth and the error-driven loss in PyTorch: large and distant scores by either backend, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from soft_losses import LOSSES

import rankwise as rw

torch = pytest.importorskip("torch")

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402

BACKENDS = ("core", "tensor")
WAYS: dict[str, Callable[..., Any]] = {
    "smooth": functional.smooth_loss,
    "error-driven": partial(functional.error_driven_loss, interpolate=False),
    "interpolated": functional.error_driven_loss,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOSSES)
def test_the_backends_agree_on_large_queries_columns_and_ragged_ones(name: str, way: str) -> None:
    function, rng = WAYS[way], np.random.default_rng(42)
    scores, relevant = torch.tensor(rng.normal(size=(4000, 3))), torch.tensor(rng.random((4000, 3)) < 0.2)
    relevant[:, 1] = False
    flat, label, qid = scores.reshape(-1), relevant.reshape(-1), torch.tensor(rng.integers(0, 40, 12_000) ** 2)
    mask = torch.tensor(rng.random(12_000) < 0.9)
    for given, options in (
        ((scores, relevant), {"dim": 0}),
        ((flat, label), {"qid": qid, "mask": mask}),
        ((flat, label), {"qid": qid, "reduction": "none"}),
    ):
        found = []
        for backend in BACKENDS:
            leaf = given[0].clone().requires_grad_()
            value = function(leaf, given[1], LOSSES[name], width=0.3, backend=backend, **options)
            value.sum().backward()
            found.append((value.detach(), leaf.grad))
        torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-9, atol=1e-12 * found[0][1].abs().max().item())
        assert found[0][1].abs().max() > 0.0


@pytest.mark.parametrize("way", WAYS)
def test_far_off_scores_do_not_blur_the_others_in_tensors(way: str) -> None:
    """What a window holds is known from its own members, wherever the other windows are."""
    function, rng = WAYS[way], np.random.default_rng(43)
    relevant = rng.random(600) < 0.4
    scores = rng.normal(size=600) + 1e8
    scores[:200] *= np.where(rng.random(200) < 0.5, -1e12, 1e4)
    found = []
    for backend in BACKENDS:
        leaf = torch.tensor(scores, requires_grad=True)
        value = function(leaf, torch.tensor(relevant), width=0.3, backend=backend)
        value.backward()
        found.append((value.item(), leaf.grad))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_of_the_smooth_loss_is_its_derivative(name: str, backend: str) -> None:
    rng = np.random.default_rng(44)
    leaf = torch.tensor(rng.normal(size=(3, 9)), requires_grad=True)
    target = torch.tensor(np.arange(27).reshape(3, 9) % 3 == 0)
    module = rwt.SmoothRankLoss(LOSSES[name], width=0.7, dim=1, reduction="none", backend=backend)
    assert torch.autograd.gradcheck(lambda a: module(a, target), (leaf,))


def test_the_update_of_the_error_driven_loss_reaches_positives_that_the_smooth_loss_gives_up() -> None:
    scores, target = torch.tensor([5.0, 4.0, -20.0]), torch.tensor([0, 0, 1])
    gradients = []
    for module in (rwt.SmoothRankLoss(), rwt.ErrorDrivenLoss()):
        leaf = scores.clone().requires_grad_()
        module(leaf, target).backward()
        gradients.append(leaf.grad.tolist())
    assert gradients[0] == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(gradients[1], [1 / 3, 1 / 3, -2 / 3], rtol=1e-6)


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no discount": ({"loss": "zero-one"}, ValueError, "zero-one has no discount, so it cannot be smoothed; use 'ap'"),
    "a step loss": ({"loss": rw.StepLoss(lambda i, j, p, n: -i / j)}, ValueError, "step has no discount"),
    "unknown": ({"loss": "map"}, ValueError, "unknown loss 'map'"),
    "no width": ({"width": 0.0}, ValueError, "width must be a positive number"),
    "a word": ({"width": "wide"}, ValueError, "width must be a positive number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_options_are_refused_by_functions_and_when_modules_are_made(name: str) -> None:
    options, error, words = REFUSED[name]
    for function in (functional.smooth_loss, functional.error_driven_loss):
        with pytest.raises(error, match=words):
            function(torch.zeros(2), torch.tensor([0, 1]), **options)
    for module in (rwt.SmoothRankLoss, rwt.ErrorDrivenLoss):
        with pytest.raises(error, match=words):
            module(**options)
    with pytest.raises(TypeError, match="interpolate must be True or False"):
        rwt.ErrorDrivenLoss(interpolate=1)
