"""The end of a layer's step never raises its true objective; a solver that was stopped goes on with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver  # noqa: E402
from rankwise_lab.layerwise.layer_step import LayerStep, finish  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from rankwise_lab.layerwise.problem import LayerProblem  # noqa: E402
from torch import nn  # noqa: E402

LOSSES = ("hinge", "zero-one", "ap", "ndcg", "mrr", "auc")


def dense() -> tuple[Any, tuple[int, ...]]:
    parts = nn.Linear(3, 6), nn.BatchNorm1d(6), nn.LeakyReLU(-0.3), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)
    return PLCNN(*parts), (3,)


def convolutional() -> tuple[Any, tuple[int, ...]]:
    first = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return PLCNN(*first, nn.Linear(8, 3, bias=False)), (1, 6, 6)


NETS = {"dense": dense, "convolutional": convolutional}
PLACES = [("dense", 0), ("dense", 3), ("dense", 5), ("convolutional", 0), ("convolutional", 4)]
CASES = [(*place, kind, loss) for place in PLACES for kind in ("dc", "fixed") for loss in LOSSES]


def problem_of(
    name: str, k: int, kind: str, loss: str, seed: int, n: int = 16, block_size: int = 6, dtype: Any = torch.float64
) -> LayerProblem:
    torch.manual_seed(seed)
    net, shape = NETS[name]()
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    images = rng.normal(size=(n, *shape)) + labels.reshape(-1, *[1] * len(shape)) / 2
    blocks = Blocks(images, labels, 3, block_size=block_size, seed=seed, dtype=dtype)
    return LayerProblem(net.to(dtype).eval(), k, blocks, BlockLoss(loss, 3), decomposition=kind)


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


fractions: set[float] = set()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k", "kind", "loss"), CASES)
def test_a_step_never_raises_the_true_objective_and_says_what_is_in_the_network(
    name: str, k: int, kind: str, loss: str
) -> None:
    for seed, mu in ((0, 1e-4), (1, 1e-2), (2, 1.0)):
        lam = (1e-3, 1e-2, 0.0)[seed]
        problem = problem_of(name, k, kind, loss, seed)
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
            assert key.startswith(f"{k}.") or torch.equal(part, others[key])
        fractions.add(step.fraction)


def test_steps_are_taken_whole_in_part_and_not_at_all() -> None:
    """What the test above went through, or a few of its problems if it did not run."""
    for seed in range(4 if len(fractions) < 4 else 0):
        for name, k, kind, loss in CASES[::5]:
            fractions.add(stepped(problem_of(name, k, kind, loss, seed), 1e-3, 1e-4)[1].fraction)
    assert {0.0, 1.0, 0.5} <= fractions
    assert len(fractions) >= 4


def test_a_step_halves_only_for_as_long_as_that_is_better_without_mu() -> None:
    for seed in range(12):
        problem = problem_of("dense", 3, "fixed", LOSSES[seed % 6], seed)
        origin, (solver, step) = problem.start, stepped(problem, 1e-2, 1e-3 if seed < 6 else 0.1)
        without = {}
        for halving in range(7):
            W = origin + 0.5**halving * (solver.average - origin)
            without[0.5**halving] = (
                problem.loss(W) + 0.5 * 1e-2 * W.square().sum().item(),
                solver.objective(W) <= step.start,
            )
        allowed = [fraction for fraction, (_, lower) in without.items() if lower]
        if not allowed:
            assert step.fraction == 0.0
            continue
        wanted = allowed[0]
        while wanted > 0.5**6 and without[wanted / 2][0] < without[wanted][0] and without[wanted / 2][1]:
            wanted /= 2
        assert step.fraction == wanted


def test_the_risk_at_the_start_is_taken_as_given() -> None:
    problem = problem_of("dense", 5, "dc", "ap", 0)
    solver = LayerSolver(problem, 0.01, 0.01)
    solver.epoch([0, 1, 2])
    step = finish(solver, -100.0)
    assert (step.fraction, step.loss) == (0.0, -100.0)
    assert torch.equal(weights_in(problem), problem.start)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("name", "k", "kind"),
    [("dense", 0, "dc"), ("dense", 3, "fixed"), ("dense", 5, "dc"), ("convolutional", 0, "fixed")],
)
def test_a_solver_restored_from_its_state_goes_on_with_the_same_bits(name: str, k: int, kind: str, dtype: Any) -> None:
    first = LayerSolver(problem_of(name, k, kind, "ap", 1, dtype=dtype), 0.01, 0.02)
    orders = [[2, 0, 1], [0, 1, 2], [1, 2, 0], [1, 0, 2]]
    for order in orders[:2]:
        first.epoch(order)
    kept = {key: np.array(part) for key, part in first.state().items()}
    second = LayerSolver(problem_of(name, k, kind, "ap", 1, dtype=dtype), 0.01, 0.02)
    second.restore(kept)
    assert second.dual == first.dual
    for order in orders[2:]:
        first.epoch(order)
        second.epoch(order)
    assert first.dual == second.dual
    assert (first.steps, first.epochs) == (second.steps, second.epochs)
    there, here = first.state(), second.state()
    assert there.keys() == here.keys()
    assert all(np.array_equal(part, here[key]) for key, part in there.items())
    steps = finish(first), finish(second)
    assert steps[0][:-1] == steps[1][:-1]
    assert torch.equal(weights_in(first.problem), weights_in(second.problem))


def test_blocks_of_which_only_some_are_smaller_than_the_layer_are_solved_together() -> None:
    problem = problem_of("dense", 3, "fixed", "ap", 0, n=20, block_size=7)  # 7, 7 and 6 samples, 6 inputs and a bias
    assert [problem.blocks.size(b) for b in range(3)] == [7, 7, 6]
    solver, step = stepped(problem, 0.01, 0.02)
    assert solver.primal() >= solver.dual
    assert step.end <= step.start


def test_a_block_whose_classes_have_no_positives_or_no_negatives_is_zero_and_moves_nothing() -> None:
    torch.manual_seed(0)
    net, shape = dense()
    images = np.random.default_rng(0).normal(size=(6, *shape))
    for labels in ([0] * 6, [2] * 6):
        blocks = Blocks(images, labels, 3, dtype=torch.float64)
        problem = LayerProblem(net.double().eval(), 5, blocks, BlockLoss("ap", 3))
        solver, step = stepped(problem, 0.0, 0.1)
        assert problem.loss(problem.start) == 0.0
        assert (step.start, step.end, step.loss) == (0.0, 0.0, 0.0)
        assert abs(solver.dual) < 1e-30
        assert torch.equal(weights_in(problem), problem.start)


@pytest.mark.parametrize(("lam", "mu"), [(-1.0, 2.0), (2.0, -1.0), (0.0, 0.0)])
def test_weights_of_the_penalty_are_not_negative_nor_both_zero(lam: float, mu: float) -> None:
    with pytest.raises(ValueError, match="must not be negative, and at least one of them must be positive"):
        LayerSolver(problem_of("dense", 5, "dc", "ap", 0), lam, mu)


def test_without_mu_a_last_layer_begins_at_zero_and_forgets_its_start() -> None:
    problem = problem_of("dense", 5, "dc", "hinge", 0)
    solver = LayerSolver(problem, 0.1, 0.0)
    assert not solver.weights.any()
    for _ in range(20):
        solver.epoch([0, 1, 2])
    other = problem_of("dense", 5, "dc", "hinge", 0)
    other.put(torch.randn_like(problem.start))
    again = LayerProblem(other.net, 5, other.blocks, other.block_loss)
    afresh = LayerSolver(again, 0.1, 0.0)
    for _ in range(20):
        afresh.epoch([0, 1, 2])
    torch.testing.assert_close(solver.weights, afresh.weights, rtol=0, atol=1e-12)
