"""Scales of features that a penalty sees as they are: too small to be squared, or far apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import min_max_axis

from rankwise.linear.features import Vector, as_features

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


def check_scales(X: Any, estimator: str) -> None:
    """Refuse features that are too small to be squared; warn if they differ much in scale. X: dense, CSR or CSC."""
    seen = _some_rows(X)
    low, high = _ends(seen)
    largest, varies = np.maximum(np.abs(low), np.abs(high)), high - low
    if largest.max(initial=0.0) < _SMALLEST and 0.0 < _largest(X) < _SMALLEST:
        raise ValueError(f"features are below {_SMALLEST:g}, which is too small to be squared; scale them first")
    used = np.flatnonzero(varies > _CONSTANT * largest)
    if _apart(varies[used]) > np.log10(_APART):  # only then is it worth to count
        used = used[_filled(seen)[used] >= _FILLED]
    apart = _apart(varies[used])  # the ratio may overflow
    if apart <= np.log10(_APART):
        return
    small, large = used[np.argmin(varies[used])], used[np.argmax(varies[used])]
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


def _apart(varies: Vector) -> float:
    """Return how many powers of ten lie between the least and the largest range."""
    return float(np.log10(varies.max()) - np.log10(varies.min())) if varies.size else 0.0


def _some_rows(X: Any) -> list[Any]:
    """Return blocks of rows, all if they are few; views of a dense array, one block of sparse rows."""
    n = X.shape[0]
    blocks = [slice(start, min(start + _ROWS, n)) for start in range(0, n, max(n // _BLOCKS, _ROWS))]
    if isinstance(X, np.ndarray):
        return [X[block] for block in blocks]
    return [X[np.concatenate([np.arange(block.start, block.stop) for block in blocks])]]


def _ends(parts: list[Any]) -> tuple[Vector, Vector]:
    """Return each feature's least and largest value. Sparse features are seen from 0, because they are not centred."""
    if isinstance(parts[0], np.ndarray):
        ends = [(part.min(axis=0), part.max(axis=0)) for part in parts]
        return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    low, high = min_max_axis(parts[0], axis=0)
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _filled(parts: list[Any]) -> NDArray[np.int64]:
    """Return the number of values other than 0 of each feature."""
    if isinstance(parts[0], np.ndarray):
        return np.asarray(np.sum([np.count_nonzero(part, axis=0) for part in parts], axis=0))
    return np.bincount(parts[0].tocsr().indices, minlength=parts[0].shape[1])
