"""Training from one start after another, with one checkpoint per start."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from rankwise.io.fingerprint import fingerprint
from rankwise.latent.cccp import Problem, begin, minimise, value_at
from rankwise.latent.checkpoints import Checkpoint
from rankwise.latent.initial import Start, bag_means
from rankwise.latent.state import State
from rankwise.linear.features import Vector, as_features
from rankwise.linear.objective import Clock, Objective, risk_of
from rankwise.linear.solvers import Settings, cutting_plane


@dataclass(eq=False)
class Training:
    """The runs of a problem from its starts; `states` holds the final state of each.

    pace: fraction of positives to start with. settings: other settings that affect the result, for the names of
    checkpoints in the folder `checkpoint`. report: called with a line of text after every round. stop: if set, a run
    ends after its current round.
    """

    problem: Problem
    starts: list[Start]
    _: KW_ONLY
    pace: float
    seed: int
    settings: dict[str, Any]
    checkpoint: str | os.PathLike[str] | None
    report: Callable[[str], None] | None
    stop: threading.Event | None
    states: list[State] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._name = self._probe()

    def run(self) -> bool:
        """Train from all starts; return whether this was interrupted."""
        try:
            for number in range(len(self.starts)):
                state, after = self._opened(number)
                self.states.append(state)
                minimise(self.problem, state, after)
        except KeyboardInterrupt:
            return True
        return False

    @property
    def objectives(self) -> Vector:
        """Current F for each start, over all bags; infinite if nothing is learnt yet."""
        return np.array([value_at(self.problem, state) if state.learnt else np.inf for state in self.states])

    def _probe(self) -> str:
        """Read every feature once, refuse values that are not finite, and return a name for the problem."""
        problem, rng = self.problem, np.random.default_rng(0)
        bags, relevant = problem.bags, problem.relevant
        scores = bags.scores(rng.standard_normal(bags.width), problem.n_threads)
        if self.checkpoint is None:
            return ""
        # The hinge of some random scores identifies the loss, the queries and the weights.
        task = problem.task(np.ones(relevant.size, np.bool_))
        sizes, clock = (0.0, 0.1, 1.0, 10.0), Clock()
        said = [risk_of(task, size * rng.standard_normal(relevant.size), clock) for size in sizes]
        settings = self.settings | {"pace": self.pace, "seed": self.seed, "n_coefs": problem.n_coefs}
        settings |= {name: getattr(problem, name) for name in ("C", "intercept", "tol", "outer_tol")}
        settings |= {name: getattr(problem, name) for name in ("max_outer", "max_iter")}
        hinges = [part for value, lost, gradient in said for part in (np.array([value, lost]), gradient)]
        return fingerprint(settings, [relevant, bags.sizes, scores, *hinges])

    def _opened(self, number: int) -> tuple[State, Callable[[State], None]]:
        """Return the state of one start, new or from its checkpoint, and a function to call after every round."""
        start = self.starts[number]
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self._name, start, number)
        state = None if checkpoint is None else checkpoint.load()
        if state is None:
            state = self._begun(start, np.random.default_rng([self.seed, number]))

        def after(state: State) -> None:
            if checkpoint is not None:
                checkpoint.save(state)
            if self.report is not None:
                self.report(_line(state, start, number))
            if self.stop is not None and self.stop.is_set():
                raise KeyboardInterrupt

        return state, after

    def _begun(self, start: Start, rng: np.random.Generator) -> State:
        problem = self.problem
        coef = start.coefficients(self._fitted_to_means)
        if coef is not None:
            coef = np.pad(coef, (0, problem.n_coefs - coef.size))
        rows = None if coef is not None else start.rows(problem.bags, problem.relevant, rng)
        return begin(problem, rows, coef, self.pace)

    def _fitted_to_means(self) -> Vector:
        """Return the coefficients of a ranker of the bags' means."""
        problem = self.problem
        task = problem.task(np.ones(problem.relevant.size, np.bool_))
        objective = Objective(as_features(bag_means(problem.bags), problem.intercept), task)
        result = cutting_plane(objective, problem.C, Settings(problem.tol, problem.max_iter))
        if result.interrupted:
            raise KeyboardInterrupt
        return result.coef


def _line(state: State, start: Start, number: int) -> str:
    return (
        f"start {number + 1} ({start.name}), step {len(state.history) + (not state.finished)}, "
        f"objective {min(state.objective, state.primal):.6g}, gap {state.gap:.1e}, {state.passes} passes, "
        f"{state.clock.calls} inference calls, {state.seconds:.1f} s"
    )
