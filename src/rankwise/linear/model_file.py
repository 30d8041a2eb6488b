"""Linear rankers in model files: parameters as plain data, fitted attributes as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import is_number, is_whole
from rankwise.io.models import ModelFile, ModelFileError, write_model
from rankwise.io.quoting import shown
from rankwise.metrics.base import Metric
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import as_loss, as_metric

# Fitted attributes that are stored as arrays, and those stored as numbers, booleans or dictionaries.
_ARRAYS = ("coef_", "intercept_", "classes_", "feature_names_in_", "Cs_", "scores_")
_BOUNDS = ("objective_", "dual_", "gap_", "n_iter_", "converged_")
_PLAIN = ("n_features_in_", *_BOUNDS, "timing_", "C_", "loss_", "metric_", "best_score_", "best_by_")
_BY = "scores_by_"  # in the order of the names in best_by_, sorted
_HISTORY = "history."
_NEEDED = ("coef_", "intercept_", "classes_")
# Parameters of 0.2.0 that are gone.
_GONE = {"self_paced", "solver", "prior", "refit", "random_state"}
_LONGEST_WORD, _LARGEST = 10_000, 1e308


def write_linear(path: str | Path, kind: str, model: Any, note: Mapping[str, Any] | None = None) -> None:
    """Write a fitted ranker. A loss is stored by its name; parameters that are not plain data are left out."""
    params = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    arrays = {name: _storable(getattr(model, name)) for name in _ARRAYS if hasattr(model, name)}
    arrays |= {_HISTORY + name: values for name, values in model.history_.items()}
    if hasattr(model, _BY):
        arrays[_BY] = np.stack([values for _, values in sorted(getattr(model, _BY).items())])
    learnt = {name: _plain(getattr(model, name)) for name in _PLAIN if hasattr(model, name)}
    header = {
        "params": {name: value for name, value in params.items() if value is not _NOT_PLAIN},
        "left_out": sorted(name for name, value in params.items() if value is _NOT_PLAIN),
        "learnt": {name: value for name, value in learnt.items() if value == value},  # JSON has no NaN
        "note": dict(note or {}),
    }
    write_model(path, kind, header, arrays)


def read_linear(file: ModelFile, path: str | Path, known: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and attributes of a stored ranker, checked. known: the parameters of its class."""
    try:
        params, learnt, _ = (_table(file, key) for key in ("params", "learnt", "note"))
        params = {name: value for name, value in params.items() if name in known or name not in _GONE}
        if strange := sorted(set(params) - known):
            raise ModelFileError(
                f"{path}: unknown parameter {shown(strange[0])}; load it with the version of rankwise that wrote it"
            )
        for name, value in params.items():
            _require(_is_plain(value) and (name != "tol" or (is_number(value) and value > 0.0)), name, value)
        for name in set(_PLAIN) & set(learnt):
            _require(_is_learnt(name, learnt[name]), name, learnt[name])
        return params, _attributes(file.arrays, learnt)
    except _DamagedError as error:
        raise ModelFileError(f"{path}: {error}; copy it again, or save the model again") from None


class _DamagedError(Exception):
    """What is wrong with a file."""


def _require(is_right: bool, name: str, value: Any) -> None:
    if not is_right:
        raise _DamagedError(f"{name} is {shown(value)}, which is not valid")


def _table(file: ModelFile, key: str) -> dict[str, Any]:
    """Return a part of the header that must be a table of names and values."""
    if key not in file.header:
        raise _DamagedError(f"the linear model has no {key}")
    part = file.header[key]
    if not isinstance(part, dict):
        raise _DamagedError(f"{key} is {shown(part)}, not a table of names and values")
    return part


def _attributes(arrays: Mapping[str, NDArray[Any]], learnt: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes; refuse arrays that do not match."""
    for name in _NEEDED:
        if name not in arrays:
            raise _DamagedError(f"the linear model has no array {name}")
    d: Any = learnt.get("n_features_in_")
    _require(is_whole(d) and d > 0, "n_features_in_", d)
    coef, intercept, classes = (arrays[name] for name in _NEEDED)
    finite = all(part.dtype == np.float64 and np.isfinite(part).all() for part in (coef, intercept))
    if not finite or coef.shape != (1, d) or intercept.shape != (1,) or classes.shape != (2,):
        raise _DamagedError("coefficients, intercept and classes do not match")
    _require(classes[0] < classes[1], "classes_", classes.tolist())
    found: dict[str, Any] = {name: learnt[name] for name in _PLAIN if name in learnt}
    found |= {name: arrays[name] for name in _ARRAYS if name in arrays}
    if "feature_names_in_" in arrays:
        names = arrays["feature_names_in_"]
        if names.shape != (d,) or names.dtype.kind != "U" or (names == "").any() or np.unique(names).size < d:
            raise _DamagedError(f"it does not name each of {d} features once")
        found["feature_names_in_"] = names.astype(object)
    history = {name.removeprefix(_HISTORY): part for name, part in arrays.items() if name.startswith(_HISTORY)}
    if any(part.dtype.kind not in "biuf" or part.ndim != 1 for part in history.values()) or (
        len({part.size for part in history.values()}) > 1
    ):
        raise _DamagedError("the history is not made of columns of numbers of equal length")
    found["history_"] = history
    if _BY in arrays:
        metrics = sorted(learnt.get("best_by_", {}))
        if arrays[_BY].shape != (len(metrics), *arrays.get("scores_", arrays[_BY]).shape):
            raise _DamagedError(f"scores_by_ does not match the metrics {shown(metrics)}")
        found[_BY] = dict(zip(metrics, arrays[_BY], strict=True))
    return found


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Return whether a value is plain data, as `_plain` returns it: a number, a string, or lists of these."""
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(part, depth - 1) for part in value)
    if isinstance(value, str):
        return len(value) <= _LONGEST_WORD
    return value is None or (isinstance(value, bool | int | float) and abs(value) < _LARGEST)


def _is_learnt(name: str, value: Any) -> bool:
    """Return whether a value has the type that belongs to its name."""
    if name == "best_by_":  # what each metric chose
        kinds = {"loss": str, "C": float, "score": float}
        return isinstance(value, dict) and all(
            isinstance(one, dict) and {key: type(part) for key, part in one.items()} == kinds for one in value.values()
        )
    if name == "timing_":
        return isinstance(value, dict) and all(is_number(part) and _is_plain(part) for part in value.values())
    kind = {"loss_": str, "metric_": str, "converged_": bool}.get(name)
    return _is_plain(value) and (is_number(value) if kind is None else isinstance(value, kind))


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """Return the value as JSON stores it, or a marker if it has no such form."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Metric):
        return _name_of(value)
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return _NOT_PLAIN if any(part is _NOT_PLAIN for part in parts) else parts
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else _NOT_PLAIN


def _name_of(metric: Metric) -> str:
    """Return the name of a metric, or its repr if another one has that name, so that a refit uses no wrong one."""
    try:
        named = as_loss(metric.name) if isinstance(metric, Loss) else as_metric(metric.name)
    except ValueError:
        return metric.name
    return metric.name if repr(named) == repr(metric) else repr(metric)


def _storable(values: Any) -> Any:
    """Return names as fixed-width text, because object arrays cannot be stored."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array
