"""The convex problem of a layer: J by the definition, above it and convex, planes from below, and their gradients."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from block_losses import LOSSES, by_class

torch = pytest.importorskip("torch")

from layer_networks import NETS, made  # noqa: E402
from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from rankwise_lab.layerwise.problem import LayerProblem  # noqa: E402
from torch import nn  # noqa: E402

N_CLASSES = 3
SEGMENTS = 6  # either block with each of three sizes
CASES = [(name, k, kind) for name in NETS for k in made(name)[0].trainable for kind in ("dc", "fixed")]
CASES = [(name, k, kind) for name, k, kind in CASES if kind == "dc" or k != made(name)[0].trainable[-1]]
places = pytest.mark.parametrize(("name", "k", "kind"), CASES)
# All losses take turns, so that each meets several networks, either kind and several layers.
problems = pytest.mark.parametrize(
    ("name", "k", "kind", "loss"), [(*case, list(LOSSES)[at % len(LOSSES)]) for at, case in enumerate(CASES)]
)
DENSE, CONVOLUTIONAL = "dense, slope 1.5", "circular, averaged"


def samples(name: str, n: int = 13, dtype: Any = torch.float64, **options: Any) -> Blocks:
    rng = np.random.default_rng(n)
    labels = rng.permutation(np.arange(n) % N_CLASSES)
    return Blocks(rng.normal(size=(n, *NETS[name][1])), labels, N_CLASSES, dtype=dtype, **{"block_size": 7} | options)


def problem_of(name: str, k: int, kind: str, loss: str, dtype: Any = torch.float64, **options: Any) -> LayerProblem:
    how = BlockLoss(LOSSES[loss], N_CLASSES, scale=1.3)
    return LayerProblem(made(name, dtype)[0], k, samples(name, dtype=dtype), how, decomposition=kind, **options)


def around(problem: LayerProblem, rng: np.random.Generator, size: float = 1.0) -> Any:
    return problem.start + size * torch.from_numpy(rng.normal(size=problem.start.shape))


def put(net: Any, k: int, W: Any) -> Any:
    """A copy of the network with these weights in layer k."""
    net = copy.deepcopy(net)
    part, columns = net[k], net[k].weight[0].numel()
    part.weight.data = W[:, :columns].reshape(part.weight.shape).to(part.weight.dtype)
    if part.bias is not None:
        part.bias.data = W[:, columns].to(part.weight.dtype)
    return net


@pytest.mark.slow
@problems
def test_a_function_touches_the_loss(name: str, k: int, kind: str, loss: str, rng: np.random.Generator) -> None:
    problem = problem_of(name, k, kind, loss)
    last = k == len(problem.net) - 1
    assert problem.kind == ("exact" if last else kind)
    for b, size in ((0, 0.0), (0, 0.1), (0, 1.0), (1, 0.0), (1, 1.0)):
        W, share = around(problem, rng, size), problem.blocks.share(b)
        scores = put(problem.net, k, W)(problem.blocks.images(b)).detach()
        true = share * np.array(by_class(loss, scores, problem.blocks.labels(b), 1.3))
        assert problem.loss_of(b, W) == pytest.approx(true.sum(), abs=1e-10)
        found = problem.value(b, W).numpy()
        if last and loss != "hinge":
            np.testing.assert_allclose(found, true, rtol=0, atol=1e-10)
        elif last or size == 0.0:
            np.testing.assert_allclose(found, [true.sum()], rtol=0, atol=1e-10)
        elif kind == "dc":
            assert found.item() >= true.sum() - 1e-10
    total = sum(problem.loss_of(b, problem.start) for b in range(2))
    assert problem.loss(problem.start) == pytest.approx(total, rel=1e-12)


@pytest.mark.slow
@problems
def test_a_function_is_convex(name: str, k: int, kind: str, loss: str, rng: np.random.Generator) -> None:
    problem = problem_of(name, k, kind, loss)
    for at in range(SEGMENTS):
        b, t, size = at % 2, rng.random(), 10.0 ** (at % 3 - 2)
        V, W = around(problem, rng, size), around(problem, rng, size)
        ends = problem.value(b, V), problem.value(b, W)
        between = problem.value(b, t * V + (1 - t) * W)
        rounding = 1e-11 * (1.0 + sum(one.abs().max().item() for one in ends))
        assert (between <= t * ends[0] + (1 - t) * ends[1] + rounding).all()
        plane = problem.plane(b, V)
        matrix = problem.expand(b, plane.gradient)
        torch.testing.assert_close(plane.value, ends[0], rtol=0, atol=rounding)
        torch.testing.assert_close(plane.inner, problem.dot(matrix, V), rtol=0, atol=rounding)
        assert (plane.value + problem.dot(matrix, W - V) <= ends[1] + rounding).all()


@problems
def test_gradients_by_finite_differences(name: str, k: int, kind: str, loss: str, rng: np.random.Generator) -> None:
    problem = problem_of(name, k, kind, loss)
    W = around(problem, rng, 0.5)
    planes = {}
    for compressed in (False, True) if isinstance(problem.net[k], nn.Linear) else (False,):
        problem._concave.clear()
        problem.compressed = compressed
        plane = problem.plane(0, W)
        assert plane.gradient.shape == ((problem.blocks.size(0), len(W)) if compressed else W.shape)
        planes[compressed] = problem.expand(0, plane.gradient)
        torch.testing.assert_close(plane.inner, problem.dot(planes[compressed], W), rtol=0, atol=1e-12)
    torch.testing.assert_close(planes[False], planes.get(True, planes[False]), rtol=0, atol=1e-12)
    for _ in range(3):
        D = torch.from_numpy(rng.normal(size=W.shape))
        step = 1e-6
        slope = (problem.value(0, W + step * D) - problem.value(0, W - step * D)) / (2 * step)
        torch.testing.assert_close(problem.dot(planes[False], D), slope, rtol=1e-6, atol=1e-7)


@places
def test_nothing_depends_on_what_memory_lets_be_kept(name: str, k: int, kind: str, rng: np.random.Generator) -> None:
    kept, anew, some = (problem_of(name, k, kind, "ap", memory=memory) for memory in (1e9, 0.0, 600.0))
    W = around(kept, rng)
    for b in (0, 1, 0):
        for other in (anew, some):
            assert torch.equal(kept.value(b, W), other.value(b, W))
            for one, another in zip(kept.plane(b, W), other.plane(b, W), strict=True):
                assert torch.equal(one, another)
    assert len(kept._inputs) == 2
    assert not anew._inputs
    assert not anew._chosen


def test_dense_layers_are_decomposed_and_choices_above_convolutions_fixed_unless_one_says_otherwise() -> None:
    how = BlockLoss("ap", N_CLASSES)
    net, blocks = made(CONVOLUTIONAL)[0], samples(CONVOLUTIONAL)
    kinds = [LayerProblem(net, k, blocks, how).kind for k in net.trainable]
    assert kinds == ["fixed", "fixed", "dc", "exact"]
    affine = PLCNN(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, N_CLASSES)).double().eval()
    below = LayerProblem(affine, 0, samples(DENSE), how)
    assert (below.kind, below.by_class) == ("exact", False)
    assert LayerProblem(affine, 3, samples(DENSE), how).by_class
    assert not LayerProblem(affine, 3, samples(DENSE), BlockLoss("hinge", N_CLASSES)).by_class
    with pytest.raises(ValueError, match="unknown decomposition 'convex'"):
        LayerProblem(net, 0, blocks, how, decomposition="convex")
