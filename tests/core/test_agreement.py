"""Exact methods agree at every size on every kind of scores, and J and its gradient behave as their definitions say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import rankwise as rw

RTOL = {np.float64: 1e-9, np.float32: 1e-5}  # of max(1, |J|)

LOSSES = ("ap", "ndcg", "mrr", "auc")
OWN = rw.DiscountedLoss(lambda k: 1 / k, lambda m: 1 / (m + 3.0) ** 0.7, name="own")
SIZES = [(1, 1), (1, 50), (50, 1), (3, 40), (60, 3000), (2000, 300), (100, 60_000)]
LARGE = (1000, 1_000_000)
YUE_STEPS = 2 * 10**7  # P·N up to which the slow baseline takes part

Family = Callable[[np.random.Generator, np.ndarray], np.ndarray]
Families = dict[str, Family]
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def methods(n_pos: int, n_neg: int) -> list[str]:
    slow = ["yue", "chakrabarti"] if n_pos * n_neg <= YUE_STEPS else []
    return ["bucketed", "quicksort", "mohapatra2014", "dynamic", *slow]


def named(size: tuple[int, int]) -> str:
    return "P{}-N{}".format(*size)


def assert_agree(scores: np.ndarray, relevant: np.ndarray, loss: Any, names: list[str], told: str = "") -> None:
    rtol = RTOL[scores.dtype.type]
    auto = rw.structured_hinge(scores, relevant, loss)
    wide = scores.astype(np.float64)
    sizes = np.abs(wide)
    for method in names:
        other = rw.structured_hinge(scores, relevant, loss, method=method)
        assert abs(other.value - auto.value) <= rtol * max(1.0, abs(auto.value)), (method, told)
        gradient = other.gradient.astype(np.float64)
        linear = other.loss + gradient @ wide
        size = np.abs(gradient) @ sizes
        assert abs(linear - other.value) <= rtol * max(1.0, size), (method, told)


@pytest.mark.parametrize("loss", [*LOSSES, OWN], ids=[*LOSSES, "own"])
@pytest.mark.parametrize("size", SIZES, ids=named)
def test_all_exact_methods_agree(
    size: tuple[int, int], loss: Any, families: Families, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for (k, name), (j, dtype) in product(enumerate(families), enumerate(RTOL)):
        if size == SIZES[-1] and (k + j + (loss == "ap")) % 2:  # of the largest, one dtype for a family and a loss
            continue
        relevant = draw_relevant(rng, *size)
        with np.errstate(over="raise"):
            scores = families[name](rng, relevant).astype(dtype)
        among = methods(*size) if loss in ("ap", "ndcg") else ["quicksort"]
        assert_agree(scores, relevant, loss, among, f"{name}, {dtype.__name__}")


@pytest.mark.slow
def test_all_exact_methods_agree_on_a_million_negatives(
    families: Families, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    relevant = draw_relevant(rng, *LARGE)
    for k, (name, family) in enumerate(families.items()):
        assert_agree(family(rng, relevant), relevant, ("ap", "ndcg")[k % 2], methods(*LARGE), name)


@pytest.mark.parametrize("loss", [*LOSSES, "zero-one"])
@pytest.mark.parametrize("size", [(4, 12), (20, 500), (30, 40_000)], ids=named)
def test_the_gradient_supports_the_hinge_from_below(
    size: tuple[int, int], loss: str, families: Families, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for name, family in families.items():
        relevant = draw_relevant(rng, *size)
        scores = family(rng, relevant)
        here = rw.structured_hinge(scores, relevant, loss)
        spread = max(float(np.quantile(scores, 0.9) - np.quantile(scores, 0.1)), 1e-3)
        for distance in (1e-3, 0.1, 1.0, 10.0):
            step = distance * spread * rng.normal(size=scores.size)
            there = rw.structured_hinge(scores + step, relevant, loss).value
            reached = here.value + here.gradient @ step
            # J is convex; both values round as their largest terms do.
            slack = RTOL[np.float64] * max(1.0, abs(there), abs(here.value))
            assert there >= reached - slack, (name, distance)
