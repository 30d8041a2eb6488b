"""Shared steps of the public functions: scores in, gradients out, the mean over queries, and empty queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.grouping import Grouping
from rankwise.inputs import as_scores
from rankwise.queries import Queries

__all__ = ["give_gradient", "mean_gradient", "n_used", "take_scores"]


def take_scores(scores: ArrayLike) -> tuple[NDArray[np.floating], np.dtype[Any]]:
    """Return `as_scores`, with a faster conversion of float16 than NumPy's."""
    if type(scores) is not np.ndarray or scores.dtype != np.float16 or scores.ndim != 1:
        return as_scores(scores)
    from rankwise.inference.half import from_half

    return as_scores(from_half(scores))[0], scores.dtype


def give_gradient(gradient: NDArray[np.floating], dtype: np.dtype[Any]) -> NDArray[np.floating]:
    """Return the gradient in the dtype of the scores, read-only."""
    if dtype == np.float16:
        from rankwise.inference.half import to_half

        gradient = to_half(gradient)
    gradient = gradient.astype(dtype, copy=False)
    gradient.flags.writeable = False
    return gradient


def n_used(queries: Queries, ids: NDArray[Any] | None, empty: str) -> int:
    """Return the number of queries that a mean is taken over.

    Queries with nothing to rank count, are left out or refused. ids: their names; None if there is only one query.
    """
    can_rank = queries.can_rank
    if empty == "error" and not can_rank.all():
        q = int(np.argmin(can_rank))
        _refuse_empty(queries, q, "the query" if ids is None else f"query {ids[q]}")
    return max(int(np.count_nonzero(can_rank)) if empty == "skip" else can_rank.size, 1)


def mean_gradient(
    gradient: NDArray[np.floating], used: int, grouping: Grouping, dtype: np.dtype[Any]
) -> NDArray[np.floating]:
    """Turn the gradient of the sum over queries into that of the mean, in input order. The argument is overwritten."""
    np.multiply(gradient, gradient.dtype.type(1.0 / used), out=gradient)
    return give_gradient(grouping.scatter(gradient), dtype)


def _refuse_empty(queries: Queries, q: int, which: str) -> None:
    """Raise because query q has nothing to rank."""
    n_pos, n_neg = queries.counts[:, q].tolist()
    has = f"{n_pos} positives and {n_neg} negatives" if queries.grades is None else "no two different grades"
    raise ValueError(f"{which} has {has}, so it has no ranking loss; remove it, or pass empty='zero' or empty='skip'")
