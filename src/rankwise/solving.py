"""The one entry to inference: everything that needs most violating rankings calls `solve`."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from rankwise import zero_one
from rankwise.grades import sum_over_levels
from rankwise.inputs import NotFiniteError, not_finite
from rankwise.loss_forms import Form, Loss, NotQSSuitableError
from rankwise.method import AUTO, Method
from rankwise.queries import Queries, Solved

# For packages that extend rankwise.
__all__ = ["solve"]


@cache
def _inference() -> tuple[ModuleType, ModuleType, ModuleType]:
    """Return the compiled methods, imported at the first use."""
    from rankwise.inference import engine, f_measure, methods

    return engine, f_measure, methods


def _is_suitable(loss: Loss, queries: Queries) -> bool:
    """Whether a loss of the first k places is QS-suitable because no query has more than k samples."""
    if loss.k is None or loss.k < queries.sizes.max(initial=0):
        return False
    try:
        loss.check_many(*queries.counts)
    except NotQSSuitableError:
        return False
    return True


def solve(
    scores: NDArray[np.floating],
    queries: Queries,
    loss: Loss,
    scale: float = 1.0,
    method: Method = AUTO,
    n_threads: int = 1,
) -> Solved:
    """Return J = max_R scale·Δ(R*, R) + F(R) − F(R*) of each query, and the gradient of their sum in the scores.

    scores: (n,) float32 or float64, contiguous. Everything else was checked by the caller. Scores are checked on the
    way: the only error is `NotFiniteError`, which names the first score that is not finite or too large. With grades, J
    is the weighted sum over all thresholds (grades.py): convex, and at least the graded objective of every ranking.
    """
    if queries.grades is not None:
        total = sum_over_levels(scores, queries, loss, lambda s, q: solve(s, q, loss, scale, method, n_threads))
        return Solved(total.value, total.loss, queries.counts[0], queries.counts[1], total.gradient)
    k = loss.k if loss.k is not None and method == AUTO and not _is_suitable(loss, queries) else None
    if k is not None and loss.tables(1, k).discount.min() < 0.0:
        method = Method("dynamic")  # cutoff.py needs D ≥ 0
    try:
        if loss.form is Form.DISCOUNT and method.is_fast:
            engine = _inference()[0]
            one = queries.starts.shape[0] == 2 and 0 < queries.n_pos < scores.shape[0]
            found: Solved = (engine.solve_one if one else engine.solve_many)(scores, queries, loss, scale, n_threads, k)
        elif loss.form is Form.THRESHOLD and method.is_fast:
            found = _inference()[1].solve(scores, queries, scale, n_threads)
        elif loss.form is Form.LABELS:
            found = zero_one.solve(scores, queries, scale, method)
        else:
            found = _inference()[2].solve(scores, queries, loss, scale, method)
    except NotFiniteError:
        changed = RuntimeError("the scores changed while they were read; do not write to them from another thread")
        raise not_finite(scores) or changed from None
    return found
