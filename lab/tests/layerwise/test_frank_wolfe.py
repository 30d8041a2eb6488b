"""Block-coordinate Frank–Wolfe on a layer: the dual rises to the primal, RankSVM agrees, a layer never gets worse.

Everything is in float64, on networks small enough to enumerate what a solver needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver, LayerStep, finish  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from rankwise_lab.layerwise.problem import LayerProblem  # noqa: E402
from torch import nn  # noqa: E402

import rankwise as rw  # noqa: E402

LOSSES = ("hinge", "zero-one", "ap", "ndcg", "mrr", "auc")
losses = pytest.mark.parametrize("loss", LOSSES)
MEMORIES = (1e9, 0.0, 2e3)


def dense(seed: int) -> tuple[Any, tuple[int, ...]]:
    torch.manual_seed(seed)
    return PLCNN(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.LeakyReLU(0.1), nn.Linear(4, 3)), (3,)


def wide(seed: int) -> tuple[Any, tuple[int, ...]]:
    torch.manual_seed(seed)
    return PLCNN(nn.Linear(9, 5), nn.LeakyReLU(-0.3), nn.Linear(5, 3, bias=False)), (9,)


def convolutional(seed: int) -> tuple[Any, tuple[int, ...]]:
    torch.manual_seed(seed)
    first = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2)
    return PLCNN(*first, nn.Flatten(), nn.Linear(8, 3)), (1, 6, 6)


# Which network, which of its layers, and how: exact by class, then all others, with gradients kept both ways.
KINDS: dict[str, tuple[Any, int, str]] = {
    "exact": (dense, 4, "dc"), "exact, compressed": (wide, 2, "dc"), "dc": (dense, 0, "dc"),
    "dc, in the middle": (dense, 2, "dc"), "dc, compressed": (wide, 0, "dc"), "fixed, compressed": (wide, 0, "fixed"),
    "fixed": (dense, 2, "fixed"), "fixed, convolution": (convolutional, 0, "fixed"),
    "dc, convolution": (convolutional, 0, "dc"),
}  # fmt: skip


def memory_of(kind: str, loss: str) -> float:
    """They take turns, where they make a difference: of exact and of compressed problems no planes are kept."""
    kept = [one for one in KINDS if "exact" not in one and "compressed" not in one]
    return MEMORIES[(kept.index(kind) + LOSSES.index(loss)) % 3] if kind in kept else MEMORIES[0]


kinds = pytest.mark.parametrize("kind", KINDS)


def problem_of(
    kind: str, loss: str, seed: int = 0, n: int = 15, block_size: int = 5, dtype: Any = torch.float64
) -> LayerProblem:
    make, position, decomposition = KINDS[kind]
    net, shape = make(seed)
    rng = np.random.default_rng([seed, 7])
    labels = rng.integers(3, size=n)
    images = rng.normal(size=(n, *shape)) + labels.reshape(-1, *[1] * len(shape)) / 2
    blocks = Blocks(images, labels, 3, block_size=block_size, seed=seed, dtype=dtype)
    how = BlockLoss(loss, 3, scale=1.2)
    return LayerProblem(net.to(dtype).eval(), position, blocks, how, decomposition=decomposition)


class Watched(LayerSolver):
    """Notes the dual and the weights after every single step."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.duals, self.iterates = [self.dual], [self.weights.clone()]

    def _towards(self, *args: Any) -> None:
        super()._towards(*args)
        self.duals.append(self.dual)
        self.iterates.append(self.weights.clone())


@pytest.mark.slow
@losses
@kinds
def test_no_step_lowers_the_dual_and_the_primal_stays_above(kind: str, loss: str) -> None:
    problem, memory = problem_of(kind, loss), memory_of(kind, loss)
    solver = Watched(problem, 0.02, 0.05, memory=memory)
    for epoch in range(3):
        solver.epoch(np.random.default_rng(epoch).permutation(len(problem.blocks)).tolist())
        for W in (solver.weights, solver.average, problem.start):
            assert solver.primal(W) >= solver.dual - 1e-12
    assert np.diff(solver.duals).min() >= -1e-13
    assert solver.duals[-1] > solver.duals[0]
    kept = problem.kind != "exact" and not problem.compressed and memory > 0.0
    assert (solver._kept > 0) == kept
    assert kept or len(solver.duals) - 1 == 3 * len(problem.blocks)
    average = solver.iterates[0]
    for k, W in enumerate(solver.iterates[1:]):
        average = average + 2.0 / (k + 2.0) * (W - average)
    torch.testing.assert_close(solver.average, average, rtol=0, atol=1e-12)
    assert solver.steps == len(solver.duals) - 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "ap", "ndcg", "zero-one"])
