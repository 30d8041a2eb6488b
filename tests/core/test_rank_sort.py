"""RankSort in the core equals the published loop, whatever the scores, the qualities and the width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rank_sort_loop import rank_sort_by_loop

from rankwise.arguments import NotFiniteError
from rankwise.kernels.soft import LARGE
from rankwise.queries import as_queries, single_query
from rankwise.surrogates.rank_sort import SolvedParts, solve_rank_sort

BATCHES = 400
ATOL, ATOL_FLOAT32 = 1e-10, 1e-5
Array = NDArray[Any]

FAMILIES: tuple[Callable[[np.random.Generator, Array], Array], ...] = (
    lambda rng, y: rng.normal(size=y.size) + y,
    lambda rng, y: rng.integers(-3, 4, y.size) * 0.5,
    lambda rng, y: 1e6 + rng.normal(size=y.size),
    lambda rng, y: rng.standard_cauchy(y.size),
    lambda rng, y: np.full(y.size, 0.3),
)
QUALITIES: tuple[Callable[[np.random.Generator, int], Array], ...] = (
    lambda rng, n: 1.0 - rng.random(n),
    lambda rng, n: np.ceil(4.0 * rng.random(n)) / 4.0,
    lambda rng, n: np.ones(n),
)


def draw(rng: np.random.Generator, number: int) -> tuple[Array, Array, float]:
    """Scores, qualities and a width; one positive, or no negatives, now and then."""
    n = int(np.exp(rng.uniform(0.0, np.log(1500.0 if number % 50 == 0 else 100.0))))
    y = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    y[0] = True
    quality = np.where(y, QUALITIES[number % len(QUALITIES)](rng, n), 0.0)
    return FAMILIES[number % len(FAMILIES)](rng, y), quality, float(rng.choice([0.02, 0.5, 1.0, 20.0]))


def rank_sort(scores: Array, quality: Array, width: float) -> SolvedParts:
    return solve_rank_sort(scores, single_query(quality > 0), quality, width)


def assert_equal_to_loop(found: SolvedParts, expected: tuple[Array, Array], atol: float = ATOL) -> None:
    np.testing.assert_allclose(found.values[:, 0], expected[0], rtol=0.0, atol=atol)
    np.testing.assert_allclose(found.gradients, expected[1], rtol=0.0, atol=atol)


@pytest.mark.slow
def test_rank_sort_equals_the_published_loop() -> None:
    rng = np.random.default_rng(0)
    for number in range(BATCHES):
        scores, quality, width = draw(rng, number)
        assert_equal_to_loop(rank_sort(scores, quality, width), rank_sort_by_loop(scores, quality, width))


def test_single_precision_has_what_it_can_hold() -> None:
    rng = np.random.default_rng(2)
    for number in range(50):
        scores, quality, width = draw(rng, number)
        scores = scores.astype(np.float32)
        exact = scores.astype(np.float64)
        found = rank_sort(scores, quality, width)
        assert found.gradients.dtype == np.float32
        assert_equal_to_loop(found, rank_sort_by_loop(exact, quality, width), ATOL_FLOAT32)


@pytest.mark.parametrize("n_pos", [1, 60, LARGE])
def test_large_queries_equal_the_loop_too(n_pos: int) -> None:
    """LARGE positives have no negatives, and too many pairs for the loop: they equal themselves in another order."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.arange(LARGE) < n_pos)
    scores = rng.normal(size=LARGE) + y
    quality = np.where(y, np.ceil(5.0 * rng.random(LARGE)) / 5.0, 0.0)
    if n_pos == LARGE:
        found = rank_sort(scores, quality, 0.5)
        order = np.argsort(scores)
        again = solve_rank_sort(scores[order], as_queries(y, np.array([0, LARGE])), quality[order], 0.5)
        np.testing.assert_allclose(found.gradients[1, order], again.gradients[1], rtol=0.0, atol=ATOL)
        np.testing.assert_allclose(found.values, again.values, rtol=0.0, atol=ATOL)
        assert found.values[1, 0] > 0.1
        assert not found.values[0].any()
        return
    assert_equal_to_loop(rank_sort(scores, quality, 0.5), rank_sort_by_loop(scores, quality, 0.5))


def test_queries_are_solved_as_each_alone() -> None:
    rng = np.random.default_rng(4)
    parts = [draw(rng, number)[:2] for number in range(40)]
    parts.insert(7, (np.zeros(3), np.zeros(3)))  # no positives
    parts.insert(9, (np.zeros(0), np.zeros(0)))
    scores, quality = (np.concatenate(one) for one in zip(*parts, strict=True))
    ends = np.cumsum([0, *(part[0].size for part in parts)])
    queries = as_queries(quality > 0, ends)
    found = solve_rank_sort(scores, queries, quality, 0.5, 2)
    for q, (own, t) in enumerate(parts):
        values, updates = rank_sort_by_loop(own, t, 0.5)
        np.testing.assert_allclose(found.values[:, q], values, rtol=0.0, atol=ATOL)
        np.testing.assert_allclose(found.gradients[:, ends[q] : ends[q + 1]], updates, rtol=0.0, atol=ATOL)


def test_qualities_too_close_for_their_complements_are_told_apart() -> None:
    scores, quality = np.array([1.0, 0.0, -5.0]), np.array([1e-20, 2e-20, 0.0])
    assert_equal_to_loop(rank_sort(scores, quality, 0.5), rank_sort_by_loop(scores, quality, 0.5))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e301])
@pytest.mark.parametrize("n", [5, LARGE])
@pytest.mark.parametrize("at_positive", [True, False])
def test_scores_that_are_no_numbers_are_refused(wrong: float, n: int, at_positive: bool) -> None:
    scores, quality = np.zeros(n), np.where(np.arange(n) < 2, 0.5, 0.0)
    scores[1 if at_positive else n - 1] = wrong
    with pytest.raises(NotFiniteError):
        rank_sort(scores, quality, 0.5)
