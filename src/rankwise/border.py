"""Where users call: types of scores in, types of gradients out, the mean over queries, queries that are empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.grouping import Grouping
from rankwise.inputs import as_scores

__all__ = ["give_gradient", "mean_gradient", "n_used", "refuse_empty", "take_scores"]


def take_scores(scores: ArrayLike) -> tuple[NDArray[np.floating], np.dtype[Any]]:
    """`as_scores`, float16 by a conversion faster than NumPy's."""
    if type(scores) is not np.ndarray or scores.dtype != np.float16 or scores.ndim != 1:
        return as_scores(scores)
    from rankwise.inference.half import from_half

    return as_scores(from_half(scores))[0], scores.dtype


def give_gradient(gradient: NDArray[np.floating], dtype: np.dtype[Any]) -> NDArray[np.floating]:
    """The gradient in the scores' own type, read-only."""
    if dtype == np.float16:
        from rankwise.inference.half import to_half

        gradient = to_half(gradient)
    gradient = gradient.astype(dtype, copy=False)
    gradient.flags.writeable = False
    return gradient


def n_used(n_pos: NDArray[np.int64], n_neg: NDArray[np.int64], ids: NDArray[Any], empty: str) -> int:
    """How many queries a mean is taken over; those without positives or negatives count, are left out or refused."""
    is_empty = np.minimum(n_pos, n_neg) == 0
    if is_empty.any() and empty == "error":
        q = int(np.argmax(is_empty))
        refuse_empty(empty, f"query {ids[q]}", int(n_pos[q]), int(n_neg[q]))
    return max(int(is_empty.size) - (int(is_empty.sum()) if empty == "skip" else 0), 1)


def mean_gradient(
    gradient: NDArray[np.floating], used: int, grouping: Grouping, dtype: np.dtype[Any]
) -> NDArray[np.floating]:
    """The gradient of a mean over so many queries from that of their sum, which is written over, by sample as given."""
    np.multiply(gradient, gradient.dtype.type(1.0 / used), out=gradient)
    return give_gradient(grouping.scatter(gradient), dtype)


def refuse_empty(empty: str, which: str, n_pos: int, n_neg: int) -> None:
    """Raise if empty queries are to be refused."""
    if empty == "error":
        raise ValueError(
            f"{which} has {n_pos} positives and {n_neg} negatives and so no ranking loss; remove it, or pass "
            "empty='zero' or empty='skip'"
        )