@kinds
def test_dual_and_primal_meet(kind: str, loss: str) -> None:
    problem = problem_of(kind, loss)
    solver = LayerSolver(problem, 0.4, 0.3)
    rng = np.random.default_rng(0)
    least, begun = np.inf, solver.primal() - solver.dual
    for _ in range(20):
        for _ in range(6):
            solver.epoch(rng.permutation(3).tolist())
        least = min(least, solver.primal(), solver.primal(solver.average))
        if least - solver.dual <= 1e-3 * least:
            break
    assert -1e-12 <= least - solver.dual <= 1e-3 * least
    assert least - solver.dual < 0.1 * begun


@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc", "zero-one"])
def test_without_mu_the_optimum_of_a_last_layer_is_that_of_rank_svm_wherever_it_began(loss: str) -> None:
    """RankSVM's own intercept is hardly penalised, ours is a weight as any other: a column of ones."""
    lam = 0.1
    first = problem_of("exact", loss, n=45, block_size=15)
    labels = torch.cat([first.blocks.labels(b) for b in range(3)])
    X = torch.cat([first.input(b) for b in range(3)]).numpy()
    qid, wanted = np.repeat(np.arange(3), 15), 0.0
    for c in range(3):
        model = rw.RankSVM(loss, 1.0 / (lam * 3), tol=1e-6, fit_intercept=False, scale=1.2)
        relevant = (labels == c).numpy()
        wanted += lam * model.fit(np.column_stack([X, np.ones(45)]), relevant, qid=qid).objective_
    solver = LayerSolver(first, lam, 0.0)
    assert not solver.weights.any()
    first.put(torch.randn_like(first.start))
    moved = LayerProblem(first.net, first.position, first.blocks, first.block_loss)
    afresh = LayerSolver(moved, lam, 0.0)
    for epoch in range(150):
        for one in (solver, afresh) if epoch < 20 else (solver,):
            one.epoch(np.random.default_rng(epoch).permutation(3).tolist())
        if epoch == 19:
            torch.testing.assert_close(solver.weights, afresh.weights, rtol=0, atol=1e-12)
    least = min(solver.primal(), solver.primal(solver.average))
    assert solver.dual <= wanted * (1 + 1e-9)
    assert wanted * (1 - 1e-5) <= least <= wanted * (1 + 1e-3)


# --- the end of a step


def weights_in(problem: LayerProblem) -> Any:
    part: Any = problem.net[problem.position]
    return problem.matrix(part.weight, part.bias)


def stepped(problem: LayerProblem, lam: float, mu: float, epochs: int = 3) -> tuple[LayerSolver, LayerStep]:
    solver = LayerSolver(problem, lam, mu)
    for _ in range(epochs):
        solver.epoch(range(len(problem.blocks)))
    return solver, finish(solver)


def risk(problem: LayerProblem) -> float:
    """Of the network as it is."""
    blocks, net = problem.blocks, problem.net
    found = [problem.block_loss.solve(net(blocks.images(b)), blocks.labels(b))[0].sum() for b in range(len(blocks))]
    return sum(blocks.share(b) * one.item() for b, one in enumerate(found))


@pytest.mark.slow
@kinds
@losses
def test_a_step_never_raises_the_true_objective_and_says_what_is_in_the_network(kind: str, loss: str) -> None:
    for seed, lam, mu in ((0, 1e-3, 1e-4), (1, 1e-2, 1e-2), (2, 0.0, 1.0)):
        problem = problem_of(kind, loss, seed)
        before, others = risk(problem), {key: part.clone() for key, part in problem.net.state_dict().items()}
        solver, step = stepped(problem, lam, mu)
        W = weights_in(problem)
        penalty = 0.5 * lam * W.square().sum().item() + 0.5 * mu * (W - problem.start).square().sum().item()
        assert step.start == pytest.approx(before + 0.5 * lam * problem.start.square().sum().item(), rel=1e-10)
        assert step.end <= step.start
        assert step.loss == pytest.approx(risk(problem), rel=1e-10, abs=1e-12)
        assert step.end == pytest.approx(step.loss + penalty, rel=1e-10)
        assert step.dual == solver.dual
        assert step.fraction in (0.0, *(0.5**halving for halving in range(7)))
        goals = [problem.start + step.fraction * (goal - problem.start) for goal in (solver.average, solver.weights)]
        exact = problem.kind == "exact"
        assert any(torch.allclose(W, goal, rtol=0, atol=1e-12) for goal in goals[: 1 + exact])
        assert (step.fraction == 0.0) == torch.equal(W, problem.start)
        assert (step.primal is not None) == exact
        if step.primal is not None:
            lowest = min(solver.primal(solver.average), solver.primal(solver.weights))
            assert step.primal == pytest.approx(lowest, rel=1e-10)
            assert step.primal >= step.dual - 1e-12
        for key, part in problem.net.state_dict().items():
            assert key.startswith(f"{problem.position}.") or torch.equal(part, others[key])
