"""Small data to rank, in queries, in the forms of both libraries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray


class Data(NamedTuple):
    """Rows by ascending query: features, grades 0 to 3, the query of each row, sizes of queries."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    qid: NDArray[np.int64]
    group: NDArray[np.int64]

    def in_any_order(self, seed: int = 0) -> Data:
        """The same rows mixed up; group means nothing then."""
        order = np.random.default_rng(seed).permutation(self.y.size)
        return Data(self.X[order], self.y[order], self.qid[order], self.group)


def make(n_queries: int, seed: int) -> Data:
    """Queries of 3 to 40 rows; grades that two of five features tell, with some noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, 41, n_queries)
    qid = np.repeat(np.arange(n_queries), group)
    X = rng.normal(size=(qid.size, 5))
    y = np.clip(np.round(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=qid.size)), 0, 3)
    return Data(X, y, qid, group)


@pytest.fixture(scope="session")
def train() -> Data:
    return make(60, 0)


@pytest.fixture(scope="session")
def valid() -> Data:
    return make(40, 1)


class FakeDMatrix:
    """What an objective asks of XGBoost's DMatrix; absent fields are empty, as there."""

    def __init__(self, y: Any, group: Any = (), weight: Any = ()) -> None:
        self._fields = np.asarray(y, np.float32), np.asarray(group, np.int64), np.asarray(weight, np.float32)

    def num_row(self) -> int:
        return int(self._fields[0].size)

    def get_label(self) -> NDArray[np.float32]:
        return self._fields[0].copy()

    def get_group(self) -> NDArray[np.int64]:
        return self._fields[1]

    def get_weight(self) -> NDArray[np.float32]:
        return self._fields[2]


@pytest.fixture
def dmatrix() -> type[FakeDMatrix]:
    """For forms that are tested where XGBoost is not installed."""
    return FakeDMatrix
