"""One line that says how far a solver has come."""

from __future__ import annotations

from rankwise.linear.solvers import Step
from rankwise.progress import Progress

__all__ = ["SolverProgress"]


class SolverProgress(Progress):
    """Writes objective, gap and planes of every step it is called with."""

    def __call__(self, step: Step) -> None:
        self.say(
            f"iteration {step.iteration}, objective {step.primal:.6g}, gap {step.gap:.1e}, "
            f"{step.planes} planes, {step.calls} inference calls, {step.seconds:.1f} s"
        )
