"""Samples in partitions, and what a fit on a cluster must share with one in memory."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray

RTOL = ATOL = 1e-10


def in_parts(values: Any, sizes: list[int], known: bool = True) -> Any:
    """A Dask array of partitions of these sizes, dense or CSR blocks."""
    stops = np.cumsum(sizes)
    assert stops[-1] == values.shape[0]
    blocks = [values[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)]
    arrays = [
        da.from_delayed(
            delayed(block), (size if known else np.nan, *values.shape[1:]), dtype=values.dtype, meta=values[:0]
        )
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


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
