"""Block-coordinate Frank–Wolfe over queries (Lacoste-Julien et al. 2013), with planes kept for each query.

Every query holds a convex combination of its planes; v = −C Σ_q ω_q Σ_i α_qi normal_qi. A sweep calls inference once
per query and moves weight to the plane found, from the lowest in use (a pairwise step: Osokin et al. 2016). Then
weight is moved among the known planes, without inference (Shah et al. 2015). The best step has a closed form and moves
v by an amount that does not grow with C. So if the gap stays wide, an active set weighs the planes instead. The
duality gap is that of a full evaluation after the sweep.
"""

from __future__ import annotations

import numpy as np

from rankwise.linear.features import Vector
from rankwise.linear.objective import Cut, LinearRisk
from rankwise.linear.simplex_qp import maximise
from rankwise.linear.solvers.result import ROUNDING_RULES, Settings, SolverResult, Track

# Sweeps over known planes after each sweep with inference, and pairwise steps in one query's turn.
_CACHED_SWEEPS = 5
_STEPS_PER_PLANE = 4
# A plane without weight for so many turns is dropped.
_IDLE = 40
# A gap wider than this after so many sweeps means that C is so large that O(C) pairwise steps would be needed. From
# then on, an active set weighs the planes that these steps have not levelled.
_PAIRWISE_SWEEPS, _WIDE = 100, 0.5
# Except for rounding, every sweep raises the dual. If neither bound improves for so many sweeps, rounding prevents
# progress. If rounding stops the active set too, only a fall of the bounds' difference by a tenth counts as progress.
_PATIENCE, _FALL = 100, 0.9


class _Block:
    """The planes of one query and their weights α. The first plane is risk ≥ 0."""

    def __init__(self, objective: LinearRisk, weight: float) -> None:
        self.objective, self.weight = objective, weight
        self.normals = np.zeros((1, objective.n_coefs))
        self.offsets, self.alpha, self.idle = np.zeros(1), np.ones(1), np.zeros(1, np.int64)
        self.gram = np.zeros((1, 1))
        self.stuck = False  # whether rounding kept the last turn from levelling the weights

    @property
    def offset(self) -> float:
        return float(self.alpha @ self.offsets)

    @property
    def normal(self) -> Vector:
        return np.asarray(self.alpha @ self.normals)

    def add(self, cut: Cut) -> None:
        """Add a plane, and drop planes that have long been idle."""
        keep = (self.idle <= _IDLE) | (self.alpha > 0)
        if not keep.all():
            self.normals, self.offsets, self.alpha = self.normals[keep], self.offsets[keep], self.alpha[keep]
            self.idle, self.gram = self.idle[keep], self.gram[np.ix_(keep, keep)]
        k = self.offsets.size
        self.normals = np.vstack([self.normals, cut.normal])
        self.offsets, self.alpha = np.append(self.offsets, cut.offset), np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[k] = self.gram[:, k] = self.normals @ cut.normal

    def improve(self, v: Vector, C: float, tol: float, settle: bool) -> Vector:
        """Move weight from the lowest plane in use to the highest until they are level to within `tol`; return new v.

        settle: whether an active set finishes what is left after the maximum number of steps.
        """
        factor = C * self.weight
        heights = self.offsets + self.normals @ v
        before = self.alpha.copy()
        alpha = self.alpha
        for _ in range(_STEPS_PER_PLANE * alpha.size):
            high = int(np.argmax(heights))
            low = int(np.argmin(np.where(alpha > 0, heights, np.inf)))
            rise = heights[high] - heights[low]
            if rise <= tol:
                self.stuck = False
                break
            # Along the step the dual is t·factor·rise − ½ t²·factor²·‖n_high − n_low‖².
            bend = factor * (self.gram[high, high] - 2.0 * self.gram[high, low] + self.gram[low, low])
            step = alpha[low] if rise >= bend * alpha[low] else rise / bend
            alpha[high] += step
            alpha[low] = 0.0 if step == alpha[low] else alpha[low] - step
            heights -= (factor * step) * (self.gram[high] - self.gram[low])
        else:
            if settle:
                alpha = self._settle(v + factor * (before @ self.normals), factor, tol)
        alpha /= alpha.sum()
        self.idle += 1
        self.idle[alpha > 0] = 0
        return v - factor * ((alpha - before) @ self.normals)

    def _settle(self, others: Vector, factor: float, tol: float) -> Vector:
        """Maximise factor·α·(offsets + normals·others) − ½‖factor·α·normals‖² over α; others: v without this query."""
        Q, c = factor * factor * self.gram, factor * (self.offsets + self.normals @ others)
        self.alpha = maximise(Q, c, self.alpha / self.alpha.sum(), factor * tol)
        heights = c - Q @ self.alpha
        self.stuck = float(heights.max() - self.alpha @ heights) > factor * tol
        return self.alpha


def frank_wolfe(objective: LinearRisk, C: float, settings: Settings) -> SolverResult:
    """Minimise ½‖v‖² + C·risk(v)."""
    rng = np.random.default_rng(settings.seed)
    blocks = [_Block(part, weight) for weight, part in objective.queries()]
    v = np.zeros(objective.n_coefs)
    track = Track(objective, settings, C, v)
    idle, width, settle = 0, np.inf, False
    try:
        if settings.start is not None:  # its planes are useful, but it is no combination of planes itself
            for block in blocks:
                block.add(block.objective.evaluate(settings.start).cut)
            track.offer(settings.start, objective.evaluate(settings.start).risk)
        cut: Cut | None = None
        for sweep in range(settings.max_iter):
            before = (track.primal, track.dual)
            level = 0.1 * min(max(track.gap, settings.tol), 1.0) * track.primal / C if track.steps else 0.0
            settle = settle or (sweep >= _PAIRWISE_SWEEPS and track.gap > _WIDE)
            _sweep(blocks, v, cut, C, level, settle, rng)
            v = -C * np.sum(
                [block.weight * block.normal for block in blocks], axis=0
            )  # anew, to avoid drift by rounding
            evaluation = objective.evaluate(v)
            cut = evaluation.cut if len(blocks) == 1 else None
            track.offer(v, evaluation.risk)
            offset = sum(block.weight * block.offset for block in blocks)
            track.bound(C * offset - 0.5 * float(v @ v))
            track.record(sum(block.offsets.size for block in blocks))
            if track.done:
                break
            moved, now = before != (track.primal, track.dual), track.primal - track.dual
            if all(block.stuck for block in blocks):
                moved = now < _FALL * width
            idle, width = (0, now) if moved else (idle + 1, width)
            if idle == _PATIENCE:
                return track.result(reason=ROUNDING_RULES)
    except KeyboardInterrupt:
        return track.result(interrupted=True)
    return track.result()


def _sweep(
    blocks: list[_Block], v: Vector, cut: Cut | None, C: float, level: float, settle: bool, rng: np.random.Generator
) -> None:
    """Give every query a new plane, its own at v or the known `cut`; then weigh the known planes again."""
    for q in rng.permutation(len(blocks)):
        block = blocks[q]
        block.add(block.objective.evaluate(v).cut if cut is None else cut)
        v = block.improve(v, C, level, settle)
    for _ in range(_CACHED_SWEEPS if len(blocks) > 1 else 0):
        for q in rng.permutation(len(blocks)):
            v = blocks[q].improve(v, C, level, settle)
