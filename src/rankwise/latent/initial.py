"""Where the alternation starts: the first candidate of each positive bag, or the coefficients that choose it.

The objective has many local minima, and the start decides which one is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from rankwise.arguments import as_array, first_true
from rankwise.latent.bags import Bags
from rankwise.latent.blocks import read_rows
from rankwise.linear.features import Vector

Indices = NDArray[np.int64]
INITS = ("first", "centre", "random", "mean")


class Start(NamedTuple):
    """A start: by its name, by the number of a candidate for each bag, or by coefficients."""

    name: str
    candidates: Indices | None = None
    coef: Vector | None = None

    def rows(self, bags: Bags, relevant: NDArray[np.bool_], seed: int) -> Indices:
        """Return the rows of the first candidates, (bags,)."""
        if self.candidates is not None:
            return bags.starts + self.candidates
        if self.name == "random":
            return bags.starts + np.random.default_rng([seed, 0]).integers(0, bags.sizes)
        rows = bags.starts.copy()
        if self.name == "centre":  # of a positive bag; the start of a negative one has no effect
            for i in np.flatnonzero(relevant):
                values = read_rows(bags.features, bags.starts[i], bags.stops[i])
                rows[i] += int(np.argmin(((values - values.mean(axis=0)) ** 2).sum(axis=1)))
        return rows


def as_start(init: Any, sizes: Indices, width: int) -> Start:
    """Return the start that `init` means for bags of given sizes and width."""
    if isinstance(init, str):
        if init not in INITS:
            names = ", ".join(map(repr, INITS))
            raise ValueError(f"unknown init={init!r}; use {names}, candidates or a linear model")
        return Start(init)
    if isinstance(init, list | tuple) and any(
        isinstance(one, str | list | tuple | np.ndarray) or hasattr(one, "coef_") for one in init
    ):
        raise ValueError("init is a list of starts; fit a model for each, and keep that with the lowest objective_")
    array = as_array(init.coef_ if hasattr(init, "coef_") else init, "init")
    if array.dtype.kind == "f":
        coef = array.astype(np.float64).ravel()
        if coef.size != width or not np.isfinite(coef).all():
            raise ValueError(
                f"init: {coef.size} coefficients for {width} features; pass one finite coefficient per feature"
            )
        return Start("coefficients", coef=coef)
    if array.dtype.kind not in "iu" or array.shape != sizes.shape:
        raise ValueError(
            f"init has shape {array.shape} and dtype {array.dtype}; pass the number of a candidate for each of the "
            f"{sizes.size} bags, or {width} coefficients"
        )
    if (i := first_true((array < 0) | (array >= sizes))) is not None:
        raise ValueError(f"init: bag {i} has no candidate {array[i]}; pass a number from 0 to {sizes[i] - 1}")
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
            np.matmul(np.full(size, 1.0 / size), read_rows(bags.features, bags.starts[i], bags.stops[i]), out=means[i])
    if not np.isfinite(means).all():
        bags.scores(np.zeros(bags.width))  # raises an error that names the candidate
    return csr_matrix(means) if sparse else means
