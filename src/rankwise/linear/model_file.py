"""Linear rankers in model files: the parameters as plain data, what was learnt as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.io.models import ModelFile, ModelFileError, write_model
from rankwise.losses import Loss, as_loss

__all__ = ["Linear", "read_linear", "write_linear"]

# What is learnt: kept as an array, or as a number, truth value or dictionary of numbers.
_ARRAYS = ("coef_", "intercept_", "classes_", "feature_names_in_", "Cs_", "scores_", "starts_")
_BOUNDS = ("objective_", "dual_", "gap_", "n_iter_", "converged_")
_PLAIN = ("n_features_in_", *_BOUNDS, "timing_", "C_", "loss_", "best_score_")
_HISTORY = "history."
_NEEDED = ("coef_", "intercept_", "classes_")


@dataclass(frozen=True)
class Linear:
    """A stored linear ranker. note: what the writer added of its own."""

    params: dict[str, Any]
    attributes: dict[str, Any]
    note: dict[str, Any] = field(default_factory=dict)


def write_linear(path: str | Path, kind: str, model: Any, note: Mapping[str, Any] | None = None) -> None:
    """Write a fitted ranker. A loss is kept by its name; a parameter that is not plain data is left out."""
    params = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    arrays = {name: _storable(getattr(model, name)) for name in _ARRAYS if hasattr(model, name)}
    arrays |= {_HISTORY + name: values for name, values in model.history_.items()}
    header = {
        "params": {name: value for name, value in params.items() if value is not _NOT_PLAIN},
        "left_out": sorted(name for name, value in params.items() if value is _NOT_PLAIN),
        "learnt": {name: _plain(getattr(model, name)) for name in _PLAIN if hasattr(model, name)},
        "note": dict(note or {}),
    }
    write_model(path, kind, header, arrays)


def read_linear(file: ModelFile, path: str | Path, known: set[str]) -> Linear:
    """A stored ranker from its file, checked to hold together. known: the parameters that its class takes."""
    arrays, header = file.arrays, file.header
    try:
        params, learnt, note = dict(header["params"]), dict(header["learnt"]), dict(header["note"])
        coef, intercept, classes = (arrays[name] for name in _NEEDED)
        d = learnt["n_features_in_"]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: a linear model without {error}; save it again") from None
    whole = all(part.dtype == np.float64 and np.isfinite(part).all() for part in (coef, intercept))
    if not whole or coef.shape != (1, d) or intercept.shape != (1,) or classes.shape != (2,):
        raise ModelFileError(f"{path}: coefficients, intercept and classes do not fit together; save the model again")
    names = arrays.get("feature_names_in_")
    if names is not None and names.shape != (d,):
        raise ModelFileError(f"{path}: {names.size} feature names for {d} features; save the model again")
    strange = sorted(set(params) - known)
    if strange:
        raise ModelFileError(f"{path}: unknown parameter {strange[0]!r}; it was written by another version of rankwise")
    attributes: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
    if names is not None:
        attributes["feature_names_in_"] = names.astype(object)
    attributes |= {name: learnt[name] for name in _PLAIN if name in learnt}
    start = len(_HISTORY)
    attributes["history_"] = {name[start:]: values for name, values in arrays.items() if name.startswith(_HISTORY)}
    return Linear(params, attributes, note)


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """The value as JSON has it, or a mark that it has no such form."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Loss):
        return _name_of(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return _NOT_PLAIN if any(part is _NOT_PLAIN for part in parts) else parts
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else _NOT_PLAIN


def _name_of(loss: Loss) -> str:
    """The name of a loss, or its form where the name is that of another: a model is not refitted to a wrong one."""
    try:
        named = as_loss(loss.name)
    except ValueError:
        return loss.name
    return loss.name if repr(named) == repr(loss) else repr(loss)


def _storable(values: Any) -> Any:
    """Names as fixed-width text: object arrays are not stored."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array
