"""Where the alternation starts: the first candidate of each positive bag, or the coefficients that choose it.

The objective has many local minima, and the start decides which one is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from rankwise.arguments import as_array, first_true
from rankwise.latent.bags import Bags
from rankwise.linear.features import Vector

Indices = NDArray[np.int64]
INITS = ("first", "centre", "random", "mean")


@dataclass(frozen=True, eq=False)
class Start:
    """A start: by its name, by the number of a candidate for each bag, or by coefficients."""

    name: str
    candidates: Indices | None = None
    coef: Vector | None = None

    def rows(self, bags: Bags, relevant: NDArray[np.bool_], rng: np.random.Generator) -> Indices | None:
        """Return the rows of the first candidates, (bags,), or None if coefficients choose them."""
        if self.candidates is not None:
            return bags.starts + self.candidates
        if self.name == "first":
            return bags.starts
        if self.name == "random":
            return bags.starts + rng.integers(0, bags.sizes)
        return _central(bags, relevant) if self.name == "centre" else None

    def coefficients(self, fitted_to_means: Callable[[], Vector]) -> Vector | None:
        """Return the first coefficients, or None if the start is a choice of candidates."""
        return fitted_to_means() if self.name == "mean" else self.coef

    @property
    def key(self) -> list[NDArray[Any]]:
        """Arrays that identify the start."""
        return [np.array([self.name]), *(part for part in (self.candidates, self.coef) if part is not None)]


def as_starts(init: Any, sizes: Indices, width: int) -> list[Start]:
    """Return the starts that `init` means, one or several, for bags of given sizes and width."""
    if not _is_several(init):
        return [_start(init, "init", sizes, width)]
    if not len(init):
        raise ValueError("init is empty; pass a start, or several to choose from")
    return [_start(one, f"init[{number}]", sizes, width) for number, one in enumerate(init)]


def part_of(init: Any, rows: Indices) -> Any:
    """Return the part of `init` that belongs to some of the bags."""
    if _is_several(init):
        return [part_of(one, rows) for one in init]
    if isinstance(init, str) or hasattr(init, "coef_"):
        return init
    array = np.asarray(init)
    return array if array.dtype.kind == "f" else array[rows]


def _is_several(init: Any) -> bool:
    if not isinstance(init, list | tuple):
        return False
    return not init or any(isinstance(one, str) or hasattr(one, "coef_") or np.ndim(one) > 0 for one in init)


def _start(init: Any, place: str, sizes: Indices, width: int) -> Start:
    if isinstance(init, str):
        if init not in INITS:
            names = ", ".join(map(repr, INITS))
            raise ValueError(f"unknown {place}={init!r}; use {names}, candidates or a linear model")
        return Start(init)
    array = as_array(init.coef_ if hasattr(init, "coef_") else init, place)
    if array.dtype.kind == "f":
        coef = array.astype(np.float64).ravel()
        if coef.size != width or not np.isfinite(coef).all():
            raise ValueError(
                f"{place}: {coef.size} coefficients for {width} features; pass one finite coefficient per feature"
            )
        return Start("coefficients", coef=coef)
    if array.dtype.kind not in "iu" or array.shape != sizes.shape:
        raise ValueError(
            f"{place} has shape {array.shape} and dtype {array.dtype}; pass the number of a candidate for each of the "
            f"{sizes.size} bags, or {width} coefficients"
        )
    if (i := first_true((array < 0) | (array >= sizes))) is not None:
        raise ValueError(f"{place}: bag {i} has no candidate {array[i]}; pass a number from 0 to {sizes[i] - 1}")
    return Start("given", array.astype(np.int64))


def bag_means(bags: Bags) -> Any:
    """Compute the mean of the candidates of each bag.

    Parameters
    ----------
    bags : Bags
        Bags of candidates.

    Returns
    -------
    ndarray or CSR matrix of shape (n_bags, n_features)
        Mean features of each bag, as a CSR matrix if the features are one.

    Raises
    ------
    ValueError
        If a feature is not finite.

    See Also
    --------
    rankwise.Bags : Bags of candidates.

    Examples
    --------
    >>> from rankwise import Bags
    >>> bag_means(Bags(np.arange(8.0).reshape(4, 2), [0, 2, 4])).tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """
    sparse = issparse(bags.features)
    means = np.empty((len(bags), bags.width))
    for i, size in enumerate(bags.sizes):
        if sparse:
            means[i] = np.asarray(bags[i].mean(axis=0)).ravel()
        else:
            np.matmul(np.full(size, 1.0 / size), bags.read(i), out=means[i])
    if not np.isfinite(means).all():
        bags.scores(np.zeros(bags.width))  # raises an error that names the candidate
    return csr_matrix(means) if sparse else means


def _central(bags: Bags, relevant: NDArray[np.bool_]) -> Indices:
    """Return the candidate nearest the mean of its bag; for a negative bag, whose start has no effect, the first."""
    rows = bags.starts.copy()
    for i in np.flatnonzero(relevant):
        values = bags.read(int(i))
        rows[i] += int(np.argmin(((values - values.mean(axis=0)) ** 2).sum(axis=1)))
    return rows
