"""Subgradient descent with steps 2/(t+2): the baseline.

v moves to (1 − γ)v − γ·C·normal. So v = −C Σ α_i normal_i with weights α on the simplex that are known at every step.
This gives the dual bound without more work (Bach 2015: it is Frank–Wolfe on the dual with fixed steps).
"""

from __future__ import annotations

import numpy as np

from rankwise.linear.objective import LinearRisk
from rankwise.linear.solvers.result import Settings, SolverResult, Track


def subgradient(objective: LinearRisk, C: float, settings: Settings) -> SolverResult:
    """Minimise ½‖v‖² + C·risk(v)."""
    v = np.zeros(objective.n_coefs)
    offset = 0.0
    track = Track(objective, settings, C, v)
    try:
        if (
            settings.start is not None
        ):  # no combination of known planes, so v cannot start here, but it may be the best point
            track.offer(settings.start, objective.evaluate(settings.start).risk)
        for t in range(settings.max_iter):
            evaluation = objective.evaluate(v)
            track.offer(v, evaluation.risk)
            step = 2.0 / (t + 2.0)
            v = (1.0 - step) * v - step * C * evaluation.cut.normal
            offset = (1.0 - step) * offset + step * evaluation.cut.offset
            track.bound(C * offset - 0.5 * float(v @ v))
            if track.done:
                track.leave_zero(v)
            track.record(1)
            if track.done:
                break
    except KeyboardInterrupt:
        return track.result(interrupted=True)
    return track.result()
