"""RankSort and aLRP in the core equal the published loops, whatever the scores, the qualities and the width."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from detector_loops import alrp_by_loop, ramp, rank_sort_by_loop
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError
from rankwise.kernels import pairs
from rankwise.kernels.soft import LARGE, Softened
from rankwise.queries import as_queries, single_query
from rankwise.surrogates.rank_sort import SolvedParts, solve_alrp, solve_rank_sort

BATCHES = 400
ATOL, ATOL_FLOAT32 = 1e-10, 1e-5
RTOL_SUMS = 1e-12
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


def draw(rng: np.random.Generator, number: int) -> tuple[Array, Array, Array, float]:
    """Scores, qualities, localisation losses and a width; one positive, or no negatives, now and then."""
    n = int(np.exp(rng.uniform(0.0, np.log(1500.0 if number % 50 == 0 else 100.0))))
    y = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    y[0] = True
    quality = np.where(y, QUALITIES[number % len(QUALITIES)](rng, n), 0.0)
    return FAMILIES[number % len(FAMILIES)](rng, y), quality, rng.random(n), float(rng.choice([0.02, 0.5, 1.0, 20.0]))


def rank_sort(scores: Array, quality: Array, width: float) -> SolvedParts:
    return solve_rank_sort(scores, single_query(quality > 0), quality, width)


def alrp(scores: Array, quality: Array, losses: Array, width: float) -> SolvedParts:
    return solve_alrp(scores, single_query(quality > 0), losses, width)


def assert_equal_to_loop(found: SolvedParts, expected: tuple[Array, Array], atol: float = ATOL) -> None:
    np.testing.assert_allclose(found.values[:, 0], expected[0], rtol=0.0, atol=atol)
    np.testing.assert_allclose(found.gradients, expected[1], rtol=0.0, atol=atol)


@pytest.mark.slow
def test_rank_sort_equals_the_published_loop() -> None:
    rng = np.random.default_rng(0)
    for number in range(BATCHES):
        scores, quality, _, width = draw(rng, number)
        assert_equal_to_loop(rank_sort(scores, quality, width), rank_sort_by_loop(scores, quality, width))


@pytest.mark.slow
def test_alrp_equals_the_published_loop() -> None:
    rng = np.random.default_rng(1)
    for number in range(BATCHES):
        scores, quality, losses, width = draw(rng, number)
        assert_equal_to_loop(alrp(scores, quality, losses, width), alrp_by_loop(scores, quality > 0, losses, width))


def test_single_precision_has_what_it_can_hold() -> None:
    rng = np.random.default_rng(2)
    for number in range(50):
        scores, quality, losses, width = draw(rng, number)
        scores = scores.astype(np.float32)
        exact = scores.astype(np.float64)
        found = rank_sort(scores, quality, width), alrp(scores, quality, losses, width)
        assert [one.gradients.dtype for one in found] == [np.float32, np.float32]
        assert_equal_to_loop(found[0], rank_sort_by_loop(exact, quality, width), ATOL_FLOAT32)
        assert_equal_to_loop(found[1], alrp_by_loop(exact, quality > 0, losses, width), ATOL_FLOAT32)


@pytest.mark.parametrize("n_pos", [1, 60, LARGE])
def test_large_queries_equal_the_loop_too(n_pos: int) -> None:
    """LARGE positives have no negatives, and too many pairs for the loop: they equal themselves in another order."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.arange(LARGE) < n_pos)
    scores = rng.normal(size=LARGE) + y
    quality, losses = np.where(y, np.ceil(5.0 * rng.random(LARGE)) / 5.0, 0.0), rng.random(LARGE)
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
    assert_equal_to_loop(alrp(scores, quality, losses, 1.0), alrp_by_loop(scores, y, losses, 1.0))


def test_queries_are_solved_as_each_alone() -> None:
    rng = np.random.default_rng(4)
    parts = [draw(rng, number)[:3] for number in range(40)]
    parts.insert(7, (np.zeros(3), np.zeros(3), np.zeros(3)))  # no positives
    parts.insert(9, (np.zeros(0), np.zeros(0), np.zeros(0)))
    scores, quality, losses = (np.concatenate(one) for one in zip(*parts, strict=True))
    ends = np.cumsum([0, *(part[0].size for part in parts)])
    queries = as_queries(quality > 0, ends)
    together = solve_rank_sort(scores, queries, quality, 0.5, 2), solve_alrp(scores, queries, losses, 1.0, 2)
    for q, (own, t, lost) in enumerate(parts):
        expected = rank_sort_by_loop(own, t, 0.5), alrp_by_loop(own, t > 0, lost, 1.0)
        for found, (values, updates) in zip(together, expected, strict=True):
            np.testing.assert_allclose(found.values[:, q], values, rtol=0.0, atol=ATOL)
            np.testing.assert_allclose(found.gradients[:, ends[q] : ends[q + 1]], updates, rtol=0.0, atol=ATOL)


