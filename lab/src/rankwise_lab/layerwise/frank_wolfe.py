"""Block-coordinate Frank–Wolfe on the problem of one layer: closed-form steps, no learning rate.

    minimise (λ/2)‖W‖² + (μ/2)‖W − W₀‖² + Σ_b h_b(W)

Every block keeps one convex combination of its planes, ℓ_b + ⟨G_b, W⟩ ≤ h_b(W). It begins with the plane 0, since
h_b ≥ 0. The sum is smallest at W = (μW₀ − Σ_b G_b)/(λ + μ), and its value there is the dual: a lower bound that every
step raises. A step takes a block, finds its plane (G, ℓ) at W by inference, and moves towards it by

    γ = clip((λ + μ)·(ℓ + ⟨G, W⟩ − ℓ_b − ⟨G_b, W⟩)/‖G − G_b‖², 0, 1).

If the problem is a sum over classes, each with its own row of W, each class has its own γ. If a plane costs a pass
through a network, the last planes of a block are kept, and steps towards the best of them are taken between epochs, as
in Shah, Kolmogorov and Lampert (CVPR 2015). These steps need no inference.

At the end, `finish` moves the layer towards the solution as far as the true objective falls.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise_lab.layerwise.problem import LayerProblem

_MOST_KEPT = 10
_MOST_ROUNDS = 20
# Rounds over kept planes end when one gains less than this fraction of the gain of the epoch.
_LEAST_ROUND = 0.05
# How often a step that is not good enough is halved.
_HALVINGS = 6


class LayerSolver:
    """The state of the method on one problem: W, its average, and the planes of the blocks.

    memory: bytes for kept planes, in addition to the one combination per block that is always kept.
    """

    def __init__(self, problem: LayerProblem, lam: float, mu: float, *, memory: float = 1e9) -> None:
        if lam < 0.0 or mu < 0.0 or lam + mu == 0.0:
            raise ValueError(f"lam={lam} and mu={mu} must not be negative, and at least one of them must be positive")
        self.problem, self.lam, self.mu = problem, lam, mu
        self._kept = self._how_many(memory)
        self._sum = torch.zeros_like(problem.start)
        # By block: the combination, then kept planes; the newest replaces the oldest.
        self._gradients: dict[int, Tensor] = {}
        self._offsets: dict[int, Tensor] = {}
        self.weights = self._best()
        self.average = self.weights.clone()
        self.steps = self.epochs = 0

    def _how_many(self, memory: float) -> int:
        problem = self.problem
        if problem.kind == "exact" or problem.compressed:
            return 0
        size = problem.start.numel() * problem.element_size * len(problem.blocks)
        return int(min(_MOST_KEPT, memory // size))

    def _best(self) -> Tensor:
        return (self.mu * self.problem.start - self._sum) / (self.lam + self.mu)

    def epoch(self, order: Sequence[int]) -> None:
        """One step for each block, then steps over kept planes."""
        before = self.dual
        for b in order:
            self.step(int(b))
        self.epochs += 1
        if self._kept == 0:
            return
        found = self.dual
        least = _LEAST_ROUND * (found - before)
        for _ in range(_MOST_ROUNDS):
            for b in order:
                self._step_to_kept(int(b))
            before, found = found, self.dual
            if found - before <= least:
                break

    def step(self, b: int) -> None:
        """Move block b towards its plane at W."""
        problem = self.problem
        plane = problem.plane(b, self.weights)
        offset = plane.value - plane.inner
        if b not in self._gradients:
            shape = (1 + self._kept, *plane.gradient.shape)
            self._gradients[b] = torch.zeros(shape, dtype=plane.gradient.dtype, device=plane.gradient.device)
            self._offsets[b] = torch.zeros(1 + self._kept, len(offset), dtype=torch.float64)
        gradients, offsets = self._gradients[b], self._offsets[b]
        change = problem.expand(b, plane.gradient - gradients[0])
        inner = problem.dot(change, self.weights).cpu()
        self._towards(b, plane.gradient, offset, change, offset - offsets[0] + inner)
        if self._kept:
            oldest = 1 + self.epochs % self._kept
            gradients[oldest], offsets[oldest] = plane.gradient, offset

    def _step_to_kept(self, b: int) -> None:
        gradients, offsets = self._gradients[b], self._offsets[b]
        inner = gradients.flatten(1) @ self.weights.to(gradients).flatten()
        values = offsets[:, 0] + inner.double().cpu()
        best = int(values.argmax())
        if best > 0:
            change = gradients[best].double() - gradients[0].double()
            self._towards(b, gradients[best], offsets[best], change, (values[best] - values[0]).view(1))

    def _towards(self, b: int, gradient: Tensor, offset: Tensor, change: Tensor, gap: Tensor) -> None:
        """Move the combination of block b towards a plane. change: their difference, as a matrix. gap: at W."""
        length = self.problem.dot(change, change).cpu()
        whole = (self.lam + self.mu) * gap / length.clamp(min=1e-300)
        # Of two parallel planes, the higher one.
        gamma = torch.where(length > 0.0, whole, (gap > 0.0).double()).clamp(0.0, 1.0)
        mine, offsets = self._gradients[b][0], self._offsets[b][0]
        offsets += gamma * (offset - offsets)
        part = gamma.to(mine)
        mine += (part if self.problem.compressed else part[:, None]) * (gradient - mine)
        self._sum += gamma.to(change)[:, None] * change
        self.weights = self._best()
        self.average.lerp_(self.weights, 2.0 / (self.steps + 2.0))
        self.steps += 1

    @property
    def dual(self) -> float:
        """A lower bound on the least objective of the convex problem."""
        offsets = sum(float(self._offsets[b][0].sum()) for b in sorted(self._offsets))
        return offsets + float((self._sum * self.weights).sum()) + self.penalty(self.weights)

    def penalty(self, W: Tensor) -> float:
        """(λ/2)‖W‖² + (μ/2)‖W − W₀‖²."""
        moved = (W - self.problem.start).square().sum()
        return float(0.5 * self.lam * W.square().sum() + 0.5 * self.mu * moved)

    def primal(self, W: Tensor | None = None) -> float:
        """The objective of the convex problem, at the current W by default."""
        at = self.weights if W is None else W
        total = sum(float(self.problem.value(b, at).sum()) for b in range(len(self.problem.blocks)))
        return total + self.penalty(at)

    def objective(self, W: Tensor) -> float:
        """The true objective of the layer, with the choices above as W makes them."""
        return self.problem.loss(W) + self.penalty(W)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """All that is needed to resume."""
        arrays: dict[str, NDArray[np.float64]] = {
            "sum": _copied(self._sum),
            "weights": _copied(self.weights),
            "average": _copied(self.average),
            "counts": np.array([self.steps, self.epochs]),
        }
        for b, gradients in self._gradients.items():
            arrays |= {f"gradients.{b}": _copied(gradients), f"offsets.{b}": _copied(self._offsets[b])}
        return arrays

    def restore(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        """Resume from a state of the same problem."""
        start = self.problem.start
        self._sum, self.weights, self.average = (
            torch.from_numpy(arrays[name].copy()).to(start) for name in ("sum", "weights", "average")
        )
        self.steps, self.epochs = map(int, arrays["counts"])
        kept = {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if "." in name}
        blocks = sorted(int(name.partition(".")[2]) for name in kept if name.startswith("offsets."))
        self._offsets = {b: kept[f"offsets.{b}"] for b in blocks}
        self._gradients = {b: kept[f"gradients.{b}"].to(start.device) for b in blocks}


class LayerStep(NamedTuple):
    """The result of a step of a layer. start, end: the true objective, (λ/2)‖W‖² + (μ/2)‖W − W₀‖² + loss; end ≤ start.

    dual: a lower bound on the convex problem. primal: its value at the solution found if the problem is exact,
    otherwise None. fraction: how far the step went from W₀ to that solution, 0 for none. loss: the risk at the end.
    """

    start: float
    end: float
    dual: float
    primal: float | None
    fraction: float
    loss: float
    seconds: float


def finish(solver: LayerSolver, start_loss: float | None = None) -> LayerStep:
    """Put new weights of the layer into the network such that its true objective does not rise.

    The average of the iterates is tried first, or, in an exact problem, the last iterate if that is better. Then points
    half as far from the start are tried, as long as they are better without the term in μ. start_loss: the risk at the
    start, if known.
    """
    began = time.perf_counter()
    problem, exact = solver.problem, solver.problem.kind == "exact"
    origin = problem.start
    loss = problem.loss(origin) if start_loss is None else start_loss
    start = end = loss + solver.penalty(origin)
    goals = [solver.average, solver.weights] if exact else [solver.average]
    tried = [(problem.loss(W), W) for W in goals]
    found, goal = min(tried, key=lambda one: one[0] + solver.penalty(one[1]))
    primal = found + solver.penalty(goal) if exact else None
    best, taken, least = origin, 0.0, float("inf")
    for halving in range(_HALVINGS + 1):
        W = goal if halving == 0 else origin + 0.5**halving * (goal - origin)
        if halving > 0:
            found = problem.loss(W)
        objective = found + solver.penalty(W)
        without = objective - 0.5 * solver.mu * float((W - origin).square().sum())
        if without >= least:
            break
        if objective <= start:
            best, taken, least, loss, end = W, 0.5**halving, without, found, objective
    if taken > 0.0:
        problem.put(best)
    return LayerStep(start, end, solver.dual, primal, taken, loss, time.perf_counter() - began)


def _copied(values: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = values.cpu().clone().numpy()
    return found
