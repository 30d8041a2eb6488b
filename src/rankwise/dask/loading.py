"""From collections to checked parts on workers, one per partition; what is wrong is said with its row among all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from rankwise.arguments import as_array, as_scores, as_truth, first_true, raise_not_finite
from rankwise.dask.cluster import Futures, Hold, clear
from rankwise.dask.collections import aligned, check_dimensions, is_frame, partitions
from rankwise.dask.faults import Fault, fault_of, fault_of_features
from rankwise.dask.labels import Labelled
from rankwise.linear.base import refuse_broken
from rankwise.linear.task import rankable
from rankwise.queries import as_ids

__all__ = ["check_types", "load_parts", "load_vectors"]


class Size(NamedTuple):
    """Number of rows and features of a partition, and whether it is sparse."""

    rows: int
    features: int
    is_sparse: bool


class Report(NamedTuple):
    """A partition that is in order: its size, and the types of its labels and queries, None if there are no rows."""

    size: Size
    of_y: np.dtype[Any] | None
    of_qid: np.dtype[Any] | None


def load_parts(
    hold: Hold, X: Any, y: Any, qid: Any = None, query_weight: Any = None, alike: bool = False
) -> tuple[Futures, int]:
    """Load labelled parts on the workers, in memory or on disk; return them and the number of features.

    alike: refuse a mixture of dense and sparse partitions.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    blocks = partitions(X, "X")
    check_dimensions(X, "X", 2)
    columns = list(X.columns) if is_frame(X) else None
    labels = _aligned(X, "X", y=y, qid=qid, query_weight=query_weight)
    parts, reports = _load(hold, [delayed(_features)(block, columns) for block in blocks], labels, "X")
    sizes = [report.size for report in reports]
    if not any(size.rows for size in sizes):
        raise ValueError("X has no rows; pass at least one sample of each class")
    widths = [size.features for size in sizes]
    if (k := first_true(np.array(widths) != widths[0])) is not None:
        raise ValueError(
            f"X has {widths[0]} features in partition 0, but {widths[k]} in partition {k}; give all partitions the "
            "same number"
        )
    kinds = ["sparse" if size.is_sparse else "dense" for size in sizes]
    if alike and len(set(kinds)) > 1:
        k = kinds.index("sparse" if kinds[0] == "dense" else "dense")
        raise ValueError(
            f"X is {kinds[0]} in partition 0, but {kinds[k]} in partition {k}; make all of them dense or all sparse"
        )
    return parts, widths[0]


def load_vectors(hold: Hold, scores: Any, relevant: Any, qid: Any = None) -> Futures:
    """Load checked scores and relevance as parts on the workers."""
    blocks = partitions(scores, "scores")
    check_dimensions(scores, "scores")
    labels = {"relevant": aligned(relevant, scores, "relevant", "scores"), **_aligned(scores, "scores", qid=qid)}
    return _load(hold, [delayed(_scores)(block) for block in blocks], labels, "scores")[0]


def check_types(types: Sequence[np.dtype[Any] | None], name: str) -> np.dtype[Any]:
    """Return the type of all partitions' values, of each or None if it has no rows; refuse numbers with strings.

    Integers that only floats could hold together are refused as queries, because different ones would become equal.
    """
    used = [(number, one) for number, one in enumerate(types) if one is not None]
    first, before = used[0] if used else (0, np.dtype(np.int64))
    kind = before
    for number, one in used:
        common = np.result_type(kind, one) if _family(kind) == _family(one) else None
        if common is None or (name == "qid" and common.kind == "f" and kind.kind in "iu" and one.kind in "iu"):
            raise TypeError(
                f"{name} has dtype {before} in partition {first}, but {one} in partition {number}; convert all "
                "partitions to one of them"
            )
        kind = common
    return kind


def _family(dtype: np.dtype[Any]) -> str:
    return "number" if dtype.kind in "fiub" else "text" if dtype.kind in "OU" else dtype.kind


def _aligned(X: Any, beside: str, **given: Any) -> dict[str, list[Any]]:
    return {name: aligned(values, X, name, beside) for name, values in given.items() if values is not None}


