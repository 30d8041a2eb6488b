"""Scales of features that a penalty sees as they are: too small to be squared, or far apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import as_features

__all__ = ["check_scales"]

# Dense and CSR features are looked at in so many blocks of so many rows: what a feature has elsewhere is not seen.
_BLOCKS, _ROWS = 16, 256
# On standardised data of which one feature was enlarged, AP fell from here on.
_APART = 1e3
# The square of a smaller feature has lost digits, or all of them.
_SMALLEST = 1e-150
# The range of a feature with fewer values other than 0 may be small by chance.
_FILLED = 10
# A feature whose range is below this part of its values is constant except for rounding.
_CONSTANT = 1e-12

Vector = NDArray[np.float64]


def check_scales(X: Any, estimator: str, warns: bool = True) -> None:
    """Refuse features that are too small to be squared; warn if they differ much in scale. X: dense, CSR or CSC."""
    low, high, filled = _looked_at(X)
    largest, varies = np.maximum(np.abs(low), np.abs(high)), high - low
    if largest.max(initial=0.0) < _SMALLEST and 0.0 < _largest(X) < _SMALLEST:
        raise ValueError(f"features are below {_SMALLEST:g}, which is too small to be squared; scale them first")
    used = np.flatnonzero((varies > _CONSTANT * largest) & (filled >= _FILLED))
    if not warns or used.size < 2:
        return
    small, large = used[np.argmin(varies[used])], used[np.argmax(varies[used])]
    apart = np.log10(varies[large]) - np.log10(varies[small])  # the ratio may overflow
    if apart <= np.log10(_APART):
        return
    scaler = "StandardScaler" if isinstance(X, np.ndarray) else "MaxAbsScaler"
    warnings.warn(
        f"features {small + 1} and {large + 1} differ in scale by a factor of about 10^{apart:.0f}, so the smaller one "
        f"hardly counts; scale the features, with make_pipeline({scaler}(), {estimator}(...)), or use LinearRanker, "
        "which scales them itself",
        UserWarning,
        stacklevel=3,
    )


def _largest(X: Any) -> float:
    """Return a largest score that is 0 or tiny only if all features are: of coefficients from 1 to 2."""
    coef = 1.0 + np.random.default_rng(0).random(X.shape[1])
    return float(np.abs(as_features(X).scores(coef)).max(initial=0.0))


def _looked_at(X: Any) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Return each feature's least value, largest value and number of others than 0, in some rows, of CSC in all."""
    n, d = X.shape
    dense = isinstance(X, np.ndarray)
    low, high, filled = np.full(d, np.inf if dense else 0.0), np.full(d, -np.inf if dense else 0.0), np.zeros(d, int)
    if getattr(X, "format", "") == "csc":
        blocks = [(X.data, np.repeat(np.arange(d), np.diff(X.indptr)))]
    else:
        step = max(n // _BLOCKS, _ROWS)
        parts = (X[start : start + _ROWS] for start in range(0, n, step))
        blocks = [] if dense else [(part.data, part.indices) for part in parts]
    for values, features in blocks:
        np.minimum.at(low, features, values)
        np.maximum.at(high, features, values)
        filled += np.bincount(features, minlength=d)
    for part in parts if dense else ():
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
        filled += np.count_nonzero(part, axis=0)
    return low, high, filled
