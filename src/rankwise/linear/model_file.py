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
_GONE = {"self_paced"}
_POSITIVE = ("tol",)
_LONGEST_WORD = 10_000
_AGAIN = "copy it again, or save the model again"


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
    arrays = file.arrays
    params, learnt, _ = (_object(file, path, key) for key in ("params", "learnt", "note"))
    for name in _NEEDED:
        if name not in arrays:
            raise ModelFileError(f"{path}: the linear model has no array {name}; {_AGAIN}")
    d: Any = learnt.get("n_features_in_")
    if not is_whole(d) or d < 1:
        raise ModelFileError(f"{path}: n_features_in_ is {shown(d)}, not a number of features; {_AGAIN}")
    _check_arrays(arrays, d, path)
    params = {name: value for name, value in params.items() if name not in _GONE}
    strange = sorted(set(params) - known)
    if strange:
        raise ModelFileError(
            f"{path}: unknown parameter {shown(strange[0])}; load the file with the version of rankwise that wrote it"
        )
    for name, value in params.items():
        if not _is_plain(value) or (name in _POSITIVE and not (is_number(value) and 0.0 < value < np.inf)):
            raise ModelFileError(f"{path}: the parameter {name} is {shown(value)}, which is not valid; {_AGAIN}")
    for name in _PLAIN:
        if name in learnt and not _is_learnt(name, learnt[name]):
            raise ModelFileError(f"{path}: {name} is {shown(learnt[name])}, which is not valid; {_AGAIN}")
    attributes: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
    if "feature_names_in_" in arrays:
        attributes["feature_names_in_"] = arrays["feature_names_in_"].astype(object)
    attributes |= {name: learnt[name] for name in _PLAIN if name in learnt}
    if _BY in arrays:
        names = sorted(learnt.get("best_by_", {}))
        if arrays[_BY].shape != (len(names), *arrays.get("scores_", arrays[_BY]).shape):
            raise ModelFileError(f"{path}: scores_by_ does not match the metrics {shown(names)}; {_AGAIN}")
        attributes[_BY] = dict(zip(names, arrays[_BY], strict=True))
    start = len(_HISTORY)
    attributes["history_"] = {name[start:]: values for name, values in arrays.items() if name.startswith(_HISTORY)}
    return params, attributes


def _object(file: ModelFile, path: str | Path, key: str) -> dict[str, Any]:
    """Return a part of the header that must be a table."""
    if key not in file.header:
        raise ModelFileError(f"{path}: the linear model has no {key}; {_AGAIN}")
    part = file.header[key]
    if not isinstance(part, dict):
        raise ModelFileError(f"{path}: {key} is {shown(part)}, not a table of names and values; {_AGAIN}")
    return dict(part)


def _check_arrays(arrays: Mapping[str, NDArray[Any]], d: int, path: str | Path) -> None:
    """Refuse arrays that do not match, or with contents that no model has."""
    coef, intercept, classes = (arrays[name] for name in _NEEDED)
    whole = all(part.dtype == np.float64 and np.isfinite(part).all() for part in (coef, intercept))
    if not whole or coef.shape != (1, d) or intercept.shape != (1,) or classes.shape != (2,):
        raise ModelFileError(f"{path}: coefficients, intercept and classes do not match; {_AGAIN}")
    if not classes[0] < classes[1]:
        raise ModelFileError(f"{path}: the classes are {shown(classes.tolist())}, not two in ascending order; {_AGAIN}")
    names = arrays.get("feature_names_in_")
    if names is not None:
        if names.shape != (d,):
            raise ModelFileError(f"{path}: there are {names.size} feature names for {d} features; {_AGAIN}")
        if names.dtype.kind != "U" or (names == "").any() or np.unique(names).size < d:
            raise ModelFileError(f"{path}: feature names must be unique and not empty; {_AGAIN}")
    history = [values for name, values in arrays.items() if name.startswith(_HISTORY)]
    if any(values.dtype.kind not in "biuf" or values.ndim != 1 for values in history) or (
        len({values.size for values in history}) > 1
    ):
        raise ModelFileError(f"{path}: the history is not made of columns of numbers of equal length; {_AGAIN}")


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Return whether a value is plain data, as `_plain` returns it: a number, a string, or lists of these."""
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(part, depth - 1) for part in value)
    return value is None or (isinstance(value, bool | int | float | str) and abs(_size(value)) < np.inf)


def _size(value: float | str) -> float:
    """Return a number, or the length of a string; infinity if it is implausibly large."""
    if isinstance(value, str):
        return np.inf if len(value) > _LONGEST_WORD else len(value)
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _is_learnt(name: str, value: Any) -> bool:
    """Return whether a value has the type that belongs to its name."""
    if name in ("loss_", "metric_"):
        return isinstance(value, str) and _is_plain(value)
    if name == "converged_":
        return isinstance(value, bool)
    if name == "timing_":
        return isinstance(value, dict) and all(is_number(part) and _is_plain(part) for part in value.values())
    if name == "best_by_":
        return isinstance(value, dict) and all(_is_choice(part) for part in value.values())
    return is_number(value) and _is_plain(value)


def _is_choice(value: Any) -> bool:
    """Return whether a value is the choice of a metric: a loss, a C and a score."""
    if not isinstance(value, dict) or set(value) != {"loss", "C", "score"}:
        return False
    return isinstance(value["loss"], str) and all(is_number(value[key]) for key in ("C", "score"))


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """Return the value as JSON stores it, or a marker if it has no such form."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Metric):
        return _name_of(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
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