def test_the_localisation_part_is_the_mean_over_all_orders_of_positives_that_tie() -> None:
    scores, positive = np.array([0.5, 1.0, 0.5, 0.2, 0.5, 0.5]), np.array([1, 1, 1, 1, 0, 1]) > 0
    losses = np.array([0.1, 0.7, 0.3, 0.9, 5.0, 0.4])
    found = solve_alrp(scores, single_query(positive), losses, 0.5)
    others = scores[positive]
    h = ramp(others - others[:, None], 0.5) - 0.5 * np.eye(5)
    rank = 1.0 + h.sum(1) + ramp(0.5 - others, 0.5)
    tied, values = np.flatnonzero(others == 0.5), []
    for order in permutations(tied):
        ranked = np.array([1, *order, 3])  # 1.0, those that tie, 0.2
        values.append(np.mean(np.cumsum(losses[positive][ranked]) / rank[ranked]))
    np.testing.assert_allclose(found.values[1, 0], np.mean(values), rtol=0.0, atol=ATOL)
    assert np.ptp(values) > 0.01


def test_errors_are_handed_on_whole() -> None:
    rng = np.random.default_rng(5)
    for number in range(30):
        scores, quality, losses, width = draw(rng, number)
        gradients = rank_sort(scores, quality, width).gradients
        np.testing.assert_allclose(gradients.sum(1), 0.0, rtol=0.0, atol=ATOL)
        update = alrp(scores, quality, losses, width).gradients[0]
        np.testing.assert_allclose(update.sum(), 0.0, rtol=0.0, atol=ATOL)


def test_qualities_too_close_for_their_complements_are_told_apart() -> None:
    scores, quality = np.array([1.0, 0.0, -5.0]), np.array([1e-20, 2e-20, 0.0])
    key = pairs.dense_keys(quality[:2], np.array([0, 2]))
    assert key.tolist() == [0, 1]
    assert_equal_to_loop(rank_sort(scores, quality, 0.5), rank_sort_by_loop(scores, quality, 0.5))


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_sums_over_pairs_equal_their_definition(spread: float) -> None:
    rng = np.random.default_rng(6)
    for n in (1, 2, 17, 300):
        starts = np.array([0, n // 3, n // 3, n])
        level = np.concatenate([np.sort(rng.normal(size=b - a)) for a, b in pairwise(starts)])
        values, weight = rng.integers(0, 9, n) / 8.0, rng.random((2, n))
        soft = Softened(spread, starts, 1e6 + level, *[np.empty(0)] * 4)
        query = np.repeat(np.arange(3), np.diff(starts))
        h = ramp(soft.level[:, None] - soft.level, spread) * (query[:, None] == query)  # of row k and column i
        key = pairs.dense_keys(values, starts)
        lesser = h * (values[:, None] < values)
        rtol, atol = RTOL_SUMS, RTOL_SUMS * n
        np.testing.assert_allclose(pairs.sums_above(soft, weight), weight @ h, rtol, atol)
        np.testing.assert_allclose(pairs.sums_above_lesser(soft, key, weight), weight @ lesser, rtol, atol)
        np.testing.assert_allclose(pairs.sums_below_greater(soft, key, weight), weight @ lesser.T, rtol, atol)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e301])
@pytest.mark.parametrize("n", [5, LARGE])
@pytest.mark.parametrize("at_positive", [True, False])
def test_scores_that_are_no_numbers_are_refused(wrong: float, n: int, at_positive: bool) -> None:
    scores, quality = np.zeros(n), np.where(np.arange(n) < 2, 0.5, 0.0)
    scores[1 if at_positive else n - 1] = wrong
    for solve in (solve_rank_sort, solve_alrp):
        with pytest.raises(NotFiniteError):
            solve(scores, single_query(quality > 0), quality, 0.5)
