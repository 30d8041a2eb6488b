"""Block-coordinate Frank–Wolfe on a layer: the dual rises to the primal, other solvers agree, a layer never gets worse.

Everything is in float64, on networks small enough to enumerate what a solver needs.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from rankwise_lab.layerwise.problem import LayerProblem  # noqa: E402
from torch import nn  # noqa: E402

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


def problem_of(kind: str, loss: str, seed: int = 0, n: int = 15, block_size: int = 5) -> LayerProblem:
    make, position, decomposition = KINDS[kind]
    net, shape = make(seed)
    rng = np.random.default_rng([seed, 7])
    labels = rng.integers(3, size=n)
    images = rng.normal(size=(n, *shape)) + labels.reshape(-1, *[1] * len(shape)) / 2
    blocks = Blocks(images, labels, 3, block_size=block_size, seed=seed, dtype=torch.float64)
    return LayerProblem(
        net.double().eval(), position, blocks, BlockLoss(loss, 3, scale=1.2), decomposition=decomposition
    )


class Watched(LayerSolver):
    """Notes the dual and the weights after every single step."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.duals, self.iterates = [self.dual], [self.weights.clone()]

    def _towards(self, *args: Any) -> None:
        super()._towards(*args)
        self.duals.append(self.dual)
        self.iterates.append(self.weights.clone())


def minimum(solver: LayerSolver, offset: Any, gradient: Any) -> Any:
    """min over W of the penalty + offset + ⟨gradient, W⟩, for each row of W."""
    start, lam, mu = solver.problem.start, solver.lam, solver.mu
    W = (mu * start - gradient) / (lam + mu)
    rows = 0.5 * lam * W**2 + 0.5 * mu * (W - start) ** 2 + gradient * W
    return offset + solver.problem._by_row(rows.sum(1))


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


@kinds
@pytest.mark.parametrize("loss", ["hinge", "ap"])
def test_the_dual_is_the_minimum_of_all_blocks_combinations_of_planes(kind: str, loss: str) -> None:
    problem = problem_of(kind, loss)
    solver = LayerSolver(problem, 0.02, 0.05)
    for epoch in range(3):
        solver.epoch([2, 0, 1] if epoch else [1])
        offset = torch.stack([solver._offsets[b][0] for b in solver._offsets]).sum(0)
        parts = [problem.expand(b, solver._gradients[b][0]) for b in solver._gradients]
        gradient = torch.stack(parts).sum(0)
        assert solver.dual == pytest.approx(minimum(solver, offset, gradient).sum().item(), abs=1e-12)
        for b in solver._gradients:  # a combination is nowhere above its block's function
            for W in (problem.start, solver.weights, 3.0 * torch.randn_like(problem.start)):
                below = solver._offsets[b][0] + problem.dot(problem.expand(b, solver._gradients[b][0]), W)
                assert (below <= problem.value(b, W) + 1e-12).all()


@pytest.mark.slow
@losses
@kinds
def test_a_step_is_the_best_there_is_between_two_planes_for_each_class_by_itself(kind: str, loss: str) -> None:
    problem = problem_of(kind, loss)
    solver = LayerSolver(problem, 0.02, 0.05, memory=0.0)
    for b in (0, 1, 2, 0, 1):
        plane = problem.plane(b, solver.weights)
        change = problem.expand(b, plane.gradient)
        other = torch.zeros_like(plane.value)
        if b in solver._gradients:
            change, other = change - problem.expand(b, solver._gradients[b][0]), solver._offsets[b][0].clone()
        offsets = sum((solver._offsets[k][0] for k in solver._offsets), torch.zeros_like(other))
        rise, total = plane.value - plane.inner - other, solver._sum.clone()
        solver.step(b)
        found = torch.full_like(other, -torch.inf)
        for gamma in np.linspace(0.0, 1.0, 21):
            found = found.maximum(minimum(solver, offsets + gamma * rise, total + gamma * change))
        reached = solver.dual
        assert reached >= found.sum().item() - 1e-12
        between = 0.5 * 0.025**2 * change.square().sum().item() / (solver.lam + solver.mu)  # two points of the grid
        assert reached <= found.sum().item() + between + 1e-12


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


# --- another solver


