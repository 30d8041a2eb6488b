"""The small dual problem of a bundle of planes: a quadratic over the simplex, solved by a warm-started active set.

    max_α  c·α − ½ αᵀQα,   α ≥ 0,   Σ α = 1

One plane is added at a time and few planes carry weight, so few exchanges reach the new optimum. Each exchange solves
the equations of the planes in use, and walks towards their solution until a weight would become negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs

Array = NDArray[np.float64]
# Added to the diagonal, relative to the largest entry, because planes may be dependent.
_RIDGE = 1e-13
_REFINEMENTS = 2
# From so many planes on, a factor of their inner products is kept from one call to the next.
_MANY = 64
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Factor:
    """Cholesky factor RᵀR of some planes' inner products, plus a ridge; kept while the same planes come first."""

    def __init__(self) -> None:
        self.planes: list[int] = []
        self._R: Array = np.zeros((0, 0))
        self._ridge = 0.0

    def renumber(self, kept: NDArray[np.int64]) -> None:
        """Use the numbers that planes have when only some are kept, (m,) ascending."""
        numbers = {plane: number for number, plane in enumerate(kept.tolist())}
        self.planes = [numbers.get(plane, -1) for plane in self.planes]

    def stationary(self, Q: Array, c: Array, planes: list[int]) -> Array:
        """Return argmax c·α − ½ αᵀQα over some planes with Σ α = 1, (k,); NaN if rounding makes Q singular."""
        empty = [plane for plane in planes if Q[plane, plane] == 0.0]  # it takes what the others leave of 1
        others = [plane for plane in planes if Q[plane, plane] > 0.0]
        if len(empty) > 1 or not self._extend(Q, others):
            return np.full(len(planes), np.nan)
        if empty:
            found = self._solve(Q, (c - c[empty])[others, None], others)[:, 0]
        else:
            found, even = self._solve(Q, np.stack([c[others], np.ones(len(others))], axis=1), others).T
            found -= (found.sum() - 1.0) / even.sum() * even
        goal = np.zeros(Q.shape[0])
        goal[others] = found
        goal[empty] = 1.0 - found.sum()
        return np.asarray(goal[planes])

    def _solve(self, Q: Array, right: Array, planes: list[int]) -> Array:
        """Return the solution W of Q·W = right over some planes, (k, 1 or 2)."""
        full = np.zeros((Q.shape[0], right.shape[1]))
        full[planes] = weights = dpotrs(self._R, right)[0]
        return np.asarray(weights + dpotrs(self._R, right - (Q @ full)[planes])[0])

    def _extend(self, Q: Array, planes: list[int]) -> bool:
        """Make this the factor of other planes; return whether their inner products are regular."""
        ridge = _RIDGE * float(Q.diagonal().max())
        if ridge > 2.0 * self._ridge:
            self.planes, self._ridge = [], max(ridge, _TINY)
        pairs = zip(self.planes, planes, strict=False)
        m = next((k for k, (old, new) in enumerate(pairs) if old != new), min(len(self.planes), len(planes)))
        old, new = planes[:m], planes[m:]
        R = np.empty((len(planes), len(planes)), order="F")
        R[:m, :m] = self._R[:m, :m]
        R[m:, :m] = 0.0
        if new and m:
            R[:m, m:] = dtrsm(1.0, self._R[:m, :m], Q[np.ix_(old, new)], trans_a=1)
        rest = Q[np.ix_(new, new)] - R[:m, m:].T @ R[:m, m:]
        rest[np.diag_indices(len(new))] += self._ridge
        R[m:, m:], failed = dpotrf(rest) if new else (rest, 0)
        self.planes, self._R = [] if failed else planes, R
        return not failed


