"""Data that linear rankers are fitted to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from short_search import fewer_candidates
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

Data = tuple[NDArray[np.float64], NDArray[np.int64]]
Grouped = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def short_search() -> Iterator[None]:
    """LinearRanker tries a third of its candidates, in all tests of a module."""
    with fewer_candidates():
        yield


@pytest.fixture(scope="module")
def cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def grouped() -> Grouped:
    """Eights among digits, in twelve queries, shuffled: a problem on which C matters."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(3)
    rows = rng.permutation(y.size)[:600]
    return X[rows] / 16.0, (y[rows] == 8).astype(int), rng.permutation(600) % 12
