"""The small dual problem of a bundle of planes: a quadratic over the simplex, by a warm-started active set.

    max_α  c·α − ½ αᵀQα,   α ≥ 0,   Σ α = 1

One plane is added at a time and few of them carry weight, so the optimum moves by a few exchanges: each solves the
equations of the planes in use, and walks towards their solution until a weight would turn negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["maximise"]

Array = NDArray[np.float64]
# Added to the diagonal, relative to the largest entry: planes may be dependent.
_RIDGE = 1e-13


def maximise(Q: Array, c: Array, alpha: Array, tol: float) -> Array:
    """Weights whose value is within `tol` of the maximum, and no less than that of `alpha`, from where it starts.

    Q: (k, k) positive semidefinite. c: (k,). alpha: (k,) on the simplex. Where rounding stops it, the best so far.
    """
    used = np.flatnonzero(alpha > 0).tolist()
    value, start_value, start = -np.inf, None, alpha
    for _ in range(20 * c.size + 100):
        pull = c - Q @ alpha  # the gradient; at the optimum it is level on the planes in use, and nowhere higher
        new_value = 0.5 * float(alpha @ (c + pull))
        start_value = new_value if start_value is None else start_value
        enter = int(np.argmax(pull))
        if pull[enter] - float(alpha @ pull) <= tol or new_value <= value:
            break
        value = new_value
        if enter not in used:
            used.append(enter)
        alpha, used = _optimum_on(Q, c, alpha, used)
    assert start_value is not None
    return alpha if 0.5 * float(alpha @ (2.0 * c - Q @ alpha)) >= start_value else start


def _optimum_on(Q: Array, c: Array, alpha: Array, used: list[int]) -> tuple[Array, list[int]]:
    """Walk to the optimum over the planes in use, leaving those whose weights would turn negative."""
    while True:
        now = alpha[used]
        goal = _stationary(Q[np.ix_(used, used)], c[used])
        if (goal >= 0).all():
            break
        falling = goal < 0
        # In floating point a plane just taken up may be pulled the wrong way: its weight is 0 and it leaves at once.
        reach = np.where(falling, now / np.where(falling, now - goal, 1.0), np.inf)
        step = reach.min()
        leaving = falling & (reach <= step)
        now = np.where(leaving, 0.0, np.maximum(now + step * (goal - now), 0.0))
        alpha = _placed(now / now.sum(), used, alpha.size)
        used = [plane for plane, leaves in zip(used, leaving, strict=True) if not leaves]
    return _placed(goal, used, alpha.size), used


def _stationary(Q: Array, c: Array) -> Array:
    """argmax c·α − ½ αᵀQα with Σ α = 1 and no other bound. A multiple of 1·1ᵀ added to Q changes nothing on Σ α = 1."""
    level = max(float(Q.diagonal().max()), float(np.abs(c).max()) * np.finfo(float).eps, np.finfo(float).tiny)
    system = Q + level
    system[np.diag_indices(c.size)] += _RIDGE * level
    both = np.linalg.solve(system, np.stack([c, np.ones_like(c)], axis=1))
    goal: Array = both[:, 0] + (1.0 - both[:, 0].sum()) / both[:, 1].sum() * both[:, 1]
    return goal


def _placed(weights: Array, used: list[int], size: int) -> Array:
    alpha = np.zeros(size)
    alpha[used] = weights / weights.sum()
    return alpha
