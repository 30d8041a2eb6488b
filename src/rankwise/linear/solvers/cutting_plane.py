"""One-slack cutting planes (Joachims et al. 2009), stabilised.

The risk is replaced by the maximum of the planes known so far. The minimum of this model bounds F from below. The next
plane is not taken at the model's minimiser, where the model is poorest, but a short way towards it from the best point
so far (Franc and Sonnenburg 2009). So the planes stay few and close to where they matter.
"""

from __future__ import annotations

import numpy as np

from rankwise.linear.bundle import Bundle
from rankwise.linear.objective import LinearRisk
from rankwise.linear.solvers.result import ROUNDING_RULES, Settings, SolverResult, Track

# How far from the best point towards the model's minimiser the next plane is taken: at first, at least, at most. Then
# the factors of this stride after a step that found a better point, and after one that did not.
_STRIDE, _SHORTEST, _LONGEST = 0.1, 0.02, 0.5
_LONGER, _SHORTER = 1.3, 0.7
# The model is solved to within this fraction of the wanted or the current gap, whichever is larger.
_MODEL_TOL = 0.02
# If neither bound improves for so many iterations, rounding prevents progress.
_PATIENCE = 100


def cutting_plane(objective: LinearRisk, C: float, settings: Settings, bundle: Bundle | None = None) -> SolverResult:
    """Minimise ½‖v‖² + C·risk(v). bundle: planes under the same risk, found for another C; new ones are added."""
    bundle = Bundle(objective.n_coefs) if bundle is None else bundle
    start = np.zeros(objective.n_coefs) if settings.start is None else settings.start
    track = Track(objective, settings, C, start)
    idle, stride = 0, _STRIDE
    try:
        evaluation = objective.evaluate(start)
        track.offer(start, evaluation.risk)
        bundle.add(evaluation.cut)
        for _ in range(settings.max_iter):
            before = (track.primal, track.dual)
            wanted = max(settings.tol, track.gap) * track.primal
            lowest, dual = bundle.solve(C, _MODEL_TOL * wanted)
            track.bound(dual)
            if track.done:
                track.leave_zero(lowest)
                track.record(bundle.n_used)
                break
            bundle.prune()
            point = track.coef + stride * (lowest - track.coef)
            evaluation = objective.evaluate(point)
            better = track.offer(point, evaluation.risk)
            stride = min(stride * _LONGER, _LONGEST) if better else max(stride * _SHORTER, _SHORTEST)
            bundle.add(evaluation.cut)
            track.record(bundle.n_used)
            if track.done:
                break
            idle = idle + 1 if before == (track.primal, track.dual) else 0
            if idle == _PATIENCE:
                return track.result(reason=ROUNDING_RULES)
    except KeyboardInterrupt:
        return track.result(interrupted=True)
    return track.result()
