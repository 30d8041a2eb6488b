"""Thousands of hostile queries, each against J in whole numbers: the best ranking, its value, its loss, its gradient.

A longer run of random problems: RANKWISE_HOSTILE=100000 .venv/bin/python -m pytest tests/core -k long_run
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_hinge import ExactHinge, Judgement, judge
from hostile import FAMILIES, LOSSES, ROUND, SHAPES, Problem, problem

import rankwise as rw

TOL = 1e-9  # of max(1, |J|): of the value, and of what a ranking may be short of the best
LOSS_ATOL = 1e-9
GRADIENT_ULPS = 4.0
CUT = Fraction(1, 1 << 250)  # of what exact_hinge.py cuts off, more than enough
BLUR = 1e-12  # of the range of scores: sums of f_j from rank 1 on, as published
PER_FAMILY = 56  # of which every odd one meets another kind, every fourth is of one kind alone
PER_FAMILY_OF_LARGE = 1
PER_FAMILY_AND_METHOD = 7
LONG = int(os.environ.get("RANKWISE_HOSTILE", "200"))
LARGE = (65_535, 65_536, 70_000, 131_073)
DENSE = (20_000, 32_767, 32_768, 70_000)  # two of them for a family
MOST_POSITIVES = 1_000  # of a large problem: the exact solution takes O(P log N) whole numbers of many digits
FLOAT32_MAX = float(np.finfo(np.float32).max)


def exact_of(one: Problem) -> tuple[ExactHinge, Fraction]:
    exact = ExactHinge(one.scores, one.relevant, LOSSES[one.loss], one.scale)
    return exact, exact.objective(exact.best())


def judgements(one: Problem, methods: Iterable[str]) -> Iterator[tuple[str, Judgement]]:
    exact, best = exact_of(one)
    for method in methods:
        yield method, judge(exact, best, one.scores, one.relevant, one.solve(method=method))


def faults(found: Judgement, regret: float = 0.0) -> list[str]:
    """What is wrong with a result; regret: how much of it is allowed on top."""
    slack = TOL * max(1.0, abs(found.best))
    wrong = {
        f"the value is off by {found.value:.1e}": found.value > slack,
        f"the ranking is short of the best by {found.regret:.1e}": not -slack <= found.regret <= slack + regret,
        f"the loss is off by {found.lost:.1e}": found.lost > LOSS_ATOL,
        f"the gradient is off by {found.gradient:.1f} ulp": found.gradient > GRADIENT_ULPS,
        f"the gradient adds up to {found.sum:.1e}": found.sum > GRADIENT_ULPS,
        f"{found.sign} gradients have the wrong sign": found.sign > 0,
        f"{found.disorder} negatives are out of order": found.disorder > 0,
    }
    return [f"{what} (J = {found.best:.6g})" for what, is_wrong in wrong.items() if is_wrong]


def assert_solved(problems: Iterable[Problem], *methods: str, blur: float = 0.0) -> None:
    """All are looked at before any is complained of. blur: what part of the range of scores a method may lose."""
    wrong, count = [], 0
    for one in problems:
        count += 1
        regret = blur * (float(one.scores.max()) - float(one.scores.min()))
        for method, found in judgements(one, methods):
            wrong += [f"{method}: {what}: {one.told}" for what in faults(found, regret)]
    assert not wrong, "\n".join([f"{len(wrong)} faults in {count} problems", *wrong[:20]])


def tiny(seed: int, size: int) -> Iterator[Problem]:
    return (problem(FAMILIES[k % len(FAMILIES)], seed + k, n=2 + k % 7) for k in range(size))


def test_the_reference_finds_the_best_of_all_interleavings() -> None:
    for one in tiny(seed=0, size=300):
        exact, best = exact_of(one)
        assert abs(best - exact.by_enumeration()) <= CUT * max(1, abs(best)), one.told


@pytest.mark.parametrize("loss", LOSSES)
def test_the_reference_agrees_with_a_dynamic_programme(loss: str) -> None:
    for k, family in enumerate(FAMILIES):
        exact, best = exact_of(problem(family, k, n=10 + 2 * k)._replace(loss=loss))
        assert abs(best - exact.by_programme()) <= CUT * max(1, abs(best)), family


@pytest.mark.parametrize("loss", LOSSES)
def test_the_reference_is_the_definition(loss: str, objective: Any) -> None:
    for seed in range(30):
        one = problem("ordinary", seed, n=12)._replace(loss=loss)
        _, best = exact_of(one)
        found = one.solve(method="exhaustive")
        by_matrix = objective(one.scores.astype(float), one.relevant, LOSSES[loss], one.scale, found.interleaving)
        assert abs(by_matrix - float(best)) <= TOL * max(1.0, abs(by_matrix)), one.told


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_hostile_query_is_solved_to_the_last_digits(family: str) -> None:
    assert_solved((problem(family, seed) for seed in range(PER_FAMILY) if seed % 4 != 2), "auto", "quicksort")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_large_hostile_query_is_solved_to_the_last_digits(family: str) -> None:
    count = PER_FAMILY_OF_LARGE * (3 if family in ROUND else 1)
    sizes = [LARGE[(k + FAMILIES.index(family)) % len(LARGE)] for k in range(count)]
    assert_solved((problem(family, 2 * k, n=n, most_positives=MOST_POSITIVES) for k, n in enumerate(sizes)), "auto")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_large_hostile_query_of_many_positives_is_solved_as_by_algorithm_1(family: str) -> None:
    for seed, n in list(enumerate(DENSE))[FAMILIES.index(family) % 2 :: 2]:
        one = problem(family, seed, n=n)
        while one.relevant.sum() < n // 8:
            one = problem(family, (seed := seed + 100), n=n)
        found, paper = one.solve(method="auto"), one.solve(method="quicksort")
        assert abs(found.value - paper.value) <= TOL * max(1.0, abs(paper.value)), one.told
        ref = float(one.scores[one.relevant].max())
        offsets = one.scores.astype(np.float64) - ref
        spread = float(np.abs(offsets).max())
        by_gradient = one.scale * found.loss + float(found.gradient.astype(np.float64) @ offsets)
        assert abs(by_gradient - found.value) <= 1e-6 * max(1.0, spread, abs(found.value)), one.told


@pytest.mark.slow
def test_other_methods_solve_hostile_queries_too() -> None:
    some = (problem(family, k, most=130) for family in FAMILIES for k in range(PER_FAMILY_AND_METHOD))
    assert_solved(some, "bucketed", "mohapatra2014", "dynamic")


def test_methods_as_published_lose_no_more_than_their_sums_round() -> None:
    some = (problem(family, k, most=130) for family in FAMILIES for k in range(PER_FAMILY_AND_METHOD))
    assert_solved(some, "yue", "chakrabarti", blur=BLUR)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_few")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_hostile_queries_together_are_solved_as_each_alone(loss: str, dtype: Any) -> None:
    each = [problem(family, seed, most=600) for family in FAMILIES for seed in range(2)]
    each = [one._replace(loss=loss, scale=1.0) for one in each if one.scores.dtype == dtype]
    sizes = [one.scores.size for one in each]
    qid = np.repeat(np.arange(len(each)), sizes)
    scores, relevant = np.concatenate([one.scores for one in each]), np.concatenate([one.relevant for one in each])
    together = [rw.structured_hinge(scores, relevant, LOSSES[loss], qid=qid, n_threads=t) for t in (1, 2)]
    begin = 0
    for k, one in enumerate(each):
        _, best = exact_of(one)
        alone = one.solve()
        part = slice(begin, begin + sizes[k])
        begin += sizes[k]
        for found in together:
            assert abs(found.per_query.value[k] - float(best)) <= TOL * max(1.0, abs(float(best))), one.told
            np.testing.assert_allclose(
                found.gradient[part] * dtype(len(each)),
                alone.gradient,
                rtol=GRADIENT_ULPS * np.finfo(dtype).eps,
                err_msg=one.told,
            )


@pytest.mark.usefixtures("threads_for_few")
@pytest.mark.parametrize("family", ["ordinary", "cauchy", "ten values", "every magnitude", "an edge of octaves"])
def test_threads_change_nothing_about_a_large_hostile_query(family: str) -> None:
    one = problem(family, 0, n=140_001, most_positives=MOST_POSITIVES)
    single, double = one.solve(n_threads=1), one.solve(n_threads=2)
    assert single.value == double.value
    assert np.array_equal(single.gradient, double.gradient)


def test_extremes_that_are_ranked_right_do_not_hide_the_rest() -> None:
    # The positive at M and the negative at −M cost nothing. At 0.2 the other positive is above −0.3 by the margin 1/2,
    # and 0.1 gains more above it than it loses of F: 1/(PN) − 2·(0.2 − 0.1)/(PN).
    scores = np.float32([FLOAT32_MAX, 0.2, -0.5, 0.1, -0.3, -FLOAT32_MAX])
    found = rw.structured_hinge(scores, [1, 1, 0, 0, 0, 0], "auc")
    assert found.value == pytest.approx(1 / 8 - 2 * (0.2 - 0.1) / 8, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("most", [FLOAT32_MAX, 1e15, 1e9], ids=["float32 max", "1e15", "1e9"])
def test_random_queries_between_extremes_that_are_ranked_right(most: float) -> None:
    rng = np.random.default_rng(31)
    for k in range(120):
        n = int(rng.integers(4, 9))
        relevant = np.arange(n) < rng.integers(2, n - 1)
        scores = rng.normal(size=n) if k % 2 else rng.integers(-3, 4, n) * 0.25
        scores[0], scores[-1] = most, -most
        order = rng.permutation(n)
        scores = scores[order].astype((np.float32, np.float64)[k % 4 // 2])
        loss, scale = tuple(LOSSES)[k % len(LOSSES)], float(rng.choice([0.03, 1.0, 7.5]))
        best = float(ExactHinge(scores, relevant[order], LOSSES[loss], scale).by_enumeration())
        for method in ("auto", "quicksort", "mohapatra2014", "dynamic"):
            found = rw.structured_hinge(scores, relevant[order], LOSSES[loss], scale=scale, method=method)
            told = (method, k, scores, relevant[order], loss, scale)
            assert abs(found.value - best) <= TOL * max(1.0, abs(best)), told


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_an_edge_at_a_power_of_two_does_not_move_scores_across_it(seed: int, dtype: Any) -> None:
    # Every positive is above every negative by the margin 1/2 of AUC, or more.
    pos = np.r_[np.full(600, 524288.875), np.full(100, 1048576.0)]
    neg = np.r_[np.full(67_300, 524288.25), np.resize([-16384.0, 2.0**-22, 0.42, 14.89], 2000)]
    order = np.random.default_rng(seed).permutation(70_000)
    found = rw.structured_hinge(np.r_[pos, neg][order].astype(dtype), (np.arange(70_000) < 700)[order], "auc")
    assert found.value == pytest.approx(0.0, abs=TOL)
    assert found.loss == 0.0
    assert not found.gradient.any()


@pytest.mark.parametrize("offset", [1e8, -1e10, 1e15])
@pytest.mark.parametrize("n", [10, 300, 3000])
def test_a_common_offset_changes_nothing_but_the_digits_it_swallows(n: int, offset: float) -> None:
    rng = np.random.default_rng(32)
    for loss in LOSSES:
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n // 3))
        far = (rng.normal(size=n) + relevant) * 2 + offset
        near = far - offset
        assert np.array_equal(near + offset, far)  # so these are the very scores, less the offset
        exact = ExactHinge(near, relevant, LOSSES[loss], 1.0)
        best = float(exact.objective(exact.best()))
        for method in ("auto", "quicksort", "mohapatra2014", "dynamic", "yue"):
            found = rw.structured_hinge(far, relevant, LOSSES[loss], method=method)
            assert abs(found.value - best) <= TOL * max(1.0, abs(best)), (method, loss)


@pytest.mark.parametrize("method", ["auto", "quicksort", "mohapatra2014", "dynamic", "yue"])
@pytest.mark.parametrize(("dtype", "score"), [(np.float64, 1e300), (np.float64, -1e300), (np.float32, FLOAT32_MAX)])
def test_equal_scores_are_as_equal_at_the_limit_as_at_0(dtype: Any, score: float, method: str) -> None:
    for n, n_pos in [(2, 1), (9, 4), (17, 16), (500, 30), (5000, 100)]:
        relevant = np.arange(n) % n < n_pos
        for loss in LOSSES.values():
            here, there = (
                rw.structured_hinge(np.full(n, at, dtype), relevant, loss, method=method) for at in (0.0, score)
            )
            assert there.value == pytest.approx(here.value, abs=TOL)
            assert np.array_equal(there.gradient, here.gradient)


def test_a_long_run_of_random_problems() -> None:
    rng = np.random.default_rng(33)
    sizes = (100_000 if k % 1000 == 999 else 10_000 if k % 100 == 99 else 1_100 for k in range(LONG))
    families = [*FAMILIES, *SHAPES]
    some = (
        problem(str(rng.choice(families)), 1_000_000 + k, most=most, most_positives=MOST_POSITIVES)
        for k, most in enumerate(sizes)
    )
    assert_solved(some, "auto", "quicksort")
