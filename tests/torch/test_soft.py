"""The smooth and the error-driven loss in PyTorch: their formulas, by either backend, and PyTorch's own machinery."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from soft_losses import LOSSES, error_driven_by_formula, smooth_by_formula

import rankwise as rw

torch = pytest.importorskip("torch")

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402

BACKENDS = ("core", "tensor")
TOL = {torch.float64: 1e-10, torch.float32: 1e-5}  # of 1 for values, of the largest gradient of a row for gradients

Formula = Callable[[Any, Any, rw.DiscountedLoss, float], tuple[float, Any]]
WAYS: dict[str, tuple[Callable[..., Any], Formula]] = {
    "smooth": (functional.smooth_loss, smooth_by_formula),
    "error-driven": (
        partial(functional.error_driven_loss, interpolate=False),
        partial(error_driven_by_formula, interpolate=False),
    ),
    "interpolated": (functional.error_driven_loss, partial(error_driven_by_formula, interpolate=True)),
}


def rows_of(rng: np.random.Generator, number: int) -> tuple[Any, Any, Any, float]:
    """Scores, targets, masks (3, n), and a width: with ties, far-off scores, one positive or negative, or none."""
    n = int(rng.integers(2, 60))
    relevant = rng.random((3, n)) < rng.choice([0.1, 0.4, 0.9])
    scores = rng.normal(size=(3, n)) + 0.5 * relevant
    width = float(rng.choice([0.05, 0.5, 3.0]))
    if number % 3 == 0:
        scores, width = np.round(4.0 * scores) / 4.0, 0.5  # ties, also at the edges of windows
    if number % 5 == 0:
        scores[:, 0] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(2, 12)
    if number % 4 == 0:
        relevant[0] = number % 8 == 0
        relevant[0, 0] = number % 8 != 0
        relevant[1] = number % 8 == 0
    mask = rng.random((3, n)) < 0.8 if number % 2 else np.ones((3, n), dtype=bool)
    return scores.astype(np.float32), relevant, mask, width  # float32, so that either precision has the same scores


def expected_of(formula: Formula, loss: rw.DiscountedLoss, *rows: Any) -> tuple[Any, Any]:
    """Values (3,) and gradients (3, n), one row after the other."""
    scores, relevant, mask, width = rows
    values, gradients = np.zeros(3), np.zeros(scores.shape)
    for q, (s, y, m) in enumerate(zip(scores, relevant, mask, strict=True)):
        if 0 < y[m].sum() < m.sum():
            values[q], gradients[q, m] = formula(s[m], y[m], loss, width)
    return values, gradients


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_values_and_gradients_equal_the_loop_on_random_batches(way: str) -> None:
    function, formula = WAYS[way]
    rng = np.random.default_rng(41)
    for number in range(120 if way == "smooth" else 60):  # the error-driven loss has two ways
        loss = list(LOSSES.values())[number % len(LOSSES)]
        scores, relevant, mask, width = rows_of(rng, number)
        values, gradients = expected_of(formula, loss, scores, relevant, mask, width)
        largest = np.maximum(np.abs(gradients).max(axis=1, keepdims=True), 1e-5)
        given, target, valid = torch.tensor(np.where(mask, scores, np.nan)), torch.tensor(relevant), torch.tensor(mask)
        # Both precisions and backends; of float32 the backends take turns.
        for dtype, backend in (
            (torch.float64, "core"),
            (torch.float64, "tensor"),
            (torch.float32, BACKENDS[number % 2]),
        ):
            leaf = given.to(dtype, copy=True).requires_grad_()
            found = function(leaf, target, loss, mask=valid, width=width, dim=1, reduction="none", backend=backend)
            found.sum().backward()
            wrong = (
                np.abs(found.detach().numpy() - values).max(),
                np.abs((leaf.grad.numpy() - gradients) / largest).max(),
            )
            assert max(wrong) <= TOL[dtype], (number, loss.name, dtype, backend, wrong)
            assert (found.dtype, leaf.grad.dtype) == (dtype, dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOSSES)
def test_the_backends_agree_on_large_queries_columns_and_ragged_ones(name: str, way: str) -> None:
    function, rng = WAYS[way][0], np.random.default_rng(42)
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
    function, rng = WAYS[way][0], np.random.default_rng(43)
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # PyTorch's notices to itself
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [rwt.SmoothRankLoss, rwt.ErrorDrivenLoss], ids=["smooth", "error-driven"])
def test_modules_compile_and_map(make: Any, backend: str) -> None:
    torch._dynamo.reset()
    rng = np.random.default_rng(46)
    scores, target = torch.tensor(rng.normal(size=(4, 9))), torch.tensor(rng.random((4, 9)) < 0.4)
    target[:, 0], target[:, 1] = True, False
    module = make("ndcg", width=0.5, dim=-1, backend=backend)
    found = []
    for run in (module, torch.compile(module, fullgraph=True, backend="aot_eager")):
        leaf = scores.clone().requires_grad_()
        value = run(leaf, target)
        value.backward()
        found.append((value.detach(), leaf.grad))
    torch._dynamo.reset()
    torch.testing.assert_close(found[0], found[1])
    each = [module(*one) for one in zip(scores, target, strict=True)]
    torch.testing.assert_close(torch.vmap(module)(scores, target), torch.stack(each))
    mapped = torch.vmap(torch.func.grad(module))(scores, target)
    torch.testing.assert_close(mapped / 4, found[0][1])


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no discount": ({"loss": "zero-one"}, ValueError, "zero-one has no discount, so it cannot be smoothed; use 'ap'"),
    "a step loss": ({"loss": rw.StepLoss(lambda i, j, p, n: -i / j)}, ValueError, "step has no discount"),
    "unknown": ({"loss": "map"}, ValueError, "unknown loss 'map'"),
    "no width": ({"width": 0.0}, ValueError, "width must be a positive number"),
    "a word": ({"width": "wide"}, ValueError, "width must be a positive number"),
    "reduction": ({"reduction": "max"}, ValueError, "unknown reduction='max'"),
    "backend": ({"backend": "cuda"}, ValueError, "unknown backend='cuda'"),
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
