"""One query or many, by the method that serves the loss: compiled for rankings, plain NumPy for the 0-1 loss."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from rankwise.inputs import is_whole, limit_of, raise_not_finite
from rankwise.losses import Loss, ZeroOne
from rankwise.zero_one import zero_one_hinge, zero_one_many

__all__ = ["check_method", "solve_one", "solve_queries"]

_Solved = tuple[float, float, NDArray[np.floating], NDArray[np.int64], NDArray[np.int64]]


@cache
def _methods() -> ModuleType:
    """The compiled methods, imported when they are first used."""
    from rankwise.inference import methods

    return methods


def check_method(loss: Loss, method: str, cutoff: int | None) -> None:
    """Refuse an unknown method, and one that does not go with the loss or the cut-off."""
    if method != "auto":
        known = _methods().METHODS
        if method not in known:
            raise ValueError(f"unknown method {method!r}; use one of {', '.join(map(repr, known))}")
        if isinstance(loss, ZeroOne) and method != "exhaustive":
            loss.check(1, 1)
    if cutoff is not None:
        if method != "chakrabarti":
            raise ValueError(f"cutoff={cutoff} goes with method='chakrabarti' only, not {method!r}")
        if not is_whole(cutoff) or cutoff < 1:
            raise ValueError(f"cutoff must be a whole number of places, at least 1, got {cutoff!r}")


def solve_one(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    n_pos: int,
    loss: Loss,
    scale: float,
    method: str,
    cutoff: int | None,
    n_threads: int,
) -> _Solved:
    """J, Δ, the gradient, c_0..c_P and the positives by descending score, of a query with positives and negatives."""
    if isinstance(loss, ZeroOne):
        raise_not_finite(scores)
        return zero_one_hinge(scores, relevant, scale, method)
    solution: _Solved | None = _methods().solve(
        scores, relevant, n_pos, loss, scale, method, cutoff, limit_of(scores), n_threads
    )
    if solution is None:
        raise_not_finite(scores)
        raise RuntimeError("scores changed while they were read; do not write to them from another thread")
    return solution


def solve_queries(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    starts: NDArray[np.int64],
    loss: Loss,
    scale: float,
    method: str = "auto",
    cutoff: int | None = None,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.floating]] | None:
    """Queries one after the other, [starts[q], starts[q+1]): J and Δ (Q, 2), P and N (Q, 2), the gradient of their sum.

    None if a score is not finite, or too large.
    """
    if isinstance(loss, ZeroOne):
        if not (np.abs(scores) <= limit_of(scores)).all():
            return None
        return zero_one_many(scores, relevant, starts, scale, method)
    limit = limit_of(scores)
    if starts.size == 2 and 0 < (n_pos := int(np.count_nonzero(relevant))) < scores.size:  # spares a copy
        one = _methods().solve(scores, relevant, n_pos, loss, scale, method, cutoff, limit, n_threads)
        if one is None:
            return None
        return np.array([[one.value, one.loss]]), np.array([[n_pos, scores.size - n_pos]]), one.gradient
    batch = _methods().solve_many(scores, relevant, starts, loss, scale, method, cutoff, limit, n_threads)
    return None if isinstance(batch, int) else (batch.out, batch.counts, batch.gradient)
