"""From Dask arrays and dataframes to partitions, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray


def is_frame(X: Any) -> bool:
    """Return whether X is a Dask dataframe or series."""
    return all(hasattr(X, name) for name in ("ndim", "npartitions", "map_partitions")) and not isinstance(X, da.Array)


def feature_names(X: Any) -> NDArray[Any] | None:
    """Return the names of a dataframe's columns, if all are strings."""
    if not is_frame(X):
        return None
    names = np.asarray(X.columns, dtype=object)
    return names if all(isinstance(name, str) for name in names) else None


def partitions(values: Any, name: str, ndim: int = 1) -> list[Any]:
    """Return one delayed object per partition, with whole rows, of a Dask array or dataframe of so many dimensions."""
    if not isinstance(values, da.Array) and not is_frame(values):
        kind = type(values).__name__
        remedy = "for data in memory, use rankwise.RankSVM or dask.array.from_array"
        raise TypeError(f"{name} must be a Dask array or dataframe, got {kind}; {remedy}")
    if values.ndim != ndim:
        what, remedy = ("one", f"one column, or {name}.ravel()") if ndim == 1 else ("two", "a column for each feature")
        raise ValueError(f"{name} must be {what}-dimensional, got {values.ndim} dimensions; pass {remedy}")
    if is_frame(values):
        found = list(values.to_delayed(optimize_graph=False))  # optimising would join partitions of narrow columns
    else:
        whole = values.rechunk({1: -1}) if ndim == 2 and values.numblocks[1] > 1 else values
        found = whole.to_delayed().ravel().tolist()
    if not found:
        raise ValueError(f"{name} has no partitions; pass data with at least one")
    return found


def aligned(values: Any, X: Any, name: str, beside: str = "X") -> list[Any]:
    """Return partitions of labels that match those of X; rechunk if both sizes are known and differ."""
    if all(isinstance(one, da.Array) for one in (values, X)) and values.ndim == 1 and values.chunks[0] != X.chunks[0]:
        known = not np.isnan([*values.chunks[0], *X.chunks[0]]).any()
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} has {values.shape[0]} entries, but {beside} has {X.shape[0]} rows; pass one per row"
            )
        if known:
            values = values.rechunk((X.chunks[0],))
    found, wanted = partitions(values, name), X.npartitions if is_frame(X) else X.numblocks[0]
    if len(found) != wanted:
        raise ValueError(
            f"{name} has {len(found)} partitions, but {beside} has {wanted}, of unknown sizes; call "
            f"compute_chunk_sizes() on both arrays, use to_dask_array(lengths=True) for a dataframe, or give {name} "
            f"the partitions of {beside}"
        )
    return found


def as_dask_array(blocks: Sequence[Any], sizes: Sequence[float], meta: Any) -> Any:
    """Return a Dask array made of delayed blocks of rows, which may be empty; meta: an array without rows."""
    name = f"rankwise-{tokenize(*blocks)}"
    zeros, wide = (0,) * (meta.ndim - 1), [(width,) for width in meta.shape[1:]]
    keys = {(name, k, *zeros): block.key for k, block in enumerate(blocks)}
    graph = HighLevelGraph.from_collections(name, keys, dependencies=blocks)
    return da.Array(graph, name, (tuple(sizes), *wide), meta=meta)