def maximise(Q: Array, c: Array, alpha: Array, tol: float, factor: Factor | None = None) -> Array:
    """Return weights whose value is within `tol` of the maximum, and not below that of the start, `alpha`.

    Q: (k, k) positive semidefinite. c: (k,). alpha: (k,) on the simplex. If rounding stops it: the best so far.
    factor: kept from one call to the next, while planes keep their numbers.
    """
    factor = Factor() if factor is None else factor
    used = np.flatnonzero(alpha > 0).tolist()
    if len(used) >= _MANY:  # in an order for which the factor can be used
        known = [plane for plane in factor.planes if plane >= 0 and alpha[plane] > 0]
        used = known + sorted(set(used) - set(known))
    best, best_value = alpha, -np.inf
    for _ in range(20 * c.size + 100):
        slope = c - Q @ alpha  # at the optimum it is equal on the planes in use, and nowhere higher
        value = 0.5 * float(alpha @ (c + slope))
        if value <= best_value:
            break
        best, best_value = alpha, value
        enter = int(np.argmax(slope))
        if slope[enter] - float(alpha @ slope) <= tol:
            break
        if enter not in used:
            used.append(enter)
        alpha, used = _optimum_on(Q, c, alpha, used, factor)
    return best


def _optimum_on(Q: Array, c: Array, alpha: Array, used: list[int], factor: Factor) -> tuple[Array, list[int]]:
    """Walk to the optimum over the planes in use, and drop planes whose weights would become negative."""
    while True:
        now = alpha[used]
        goal = _stationary(Q, c, used, factor) if len(used) > 1 else np.ones(1)
        if not np.isfinite(goal).all():  # rounding made the equations singular
            return alpha, used
        if (goal >= 0).all():
            break
        falling = goal < 0
        # By rounding, a new plane may be led the wrong way. Its weight is 0 and it leaves at once.
        reach = np.where(falling, now / np.where(falling, now - goal, 1.0), np.inf)
        step = reach.min()
        leaving = falling & (reach <= step)
        now = np.where(leaving, 0.0, np.maximum(now + step * (goal - now), 0.0))
        alpha = _placed(now / now.sum(), used, alpha.size)
        used = [plane for plane, leaves in zip(used, leaving, strict=True) if not leaves]
    return _placed(goal, used, alpha.size), used


def _stationary(Q: Array, c: Array, used: list[int], factor: Factor) -> Array:
    """Return argmax c·α − ½ αᵀQα over planes with Σ α = 1 and no other bound."""
    if len(used) >= _MANY:
        goal = factor.stationary(Q, c, used)
        if np.isfinite(goal).all():
            return goal
    return _eliminated(Q[np.ix_(used, used)], c[used])


def _eliminated(Q: Array, c: Array) -> Array:
    """Return the same for the planes of Q. The plane of least norm takes the remaining weight.

    With a large C this plane is risk ≥ 0 and has nearly all weight. So small weights are found without cancellation.
    """
    last = int(np.argmin(Q.diagonal()))
    rest = np.arange(c.size) != last
    cross, square = Q[rest, last], float(Q[last, last])
    system = Q[np.ix_(rest, rest)] - cross[:, None] - cross + square
    slope = c[rest] - c[last] - cross + square
    size = float(np.abs(system.diagonal()).max(initial=0.0))
    lost = 8.0 * _EPS * (square + float(np.abs(cross).max(initial=0.0)))  # by cancellation in the subtractions
    ridge = max(_RIDGE * size + lost, _RIDGE * _EPS * float(np.abs(slope).max(initial=0.0)), _TINY)
    factors, swaps, _ = dgetrf(system + ridge * np.eye(slope.size))
    weights, _ = dgetrs(factors, swaps, slope)
    for _ in range(_REFINEMENTS):
        weights += dgetrs(factors, swaps, slope - system @ weights)[0]
    goal = np.empty_like(c)
    goal[rest] = weights
    goal[last] = 1.0 - weights.sum()
    return goal


def _placed(weights: Array, used: list[int], size: int) -> Array:
    alpha = np.zeros(size)
    alpha[used] = weights / weights.sum()
    return alpha
