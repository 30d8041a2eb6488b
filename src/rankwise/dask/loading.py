"""From collections to checked partitions on workers; what is wrong is said with its row among all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from rankwise.arguments import as_array, as_scores, as_truth, first_true, raise_not_finite
from rankwise.dask.cluster import Futures, Hold, clear
from rankwise.dask.collections import aligned, is_frame, partitions
from rankwise.dask.faults import Fault, fault_of, fault_of_features
from rankwise.dask.plan import Labelled
from rankwise.linear.base import refuse_broken
from rankwise.linear.task import rankable
from rankwise.queries import as_ids


class Report(NamedTuple):
    """A partition that is in order. types: by name, those of its labels and queries; empty if there are no rows."""

    rows: int
    width: int
    types: dict[str, np.dtype[Any]]


def load_parts(hold: Hold, X: Any, y: Any, qid: Any = None, query_weight: Any = None) -> tuple[Futures, int]:
    """Load labelled partitions on the workers, in memory or on disk; return them and the number of features."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    blocks = partitions(X, "X", 2)
    columns = list(X.columns) if is_frame(X) else None
    labels = _aligned(X, "X", y=y, qid=qid, query_weight=query_weight)
    parts, reports = _load(hold, [delayed(_features)(block, columns) for block in blocks], labels, "X")
    if not any(report.rows for report in reports):
        raise ValueError("X has no rows; pass at least one sample of each class")
    widths = [report.width for report in reports]
    if (k := first_true(np.array(widths) != widths[0])) is not None:
        raise ValueError(
            f"X has {widths[0]} features in partition 0, but {widths[k]} in partition {k}; give all partitions the "
            "same number"
        )
    return parts, widths[0]


def load_vectors(hold: Hold, scores: Any, relevant: Any, qid: Any = None) -> Futures:
    """Load checked scores and relevance on the workers."""
    blocks = partitions(scores, "scores")
    labels = {"relevant": aligned(relevant, scores, "relevant", "scores"), **_aligned(scores, "scores", qid=qid)}
    return _load(hold, [delayed(_scores)(block) for block in blocks], labels, "scores")[0]


def check_types(types: Sequence[np.dtype[Any] | None], name: str) -> np.dtype[Any]:
    """Return a type for the values of all partitions, of each or None if it has no rows; refuse numbers with strings.

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
    """Submit everything at once, so that shared inputs are read only once. Return partitions, and a report on each."""
    n, names = len(blocks), list(labels)
    with clear(hold.client):
        futures = hold.compute([*blocks, *(block for one in labels.values() for block in one)])
        data, *columns = (futures[k : k + n] for k in range(0, len(futures), n))
        states = hold.map(_label, range(n), data, *columns, names=names, beside=beside)
        reports: list[Report] = []
        first = 0
        for number, report in enumerate(hold.client.gather(hold.map(_report, states))):
            if isinstance(report, Fault):
                raise report.error(number, first)
            reports.append(report)
            first += report.rows
        types = {"y": check_types([report.types.get("y") for report in reports], names[0])}
        if "qid" in names:
            types["qid"] = check_types([report.types.get("qid") for report in reports], "qid")
        if any(report.types != types for report in reports):
            states = hold.map(_of_types, states, [types] * n)
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


def _label(number: int, block: Any, *columns: Any, names: list[str], beside: str) -> Labelled | Fault:
    """Return the checked labels that stand beside a block of X or of scores."""
    if isinstance(block, Fault):
        return block
    n, width = block.shape[0], block.shape[1] if block.ndim == 2 else 1
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
    return Labelled(number, y, ids, weight, width)


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


def _report(state: Labelled | Fault) -> Report | Fault:
    if isinstance(state, Fault):
        return state
    n, given = state.y.shape[0], {"y": state.y, "qid": state.qid}
    types = {name: values.dtype for name, values in given.items() if n and values is not None}
    return Report(n, state.width, types)


def _of_types(state: Labelled, types: dict[str, np.dtype[Any]]) -> Labelled:
    """Return a partition whose labels and queries have the types of all partitions."""
    return replace(state, **{name: getattr(state, name).astype(dtype, copy=False) for name, dtype in types.items()})