def solved(P: Any, q: Any, A: Any, b: Any) -> float:
    """min ½xᵀPx + qᵀx with Ax ≤ b."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(len(b))]
    found = clarabel.DefaultSolver(sp.csc_matrix(P), q, sp.csc_matrix(A), b, cones, settings).solve()
    assert str(found.status) == "Solved"
    return float(found.obj_val)


def assert_reached(wanted: float, solver: LayerSolver, n_blocks: int, epochs: int) -> None:
    """The bounds hold the optimum, and the lower one comes near it."""
    for epoch in range(epochs):
        solver.epoch(np.random.default_rng(epoch).permutation(n_blocks).tolist())
    assert solver.dual <= wanted + 1e-7
    assert min(solver.primal(), solver.primal(solver.average)) >= wanted - 1e-7
    assert solver.dual == pytest.approx(wanted, rel=1e-3)


def quadratic(lam: float, mu: float, start: Any, others: int) -> tuple[Any, Any, float]:
    weights = start.size
    P = np.diag([lam + mu] * weights + [0.0] * others)
    return P, np.concatenate([-mu * start.ravel(), np.zeros(others)]), 0.5 * mu * float((start**2).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("lam", "mu"), [(0.05, 0.0), (0.05, 0.1), (0.0, 0.2)])
@pytest.mark.parametrize("loss", ["hinge", "zero-one"])
def test_the_optimum_of_a_last_layer_is_that_of_a_quadratic_programme(loss: str, lam: float, mu: float) -> None:
    problem = problem_of("exact", loss, block_size=4, n=12)
    start, rows, bounds = problem.start.numpy(), [], []
    d, per = start.shape[1], 1 if loss == "hinge" else 3
    for b in range(3):
        for x, label in zip(problem.input(b).numpy(), problem.blocks.labels(b).tolist(), strict=True):
            for c in range(3):  # (1/12)·slack ≥ each output's violation
                normal, slack, offset = np.zeros((3, d)), np.zeros(12 * per), 1.2 * (c != label)
                slack[len(rows) // 3 if per == 1 else len(rows)] = -1.0
                if loss == "hinge":
                    normal[c] += [*x, 1.0]
                    normal[label] -= [*x, 1.0]
                else:
                    normal[c], offset = (1.0 if c != label else -1.0) * np.array([*x, 1.0]), 1.2
                rows.append([*normal.ravel(), *slack])
                bounds.append(-offset)
    others = 12 * per
    P, q, constant = quadratic(lam, mu, start, others)
    q[start.size :] = 1.0 / (12 * per)
    A = np.vstack([rows, np.column_stack([np.zeros((others, start.size)), -np.eye(others)])])
    if loss == "zero-one":  # a class that all or none of a block's samples have counts as 0
        counts = np.array([np.bincount(problem.blocks.labels(b), minlength=3) for b in range(3)])
        counted = np.repeat((counts > 0) & (counts < 4), 4, axis=0).ravel()
        q[start.size :] *= counted
        A = A[np.concatenate([counted, np.ones(others, bool)])]
        bounds = np.array(bounds)[counted].tolist()
    wanted = solved(P, q, A, np.array([*bounds, *np.zeros(others)])) + constant
    assert_reached(wanted, LayerSolver(problem, lam, mu), n_blocks=3, epochs=100)


@pytest.mark.slow
def test_the_optimum_of_a_dense_layer_below_is_that_of_a_quadratic_programme() -> None:
    """One hidden layer r = ReLU(Wx) under V: every r enters with a factor that is not negative, so r ≥ Wx, r ≥ 0."""
    torch.manual_seed(3)
    net = PLCNN(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3)).double().eval()
    rng = np.random.default_rng(3)
    labels = np.arange(8) % 3
    blocks = Blocks(rng.normal(size=(8, 2)) + np.eye(3, 2)[labels], labels, 3, block_size=4, dtype=torch.float64)
    problem = LayerProblem(net, 0, blocks, BlockLoss("hinge", 3))
    assert problem.kind == "dc"
    V, v = net[2].weight.detach().numpy(), net[2].bias.detach().numpy()
    up, down = np.maximum(V, 0.0), np.maximum(-V, 0.0)
    start, lam, mu = problem.start.numpy(), 0.05, 0.1
    X = np.column_stack([np.concatenate([blocks.images(b).numpy() for b in (0, 1)]), np.ones(8)])
    of = np.concatenate([blocks.labels(b).numpy() for b in (0, 1)])
    # x = (W, r, t): t_i ≥ every label's violation + Q, of sample i.
    P, q, constant = quadratic(lam, mu, start, 24 + 8)
    q[start.size + 24 :] = 1.0 / 8
    rows, bounds = [], []
    for i in range(8):
        for h in range(3):
            for hidden in (X[i], 0.0 * X[i]):
                row = np.zeros(q.size)
                row[3 * h : 3 * h + 3], row[start.size + 3 * i + h] = hidden, -1.0
                rows.append(row)
                bounds.append(0.0)
        for y in range(3):
            row = np.zeros(q.size)
            row[start.size + 3 * i : start.size + 3 * i + 3] = up[y] + down.sum(0) - down[y]
            row[start.size + 24 + i] = -1.0
            rows.append(row)
            bounds.append(-(float(y != of[i]) + v[y]))
        active = (start @ X[i] > 0.0) * (down.sum(0) + V[of[i]])
        q[: start.size] -= np.outer(active, X[i]).ravel() / 8  # Q made linear at the start's weights ...
        constant -= v[of[i]] / 8  # ... where it is homogeneous but for the bias above
    wanted = solved(P, q, np.array(rows), np.array(bounds)) + constant
    assert_reached(wanted, LayerSolver(problem, lam, mu), n_blocks=2, epochs=60)
