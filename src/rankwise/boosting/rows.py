"""The arguments that LightGBM or XGBoost pass to an objective or a metric, in any of their forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.surrogates.base import take_scores

__all__ = ["Rows", "read"]


class Rows(NamedTuple):
    """Rows of a data set: scores (n,), labels (n,), and weights and sizes of groups if they are given.

    in_pairs: whether the caller expects a metric as a pair of name and value, as XGBoost does.
    """

    scores: NDArray[np.floating]
    labels: NDArray[Any]
    weight: NDArray[Any] | None
    group: NDArray[Any] | None
    in_pairs: bool


def read(first: Any, second: Any, weight: Any, group: Any) -> Rows:
    """Read (predictions, data set), the native form, or (labels, predictions, weight, group), that of scikit-learn.

    A data set is recognised by its methods, so neither library is imported: both have get_label, get_weight and
    get_group, and only XGBoost's DMatrix has num_row.
    """
    if hasattr(second, "get_label"):
        found = second.get_label(), second.get_weight(), second.get_group()
        return _as_rows(first, *found, in_pairs=hasattr(second, "num_row"))
    return _as_rows(second, first, weight, group, in_pairs=False)


def _as_rows(scores: Any, labels: Any, weight: Any, group: Any, in_pairs: bool) -> Rows:
    if labels is None:
        raise ValueError("the data set has no labels; pass grades, or 0 and 1, as label=")
    values = np.asarray(scores)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"predictions have shape {values.shape}; a ranking needs one score per row, so do not set num_class"
        )
    return Rows(take_scores(values)[0], np.asarray(labels), _given(weight), _given(group), in_pairs)


def _given(values: Any) -> NDArray[Any] | None:
    """Return an array or None. XGBoost passes an empty array for None."""
    array = None if values is None else np.asarray(values)
    return None if array is None or array.size == 0 else array
