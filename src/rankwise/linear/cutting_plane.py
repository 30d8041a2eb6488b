"""One-slack cutting planes (Joachims et al. 2009), stabilised, with a certified gap.

The risk is replaced by the maximum of the planes known so far. The minimum of this model bounds F from below. The next
plane is not taken at the model's minimiser, where the model is poorest, but a short way towards it from the best point
so far (Franc and Sonnenburg 2009). So the planes stay few and close to where they matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.bundle import Bundle
from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, LinearRisk

__all__ = ["ROUNDING_RULES", "Settings", "SolverResult", "Step", "cutting_plane"]

# How far from the best point towards the model's minimiser the next plane is taken: at first, at least, at most. Then
# the factors of this stride after a step that found a better point, and after one that did not.
_STRIDE, _SHORTEST, _LONGEST = 0.1, 0.02, 0.5
_LONGER, _SHORTER = 1.3, 0.7
# The model is solved to within this fraction of the wanted or the current gap, whichever is larger.
_MODEL_TOL = 0.02
# If neither bound improves for so many iterations, rounding prevents progress.
_PATIENCE = 100
# The bounds are sums of many terms. Rounding may make them cross, but by no more than this, relative to the primal.
_ROUNDING = 1e-9
# Why a solver stops if its bounds no longer move.
ROUNDING_RULES = "rounding errors prevent progress; raise tol, lower C, or scale the features"


class Step(NamedTuple):
    """Progress of a solver after an iteration: the best bounds so far, planes in use, queries solved, and seconds."""

    iteration: int
    primal: float
    dual: float
    gap: float
    planes: int
    calls: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"iteration {self.iteration}, objective {self.primal:.6g}, gap {self.gap:.1e}, "
            f"{self.planes} planes, {self.calls} inference calls, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Settings:
    """Settings of `cutting_plane`.

    Parameters
    ----------
    tol : float, default 1e-3
        Relative duality gap at which to stop.
    max_iter : int, default 10000
        Maximum number of iterations.
    start : ndarray of shape (n_coefs,), optional
        Coefficients to start at. The default is 0.
    report : callable, optional
        Called after every iteration with its progress: iteration, primal, dual, gap, planes, calls and seconds.
    best : callable, optional
        Called with the coefficients whenever they are the best so far.

    See Also
    --------
    cutting_plane : The solver.

    Examples
    --------
    >>> from rankwise.linear import Settings
    >>> Settings(tol=1e-4).max_iter
    10000
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    start: Vector | None = None
    report: Callable[[Step], None] | None = None
    best: Callable[[Vector], None] | None = None


@dataclass(eq=False)
class SolverResult:
    """The best coefficients v, (n_coefs,), and the bounds that certify them: dual ≤ min F ≤ primal = F(v).

    steps: one per iteration. reason: why the solver stopped early; None if it converged or was interrupted.
    """

    objective: LinearRisk
    settings: Settings
    C: float
    coef: Vector
    primal: float = np.inf
    dual: float = 0.0
    steps: list[Step] = field(default_factory=list)
    interrupted: bool = False
    reason: str | None = None
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @property
    def gap(self) -> float:
        """(primal − dual)/primal of the best so far; 1 if the bounds have crossed, since this proves nothing."""
        if self.primal <= 0.0:
            return 0.0
        gap = (self.primal - self.dual) / self.primal
        return max(gap, 0.0) if gap >= -_ROUNDING else 1.0

    @property
    def converged(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.settings.tol

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.steps)

    @property
    def clock(self) -> Clock:
        """Time and calls of the objective."""
        return self.objective.clock

    @property
    def history(self) -> dict[str, NDArray[Any]]:
        """The fields of `Step`, with one entry per iteration."""
        return {name: np.array([getattr(step, name) for step in self.steps]) for name in Step._fields}

    def offer(self, v: Vector, risk: float) -> bool:
        """Keep v if it is the best point so far."""
        primal = 0.5 * float(v @ v) + self.C * max(risk, 0.0)  # a hinge is negative only by rounding
        if primal >= self.primal:
            return False
        self.coef, self.primal = v, primal
        if self.settings.best is not None:
            self.settings.best(v)
        return True

    def leave_zero(self, v: Vector) -> None:
        """Take v, if it is better, where coefficients of 0 are within the tolerance: they give equal scores."""
        if not self.coef.any():
            self.offer(v, self.objective.evaluate(v).risk)

    def record(self, planes: int) -> None:
        """Close an iteration."""
        self.seconds = time.perf_counter() - self.started
        step = Step(self.n_iter + 1, self.primal, self.dual, self.gap, planes, self.clock.calls, self.seconds)
        self.steps.append(step)
        if self.settings.report is not None:
            self.settings.report(step)


def cutting_plane(objective: LinearRisk, C: float, settings: Settings, bundle: Bundle | None = None) -> SolverResult:
    """Minimise ½‖v‖² + C·risk(v) to a certified gap.

    Parameters
    ----------
    objective : LinearRisk
        Risk of a linear ranker, such as an `Objective`.
    C : float
        Weight of the risk.
    settings : Settings
        Tolerance, start and reports.
    bundle : Bundle, optional
        Planes under the same risk, found for another C; new ones are added.

    Returns
    -------
    SolverResult
        The coefficients `coef`, their value `primal`, the lower bound `dual`, the relative `gap`, whether it
        `converged`, and the `history`.

    See Also
    --------
    Objective : Regularised risk of a linear ranker.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import Objective, Settings, as_features, cutting_plane, pose
    >>> X, relevant = np.array([[0.0], [1.0], [2.0]]), np.array([False, False, True])
    >>> objective = Objective(as_features(X), pose(relevant, AveragePrecision()))
    >>> result = cutting_plane(objective, 10.0, Settings(tol=1e-6))
    >>> result.converged, objective.scores(result.coef).argmax().item()
    (True, 2)
    """
    bundle = Bundle(objective.n_coefs) if bundle is None else bundle
    start = np.zeros(objective.n_coefs) if settings.start is None else settings.start
    result = SolverResult(objective, settings, C, start)
    idle, stride = 0, _STRIDE
    try:
        evaluation = objective.evaluate(start)
        result.offer(start, evaluation.risk)
        bundle.add(evaluation.cut)
        for _ in range(settings.max_iter):
            before = (result.primal, result.dual)
            wanted = max(settings.tol, result.gap) * result.primal
            lowest, dual = bundle.solve(C, _MODEL_TOL * wanted)
            result.dual = max(result.dual, dual)
            if result.converged:
                result.leave_zero(lowest)
                result.record(bundle.n_used)
                break
            bundle.prune()
            point = result.coef + stride * (lowest - result.coef)
            evaluation = objective.evaluate(point)
            better = result.offer(point, evaluation.risk)
            stride = min(stride * _LONGER, _LONGEST) if better else max(stride * _SHORTER, _SHORTEST)
            bundle.add(evaluation.cut)
            result.record(bundle.n_used)
            if result.converged:
                break
            idle = idle + 1 if before == (result.primal, result.dual) else 0
            if idle == _PATIENCE:
                result.reason = ROUNDING_RULES
                break
        else:
            result.reason = f"max_iter={settings.max_iter} reached; raise it, or lower C"
    except KeyboardInterrupt:
        if result.primal == np.inf:  # nothing was found
            raise
        result.interrupted = True
    result.seconds = time.perf_counter() - result.started
    return result
