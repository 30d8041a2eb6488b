"""What every solver is given, and what it returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock, LinearRisk

# The bounds are sums of many terms: they may cross by rounding, and by no more than this, relative to the primal.
_ROUNDING = 1e-9
# The reason of a solver whose bounds no longer move.
ROUNDING_RULES = "rounding stops progress; raise tol, lower C, or scale the features"


@dataclass(frozen=True)
class Step:
    """One line of progress: the best primal and dual values so far, and their gap relative to the primal."""

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
    """When to stop, where to start and whom to tell.

    start: v to begin at. report: called after every iteration. best: called with every v that is the best so far.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    start: Vector | None = None
    report: Callable[[Step], None] | None = None
    seed: int = 0
    best: Callable[[Vector], None] | None = None


@dataclass(eq=False)
class SolverResult:
    """The best point found and the proof of how good it is.

    coef: v. primal: F(v), evaluated there. dual: a lower bound of F. gap: (primal − dual)/primal, never estimated.
    history: one array a quantity of `Step`. interrupted: by Ctrl-C. reason: why it stopped short, or None.
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
        """(primal − dual)/primal of the best so far; 1 where the bounds have crossed, which proves nothing."""
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
        primal = 0.5 * float(v @ v) + self.C * max(risk, 0.0)  # no hinge is negative but by rounding
        if primal >= self.primal:
            return False
        self.coef, self.primal = v, primal
        if self.settings.best is not None:
            self.settings.best(v)
        return True

    def bound(self, dual: float) -> None:
        """Take note of a lower bound."""
        self.dual = max(self.dual, dual)

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
        """What was found. An interrupt before anything was is passed on."""
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