def _load(hold: Hold, blocks: list[Any], labels: dict[str, list[Any]], beside: str) -> tuple[Futures, list[Report]]:
    """Submit everything at once, so that shared inputs are read only once. Return parts, and a report on each."""
    n, names = len(blocks), list(labels)
    with clear(hold.client):
        futures = hold.compute([*blocks, *(block for one in labels.values() for block in one)])
        data, *columns = (futures[k : k + n] for k in range(0, len(futures), n))
        sizes = hold.map(_size, data)
        states = hold.map(_label, range(n), sizes, *columns, names=names, beside=beside)
        reports: list[Report] = []
        first = 0
        for number, report in enumerate(hold.gather(hold.map(_report, sizes, states))):
            if isinstance(report, Fault):
                raise report.error(number, first)
            reports.append(report)
            first += report.size.rows
        check_types([report.of_y for report in reports], names[0])
        if "qid" in labels:
            ids = check_types([report.of_qid for report in reports], "qid")
            if any(report.of_qid != ids for report in reports):
                states = hold.map(_of_type, states, [ids] * n)
    return Futures(hold, states, data), reports


def _features(block: Any, columns: list[Any] | None) -> Any:
    """Return a partition of X as rows of float32 or float64, dense or CSR. columns: names that a dataframe has."""
    given = block
    try:
        if columns is not None and list(block.columns) != columns:
            raise ValueError(
                f"X has the columns {list(block.columns)}, but its Dask dataframe has {columns}; select them in this "
                "order with map_partitions"
            )
        if hasattr(block, "to_numpy"):
            block = block.to_numpy()
        elif hasattr(block, "tocsr"):
            block = block.tocsr()
        refuse_broken(block)
        types = [np.float64, np.float32]
        return check_array(block, accept_sparse="csr", dtype=types, ensure_min_samples=0, input_name="X")
    except (TypeError, ValueError) as error:
        return fault_of_features(given, error)


def _scores(block: Any) -> NDArray[np.float64] | Fault:
    try:
        scores = np.ascontiguousarray(as_scores(block)[0], np.float64)
        raise_not_finite(scores)
    except (TypeError, ValueError) as error:
        return fault_of(error)
    return scores


def _size(block: Any) -> Size | Fault:
    if isinstance(block, Fault):
        return block
    return Size(block.shape[0], block.shape[1] if block.ndim == 2 else 1, sparse.issparse(block))


def _label(number: int, size: Size | Fault, *columns: Any, names: list[str], beside: str) -> Labelled | Fault:
    if isinstance(size, Fault):
        return size
    n = size.rows
    try:
        given = {name: _as_column(one, name, n, beside) for name, one in zip(names, columns, strict=True)}
        y, weight = given[names[0]], given.get("query_weight")
        if n and names[0] == "relevant":
            as_truth(y, n)
        elif n:
            _check_labels(y)
        ids = as_ids(given["qid"], n) if "qid" in given else None
        if weight is not None:
            rankable(np.zeros(n, np.bool_), ids, weight)  # raises if weights are invalid, or differ within a query
    except (TypeError, ValueError) as error:
        return fault_of(error)
    return Labelled(number, y, ids, weight)


def _as_column(values: Any, name: str, n: int, beside: str) -> NDArray[Any]:
    array = as_array(values, name)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, but {beside} has {n} rows; use equal partitions")
    return array


def _check_labels(y: NDArray[Any]) -> None:
    """Refuse labels that are missing, infinite, partly strings, or neither numbers nor strings."""
    kind = y.dtype.kind
    if kind in "cSV":
        raise TypeError(f"y must be numbers or strings, got dtype {y.dtype}; convert it with astype")
    wrong = ~np.isfinite(y) if kind == "f" else np.zeros(y.size, np.bool_)
    if kind == "O":
        strings = any(isinstance(value, str) for value in y)
        wrong = np.array([not (isinstance(value, str) if strings else _is_finite(value)) for value in y])
    if (k := first_true(wrong)) is not None:
        raise ValueError(f"y[{k}] is {y[k]!s}: labels must be all finite numbers or all strings; drop the sample")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_) and bool(abs(value) < np.inf)  # type: ignore[operator]


def _report(size: Size, state: Labelled | Fault) -> Report | Fault:
    if isinstance(state, Fault):
        return state
    of_qid = None if state.qid is None else state.qid.dtype
    return Report(size, state.truth.dtype, of_qid) if size.rows else Report(size, None, None)


def _of_type(state: Labelled, ids: np.dtype[Any]) -> Labelled:
    """Return a part whose queries have the type of all partitions' queries."""
    assert state.qid is not None
    return replace(state, qid=state.qid.astype(ids, copy=False))
