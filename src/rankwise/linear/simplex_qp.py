"""The small dual problem of a bundle of planes: a quadratic over the simplex, solved by a warm-started active set.

    max_α  c·α − ½ αᵀQα,   α ≥ 0,   Σ α = 1

One plane is added at a time and few planes carry weight, so few exchanges reach the new optimum. Each exchange solves
the equations of the planes in use, and walks towards their solution until a weight would become negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

Array = NDArray[np.float64]
# Added to the diagonal, relative to the largest entry, because planes may be dependent.
_RIDGE = 1e-13
_REFINEMENTS = 2
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def maximise(Q: Array, c: Array, alpha: Array, tol: float) -> Array:
    """Return weights whose value is within `tol` of the maximum, and not below that of the start, `alpha`.

    Q: (k, k) positive semidefinite. c: (k,). alpha: (k,) on the simplex. If rounding stops it: the best so far.
    """
    used = np.flatnonzero(alpha > 0).tolist()
    best, best_value = alpha, -np.inf
    for _ in range(20 * c.size + 100):
        pull = c - Q @ alpha  # the gradient: at the optimum it is equal on the planes in use, and nowhere higher
        value = 0.5 * float(alpha @ (c + pull))
        if value <= best_value:
            break
        best, best_value = alpha, value
        enter = int(np.argmax(pull))
        if pull[enter] - float(alpha @ pull) <= tol:
            break
        if enter not in used:
            used.append(enter)
        alpha, used = _optimum_on(Q, c, alpha, used)
    return best


def _optimum_on(Q: Array, c: Array, alpha: Array, used: list[int]) -> tuple[Array, list[int]]:
    """Walk to the optimum over the planes in use, and drop planes whose weights would become negative."""
    while True:
        now = alpha[used]
        goal = _stationary(Q[np.ix_(used, used)], c[used]) if len(used) > 1 else np.ones(1)
        if not np.isfinite(goal).all():  # rounding made the equations singular
            return alpha, used
        if (goal >= 0).all():
            break
        falling = goal < 0
        # By rounding, a new plane may be pulled the wrong way. Its weight is 0 and it leaves at once.
        reach = np.where(falling, now / np.where(falling, now - goal, 1.0), np.inf)
        step = reach.min()
        leaving = falling & (reach <= step)
        now = np.where(leaving, 0.0, np.maximum(now + step * (goal - now), 0.0))
        alpha = _placed(now / now.sum(), used, alpha.size)
        used = [plane for plane, leaves in zip(used, leaving, strict=True) if not leaves]
    return _placed(goal, used, alpha.size), used


def _stationary(Q: Array, c: Array) -> Array:
    """Return argmax c·α − ½ αᵀQα with Σ α = 1 and no other bound. The plane of least norm takes the remaining weight.

    With a large C this plane is risk ≥ 0 and has nearly all weight. So small weights are found without cancellation.
    """
    last = int(np.argmin(Q.diagonal()))
    rest = np.arange(c.size) != last
    cross, square = Q[rest, last], float(Q[last, last])
    system = Q[np.ix_(rest, rest)] - cross[:, None] - cross + square
    pull = c[rest] - c[last] - cross + square
    size = float(np.abs(system.diagonal()).max(initial=0.0))
    lost = 8.0 * _EPS * (square + float(np.abs(cross).max(initial=0.0)))  # by cancellation in the subtractions
    ridge = max(_RIDGE * size + lost, _RIDGE * _EPS * float(np.abs(pull).max(initial=0.0)), _TINY)
    factors, swaps, _ = dgetrf(system + ridge * np.eye(pull.size))
    weights, _ = dgetrs(factors, swaps, pull)
    for _ in range(_REFINEMENTS):  # each removes nearly all of the ridge's effect
        weights += dgetrs(factors, swaps, pull - system @ weights)[0]
    goal = np.empty_like(c)
    goal[rest] = weights
    goal[last] = 1.0 - weights.sum()
    return goal


def _placed(weights: Array, used: list[int], size: int) -> Array:
    alpha = np.zeros(size)
    alpha[used] = weights / weights.sum()
    return alpha
