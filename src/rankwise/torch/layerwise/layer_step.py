"""The end of a layer's step: how far to go to the solution of the convex problem, so that the true objective falls."""

from __future__ import annotations

import time
from typing import NamedTuple

from rankwise.torch.layerwise.frank_wolfe import LayerSolver

_HALVINGS = 6


class LayerStep(NamedTuple):
    """What a layer's step did. start, end: the true objective, (λ/2)‖W‖² + (μ/2)‖W − W₀‖² + loss; end ≤ start.

    dual: a lower bound on the convex problem's; primal: its value at the solution found, where the problem is exact,
    else None. fraction: how much of the way from W₀ to that solution was taken, 0 for none. loss: the risk at the end.
    """

    start: float
    end: float
    dual: float
    primal: float | None
    fraction: float
    loss: float
    seconds: float


def finish(solver: LayerSolver, start_loss: float | None = None) -> LayerStep:
    """Put the layer's new weights into the network, such that the layer's true objective does not rise.

    Tried is the average of the iterates, or, of an exact problem, the last one if that is better; then points half as
    far from the start, for as long as they are better without the term in μ. start_loss: the risk at the start, where
    it is known.
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
