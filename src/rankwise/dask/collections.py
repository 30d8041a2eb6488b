"""From Dask arrays and dataframes to parts on workers: one part per partition, checked there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, Future, get_client
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from rankwise.dask.exchange import Futures, clear
from rankwise.dask.labelling import Labelled
from rankwise.inputs import as_array

__all__ = ["as_client", "as_dask_array", "feature_names", "is_frame", "load_parts", "load_vectors", "partitions"]


def as_client(client: Client | None) -> Client:
    """Return the given client, or the current one."""
    if client is not None:
        if not isinstance(client, Client):
            raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError("there is no Dask client; create one with distributed.Client(...), or pass client=") from None


def is_frame(X: Any) -> bool:
    """Return whether X is a Dask dataframe or series."""
    return hasattr(X, "npartitions") and hasattr(X, "map_partitions") and not isinstance(X, da.Array)


def feature_names(X: Any) -> NDArray[Any] | None:
    """Return the names of a dataframe's columns, if all are strings."""
    if not is_frame(X):
        return None
    names = np.asarray(X.columns, dtype=object)
    return names if all(isinstance(name, str) for name in names) else None


def partitions(values: Any, name: str) -> list[Any]:
    """Return one delayed object per partition, with whole rows."""
    if isinstance(values, da.Array):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        found: list[Any] = values.to_delayed().ravel().tolist()
    elif is_frame(values):
        found = list(values.to_delayed(optimize_graph=False))  # optimising would join partitions of narrow columns
    else:
        kind = type(values).__name__
        remedy = "for data in memory, use rankwise.RankSVM or dask.array.from_array"
        raise TypeError(f"{name} must be a Dask array or dataframe, got {kind}; {remedy}")
    if not found:
        raise ValueError(f"{name} has no partitions; pass data with at least one")
    return found


def _aligned(values: Any, X: Any, name: str) -> list[Any]:
    """Return partitions of labels that match those of X; rechunk if both sizes are known and differ."""
    if isinstance(values, da.Array) and values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {values.ndim} dimensions; pass {name}.ravel()")
    if isinstance(values, da.Array) and isinstance(X, da.Array) and values.chunks[0] != X.chunks[0]:
        known = not np.isnan([*values.chunks[0], *X.chunks[0]]).any()
        if known and sum(values.chunks[0]) != sum(X.chunks[0]):
            raise ValueError(
                f"{name} has {sum(values.chunks[0])} entries, but X has {sum(X.chunks[0])} rows; pass one per row"
            )
        if known:
            values = values.rechunk((X.chunks[0],))
    found, wanted = partitions(values, name), X.npartitions if is_frame(X) else X.numblocks[0]
    if len(found) != wanted:
        raise ValueError(
            f"{name} has {len(found)} partitions, but X has {wanted}, of unknown sizes; call compute_chunk_sizes() on "
            f"both arrays, use X.to_dask_array(lengths=True) for a dataframe, or give {name} the partitions of X"
        )
    return found


def as_dask_array(blocks: Sequence[Any], sizes: Sequence[float], meta: Any) -> Any:
    """Return a Dask array made of delayed blocks of rows, which may be empty; meta: an array without rows."""
    name = f"rankwise-{tokenize(*blocks)}"
    zeros, wide = (0,) * (meta.ndim - 1), [(width,) for width in meta.shape[1:]]
    keys = {(name, k, *zeros): block.key for k, block in enumerate(blocks)}
    graph = HighLevelGraph.from_collections(name, keys, dependencies=blocks)
    return da.Array(graph, name, (tuple(sizes), *wide), meta=meta)


def load_parts(client: Client, X: Any, y: Any, qid: Any = None, query_weight: Any = None) -> tuple[Futures, int]:
    """Load labelled parts on the workers, in memory or on disk; return them and the number of features."""
    blocks = partitions(X, "X")
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
    labels = [None if one is None else _aligned(one, X, name) for one, name in _named(y, qid, query_weight)]
    with clear(client):
        data, columns = _start(client, [delayed(_check_block)(block, k) for k, block in enumerate(blocks)], labels)
        rows = client.map(_shape, data, pure=False)
        states = client.map(_label, range(len(blocks)), rows, *columns, pure=False)
        widths = {shape[1] for shape in client.gather(rows) if shape[0]}
    if len(widths) != 1:
        raise ValueError(
            f"partitions of X have {sorted(widths)} features; give all partitions the same number"
            if widths
            else "X has no rows; pass at least one sample of each class"
        )
    return Futures(client, states, data), widths.pop()


def load_vectors(client: Client, scores: Any, relevant: Any, qid: Any = None) -> Futures:
    """Load checked scores and relevance as parts on the workers."""
    found = partitions(scores, "scores")
    if isinstance(scores, da.Array) and scores.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got {scores.ndim} dimensions; pass scores.ravel() and qid=")
    labels = [_aligned(relevant, scores, "relevant"), None if qid is None else _aligned(qid, scores, "qid"), None]
    with clear(client):
        data, columns = _start(client, [delayed(_check_scores)(block) for block in found], labels)
        rows = client.map(_shape, data, pure=False)
        return Futures(client, client.map(_label, range(len(found)), rows, *columns, pure=False), data)


def _start(
    client: Client, blocks: list[Any], labels: list[list[Any] | None]
) -> tuple[list[Future], list[list[Future | None]]]:
    """Submit everything at once, so that shared inputs are read only once."""
    n = len(blocks)
    given = [one for one in labels if one is not None]
    futures: list[Future] = client.compute([*blocks, *(block for one in given for block in one)])
    columns = iter([futures[k : k + n] for k in range(n, len(futures), n)])
    return futures[:n], [[None] * n if one is None else list(next(columns)) for one in labels]


def _named(y: Any, qid: Any, query_weight: Any) -> Sequence[tuple[Any, str]]:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return (y, "y"), (qid, "qid"), (query_weight, "query_weight")


def _check_block(block: Any, number: int) -> Any:
    """Return a partition of X as rows of float32 or float64, dense or CSR."""
    if hasattr(block, "to_numpy"):
        block = block.to_numpy()
    elif hasattr(block, "tocsr"):
        block = block.tocsr()
    how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_min_samples": 0, "input_name": "X"}
    try:
        return check_array(block, **how)
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from None


def _check_scores(block: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(as_array(block, "scores"), np.float64)


def _shape(block: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = block.shape
    return shape


def _label(number: int, shape: tuple[int, ...], y: Any, qid: Any, weight: Any) -> Labelled:
    arrays = [None if one is None else as_array(one, name) for one, name in _named(y, qid, weight)]
    for array, (_, name) in zip(arrays, _named(y, qid, weight), strict=True):
        if array is not None and array.shape != shape[:1]:
            raise ValueError(
                f"partition {number}: {name} has shape {array.shape}, but X has {shape[0]} rows; use equal partitions"
            )
    return Labelled(number, *arrays)  # type: ignore[arg-type]
