"""Where the alternation begins: which candidate stands for each positive bag at first, or under which coefficients.

The objective has many local minima, and the start decides which is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from rankwise.inputs import as_array
from rankwise.latent.bags import Bags
from rankwise.linear.features import Vector

__all__ = ["INITS", "Start", "as_starts", "bag_means"]

Indices = NDArray[np.int64]
INITS = ("first", "centre", "random", "mean")


class Start(NamedTuple):
    """Rows of the candidates to begin with, or coefficients (without those, of zeros); name: for messages and files."""

    name: str
    rows: Indices | None
    coef: Vector | None


def as_starts(
    init: Any, bags: Bags, relevant: NDArray[np.bool_], seed: int, fitted_to_means: Callable[[], Vector]
) -> list[Start]:
    """The starts that `init` asks for, one or several. fitted_to_means: coefficients of a ranker of the bags' means."""
    several = isinstance(init, list | tuple) and any(isinstance(one, str) or np.ndim(one) > 0 for one in init)
    if several and not len(init):
        raise ValueError("init is empty; name a start, or several to choose from")
    starts = []
    for number, one in enumerate(init if several else [init]):
        place = f"init[{number}]" if several else "init"
        starts.append(_start(one, place, bags, relevant, np.random.default_rng([seed, number]), fitted_to_means))
    return starts


def _start(
    init: Any,
    place: str,
    bags: Bags,
    relevant: NDArray[np.bool_],
    rng: np.random.Generator,
    fitted_to_means: Callable[[], Vector],
) -> Start:
    if isinstance(init, str):
        if init == "first":
            return Start(init, bags.starts, None)
        if init == "random":
            return Start(init, bags.starts + rng.integers(0, bags.sizes), None)
        if init == "centre":
            return Start(init, _central(bags, relevant), None)
        if init == "mean":
            return Start(init, None, fitted_to_means())
        raise ValueError(f"unknown {place}={init!r}; use {', '.join(map(repr, INITS))}, candidates or a linear model")
    if hasattr(init, "coef_"):
        return Start("model", None, _as_coef(init.coef_, place, bags))
    array = as_array(init, place)
    if array.dtype.kind == "f":
        return Start("coefficients", None, _as_coef(array, place, bags))
    if array.dtype.kind not in "iu" or array.shape != (len(bags),):
        raise ValueError(
            f"{place} has shape {array.shape} and dtype {array.dtype}; pass the number of a candidate for each of the "
            f"{len(bags)} bags, or {bags.width} coefficients"
        )
    wrong = (array < 0) | (array >= bags.sizes)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"{place}: bag {i} has no candidate {array[i]}, only 0 to {bags.sizes[i] - 1}")
    return Start("given", bags.starts + array.astype(np.int64), None)


def _as_coef(coef: Any, place: str, bags: Bags) -> Vector:
    values = np.asarray(coef, np.float64).ravel()
    if values.size != bags.width or not np.isfinite(values).all():
        raise ValueError(f"{place}: {values.size} coefficients for {bags.width} features; they must be as many, finite")
    return values


def bag_means(bags: Bags) -> Any:
    """The mean candidate of each bag, (bags, d); CSR if the features are."""
    means = (_dense_or_sparse(bags, i).mean(axis=0) for i in range(len(bags)))
    if issparse(bags.features):
        return csr_matrix(np.vstack([np.asarray(mean).ravel() for mean in means]))
    return np.array(list(means))


def _central(bags: Bags, relevant: NDArray[np.bool_]) -> Indices:
    """The candidate nearest the mean of its bag; of a negative bag, whose start is of no account, the first."""
    rows = bags.starts.copy()
    for i in np.flatnonzero(relevant):
        bag = _dense_or_sparse(bags, int(i))
        values = bag.toarray() if issparse(bag) else bag
        rows[i] += int(np.argmin(((values - values.mean(axis=0)) ** 2).sum(axis=1)))
    return rows


def _dense_or_sparse(bags: Bags, i: int) -> Any:
    bag = bags[i]
    return bag.astype(np.float64) if issparse(bag) else np.asarray(bag, np.float64)
