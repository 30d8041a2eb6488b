"""Samples in partitions, and what a fit on a cluster must share with one in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask import delayed
from numpy.typing import NDArray

from rankwise.dask.collections import as_dask_array
from rankwise.dask.exchange import Each, Exchange, Traffic, add_all, size_of

RTOL = ATOL = 1e-10


def in_parts(values: Any, sizes: list[int], known: bool = True) -> Any:
    """A Dask array of partitions of these sizes, dense or CSR blocks."""
    stops = np.cumsum(sizes)
    assert stops[-1] == values.shape[0]
    blocks = [values[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)]
    rows = sizes if known else [np.nan] * len(sizes)
    return as_dask_array([delayed(block) for block in blocks], rows, values[:0])


def evenly(n: int, parts: int) -> list[int]:
    return [n * (k + 1) // parts - n * k // parts for k in range(parts)]


def rare(rng: np.random.Generator, n: int, d: int = 8, dtype: Any = np.float64) -> tuple[Any, NDArray[np.bool_]]:
    """Samples of which about one in a hundred is relevant."""
    X = rng.normal(size=(n, d))
    relevant = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 3.5
    relevant[:2] = True, False
    return X.astype(dtype), relevant


def assert_same_fit(found: Any, local: Any) -> None:
    assert found.n_iter_ == local.n_iter_
    for name in ("coef_", "intercept_", "objective_", "dual_", "C_"):
        np.testing.assert_allclose(getattr(found, name), getattr(local, name), rtol=RTOL, atol=ATOL, err_msg=name)
    np.testing.assert_array_equal(found.classes_, local.classes_)


class InProcess(Exchange):
    """Partitions that are all in this process."""

    def __init__(self, states: list[Any], data: list[Any], traffic: Traffic | None = None) -> None:
        self.states, self.data, self.traffic = states, data, traffic or Traffic()

    def derive(self, function: Any, *args: Any, reads: bool = False) -> InProcess:
        self.traffic.sent += size_of(args)
        states = []
        for k, state in enumerate(self.states):
            own = [one[k] if isinstance(one, Each) else one for one in args]
            states.append(function(*([self.data[k]] if reads else []), state, *own))
        return InProcess(states, self.data, self.traffic)

    def ask(self, function: Any, *args: Any, reads: bool = False) -> Any:
        replies = self.derive(function, *args, reads=reads).states
        self.traffic.rounds += 1
        self.traffic.received += size_of(replies)
        return add_all(replies)
