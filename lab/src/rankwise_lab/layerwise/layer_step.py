"""The end of a step of a layer: how far to move to the solution of the convex problem so that the objective falls."""

from __future__ import annotations

import time
from typing import NamedTuple

from rankwise_lab.layerwise.frank_wolfe import LayerSolver

_HALVINGS = 6


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
