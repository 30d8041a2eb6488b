"""What are no bags is refused: which bag, which candidate, which feature, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import rankwise as rw
from rankwise.latent import Bags
from rankwise.latent.bags import as_bags

Array = NDArray[np.float64]


def masked(values: Array) -> Any:
    return np.ma.masked_array(values, values == values[0, 0])


def with_value(value: float, bag: int = 1, candidate: int = 1) -> list[Array]:
    bags = [np.arange(6.0).reshape(2, 3) + i for i in range(4)]
    bags[bag][candidate, 2] = value
    return bags


def broken_csr() -> Any:
    X = csr_matrix(np.ones((4, 3)))
    X.indices[5] = 10**6
    return X


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "empty bag": (lambda: [np.ones((2, 3)), np.ones((0, 3))], ValueError, r"bag 1 is empty; remove it"),
    "no bags": (lambda: [], ValueError, "bags is empty; pass at least one bag"),
    "widths": (lambda: [np.ones((2, 3)), np.ones((2, 4))], ValueError, r"bag 1 has 4 features, but bag 0 has 3"),
    "1-D bag": (
        lambda: [np.ones((2, 3)), np.ones(3)],
        ValueError,
        r"bag 1 must be a matrix .* got shape \(3,\)",
    ),
    "2-D array": (lambda: np.ones((4, 3)), ValueError, r"bags is an array of shape \(4, 3\); pass a list"),
    "objects": (
        lambda: [np.array([[1.0, None]], object)],
        TypeError,
        "bag 0 must be real numbers .* got dtype object",
    ),
    "text": (lambda: [np.array([["a", "b"]])], TypeError, "bag 0 must be real numbers .* got dtype <U1"),
    "a string": (lambda: "bags", TypeError, "bags must be a list .* got str"),
    "a generator": (lambda: (np.ones((1, 2)) for _ in range(3)), TypeError, "got generator"),
    "masked": (lambda: [np.ones((2, 2)), masked(np.arange(4.0).reshape(2, 2))], ValueError, r"bag 1 is masked at \(0"),
    "ragged": (lambda: [[[1.0, 2.0], [3.0]]], ValueError, "bag 0 is not"),
    "long doubles": (lambda: [np.ones((2, 2), np.longdouble)], TypeError, "at most 64 bits"),
    "no columns": (lambda: [np.ones((2, 0))], ValueError, "bag 0 must be a matrix"),
    "nan": (lambda: with_value(np.nan), ValueError, "bag 1, candidate 1: feature 2 is nan; replace it"),
    "inf": (lambda: with_value(np.inf, 3, 0), ValueError, "bag 3, candidate 0: feature 2 is inf"),
    "too large": (lambda: with_value(1.7e308, 2), ValueError, "too large"),
}


@pytest.mark.parametrize("wrong", REFUSED)
@pytest.mark.parametrize("init", ["mean", "first"])
def test_what_are_no_bags_is_refused_by_name(wrong: str, init: str) -> None:
    make, error, match = REFUSED[wrong]
    for model in (rw.LatentRankSVM(init=init), rw.LatentRankSVM(C=1.0, init=init), rw.LatentRankSVMCV(init=init, cv=2)):
        with pytest.raises(error, match=match), np.errstate(all="ignore"):
            model.fit(make(), [0, 1, 0, 1])


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_no_number_is_named_wherever_it_is_met(sparse: bool) -> None:
    fine, spoilt = with_value(1.0), with_value(np.nan, 2, 1)
    y = [0, 1, 0, 1]
    if sparse:
        fine, spoilt = ([csr_matrix(bag) for bag in bags] for bags in (fine, spoilt))
    model = rw.LatentRankSVM(C=1.0, fit_intercept=False).fit(fine, y)
    for use in (model.predict, model.best_candidate, model.candidate_scores, lambda bags: model.fit(bags, y)):
        with pytest.raises(ValueError, match="bag 2, candidate 1: feature 2 is nan"):
            use(spoilt)
    with pytest.raises(ValueError, match="bag 0, candidate 1: feature 2 is nan"):
        model.predict(as_bags(spoilt)[[2, 0]])


OFFSET_REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "not from 0": (np.ones((4, 2)), [1, 4], ValueError, "offsets go from 1 to 4; they must go from 0 to 4"),
    "short": (np.ones((4, 2)), [0, 3], ValueError, "offsets go from 0 to 3"),
    "long": (np.ones((4, 2)), [0, 2, 5], ValueError, "offsets go from 0 to 5"),
    "empty bag": (np.ones((4, 2)), [0, 2, 2, 4], ValueError, r"bag 1 is empty: offsets\[1:3\] is \[2, 2\]"),
    "backwards": (np.ones((4, 2)), [0, 3, 2, 4], ValueError, "bag 1 ends before it begins"),
    "none": (np.ones((4, 2)), [], ValueError, "offsets must be integers, one more than"),
    "one": (np.ones((0, 2)), [0], ValueError, "offsets must be integers, one more than"),
    "floats": (np.ones((4, 2)), [0.0, 4.0], ValueError, "offsets must be integers"),
    "two dimensions": (np.ones((4, 2)), [[0, 4]], ValueError, "offsets must be integers"),
    "vector": (np.ones(4), [0, 4], ValueError, r"features must be a matrix .* got shape \(4,\)"),
    "text": (np.array([["a"]]), [0, 1], TypeError, "features must be real numbers .* got dtype <U1"),
    "masked": (masked(np.arange(4.0).reshape(2, 2)), [0, 2], ValueError, "features is masked"),
    "broken csr": (broken_csr(), [0, 4], ValueError, "not a valid CSR matrix"),
    "none at all": (None, [0, 4], TypeError, "features must be an array"),
}


@pytest.mark.parametrize("wrong", OFFSET_REFUSED)
def test_offsets_that_do_not_fit_are_refused(wrong: str) -> None:
    features, offsets, error, match = OFFSET_REFUSED[wrong]
    with pytest.raises(error, match=match):
        Bags(features, offsets)


def test_indices_of_more_than_one_dimension_are_refused() -> None:
    bags = Bags(np.ones((6, 2)), [0, 2, 4, 6])
    for key in (np.array([[0, 1]]), 1.5, "a", (0, 1), [0.0, 1.0], np.ones(2, bool), [7]):
        with pytest.raises(IndexError):
            bags[key]
    assert len(bags[np.array([2, 0]), ...]) == 2  # as scikit-learn asks
