"""Settings and results of the solvers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, LinearRisk

# The bounds are sums of many terms. Rounding may make them cross, but by no more than this, relative to the primal.
_ROUNDING = 1e-9
# Why a solver stops if its bounds no longer move.
ROUNDING_RULES = "rounding errors prevent progress; raise tol, lower C, or scale the features"


@dataclass(frozen=True)
class Step:
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
    """Settings of a solver.

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
    seed : int, default 0
        Seed for the order in which "frank-wolfe" visits the queries.
    best : callable, optional
        Called with the coefficients whenever they are the best so far.

    See Also
    --------
    SOLVERS : Functions that take settings.

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
    seed: int = 0
    best: Callable[[Vector], None] | None = None


@dataclass(eq=False)
class SolverResult:
    """The best coefficients v, (n_coefs,), and the bounds that certify them: dual ≤ min F ≤ primal = F(v).

    gap: (primal − dual)/primal. history: the fields of `Step`, with one entry per iteration. reason: why the solver
    stopped early; None if it converged or was interrupted.
    """

    coef: Vector
    primal: float
    dual: float
    gap: float
    n_iter: int
    history: dict[str, NDArray[Any]]
    clock: Clock
    seconds: float
    converged: bool
    interrupted: bool = False
    reason: str | None = None


@dataclass(eq=False)
class Track:
    """The best point and the best bound so far, with their history."""

    objective: LinearRisk
    settings: Settings
    C: float
    coef: Vector
    primal: float = np.inf
    dual: float = 0.0
    steps: list[Step] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def gap(self) -> float:
        """(primal − dual)/primal of the best so far; 1 if the bounds have crossed, since this proves nothing."""
        if self.primal <= 0.0:
            return 0.0
        gap = (self.primal - self.dual) / self.primal
        return max(gap, 0.0) if gap >= -_ROUNDING else 1.0

    @property
    def done(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.settings.tol

    def offer(self, v: Vector, risk: float) -> bool:
        """Keep v if it is the best point so far."""
        primal = 0.5 * float(v @ v) + self.C * max(risk, 0.0)  # a hinge is negative only by rounding
        if primal >= self.primal:
            return False
        self.coef, self.primal = v, primal
        if self.settings.best is not None:
            self.settings.best(v)
        return True

    def bound(self, dual: float) -> None:
        """Use a new lower bound."""
        self.dual = max(self.dual, dual)

    def leave_zero(self, v: Vector) -> None:
        """Take v, if it is better, where coefficients of 0 are within the tolerance: they give equal scores."""
        if not self.coef.any():
            self.offer(v, self.objective.evaluate(v).risk)

    def record(self, planes: int) -> None:
        """Close an iteration."""
        step = Step(
            len(self.steps) + 1,
            self.primal,
            self.dual,
            self.gap,
            planes,
            self.objective.clock.calls,
            time.perf_counter() - self.started,
        )
        self.steps.append(step)
        if self.settings.report is not None:
            self.settings.report(step)

    def result(self, interrupted: bool = False, reason: str | None = None) -> SolverResult:
        """Return the result. If interrupted before anything was found, raise KeyboardInterrupt."""
        if interrupted and self.primal == np.inf:
            raise KeyboardInterrupt
        names = Step.__dataclass_fields__
        history = {name: np.array([getattr(step, name) for step in self.steps]) for name in names}
        if not (self.done or interrupted or reason):
            reason = f"max_iter={self.settings.max_iter} reached; raise it, or lower C"
        return SolverResult(
            self.coef,
            self.primal,
            self.dual,
            self.gap,
            len(self.steps),
            history,
            self.objective.clock,
            time.perf_counter() - self.started,
            self.done,
            interrupted,
            None if self.done else reason,
        )
