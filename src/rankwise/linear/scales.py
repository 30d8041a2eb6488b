"""Scales of features that a penalty sees as they are: too small to be squared, or far apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import min_max_axis

from rankwise.linear.features import as_features

__all__ = ["check_scales"]

# Features are looked at in so many blocks of so many rows: what a feature has elsewhere is not seen.
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


def check_scales(X: Any, estimator: str) -> None:
    """Refuse features that are too small to be squared; warn if they differ much in scale. X: dense, CSR or CSC."""
    low, high, filled = _looked_at(X)
    largest, varies = np.maximum(np.abs(low), np.abs(high)), high - low
    if largest.max(initial=0.0) < _SMALLEST and 0.0 < _largest(X) < _SMALLEST:
        raise ValueError(f"features are below {_SMALLEST:g}, which is too small to be squared; scale them first")
    used = np.flatnonzero((varies > _CONSTANT * largest) & (filled >= _FILLED))
    if used.size < 2:
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
    """Return each feature's least value, largest value and number of others than 0, in some rows."""
    n = X.shape[0]
    blocks = [slice(start, min(start + _ROWS, n)) for start in range(0, n, max(n // _BLOCKS, _ROWS))]
    parts: Any = (X[block] for block in blocks)
    if getattr(X, "format", "") == "csc":  # taking rows reads all entries, so this is done once
        parts = [X[np.concatenate([np.arange(block.start, block.stop) for block in blocks])]]
    low, high, filled = zip(*map(_ends, parts), strict=True)
    return np.min(low, axis=0), np.max(high, axis=0), np.sum(filled, axis=0)


def _ends(X: Any) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Return the same in all rows. Sparse features are seen from 0, because they are not centred."""
    if isinstance(X, np.ndarray):
        return X.min(axis=0), X.max(axis=0), np.count_nonzero(X, axis=0)
    low, high = min_max_axis(X, axis=0)
    return np.minimum(low, 0.0), np.maximum(high, 0.0), np.bincount(X.tocsr().indices, minlength=X.shape[1])
