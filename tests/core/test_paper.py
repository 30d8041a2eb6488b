"""The paper's worked values, its Figure 1, its counter-example, and the errata that change a result."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

import rankwise as rw

RTOL = 1e-12
THREE_DECIMALS = 5e-4

# The order x1, x3, x8, x4, x5, x2, x6, x7 of the paper's section 2: x1..x4 are positive.
EXAMPLE_ORDER = [1, 3, 8, 4, 5, 2, 6, 7]
EXAMPLE_SCORES = np.array([-1.0 - EXAMPLE_ORDER.index(x) for x in range(1, 9)])
EXAMPLE_RELEVANT = np.array([True] * 4 + [False] * 4)
EXAMPLE_ABOVE = [0, 0, 1, 2]  # negatives above the positives x1, x3, x4, x2
WORKED = {
    "ap": (0.146, 1 - (1 / 1 + 2 / 2 + 3 / 4 + 4 / 6) / 4),
    "ndcg": (0.056, 1 - (1 + 1 / log2(3) + 1 / log2(5) + 1 / log2(7)) / (1 + 1 / log2(3) + 1 / log2(4) + 1 / log2(5))),
}


@pytest.mark.parametrize("loss", WORKED)
def test_the_worked_example_is_the_number_in_the_text(loss: str) -> None:
    printed, exact = WORKED[loss]
    assert exact == pytest.approx(printed, abs=THREE_DECIMALS)
    assert rw.ranking_loss(EXAMPLE_SCORES, EXAMPLE_RELEVANT, loss) == pytest.approx(exact, rel=RTOL)


@pytest.mark.parametrize(("loss", "kind"), [("ap", rw.AveragePrecision()), ("ndcg", rw.NDCG())], ids=WORKED)
def test_the_worked_example_follows_from_counts_alone(loss: str, kind: rw.Loss) -> None:
    assert float(kind.of_counts(EXAMPLE_ABOVE, n_neg=4)) == pytest.approx(WORKED[loss][1], rel=RTOL)


# Figure 1: P = 2, N = 11. With AP, rank i + 1 beats rank i at j where s⁺_i − s*_j ≥ i·(N/2)·(1/(i+j−1) − 1/(i+j)), so
# 2 − 1.5 < 5.5/2 keeps j = 1 at rank 1; 2 − 1 ≥ 5.5/6 lifts j = 2; −0.3 < 11/110 keeps j = 9 at rank 2; 0 + 1 ≥ 11/132.
FIGURE_POSITIVES = [2.0, 0.0]
FIGURE_NEGATIVES = [1.5, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, -1.0, -2.0]
FIGURE_OPT = [1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3]
FIGURE_SCORES = np.array(FIGURE_POSITIVES + FIGURE_NEGATIVES)
FIGURE_RELEVANT = np.arange(13) < 2


@pytest.mark.parametrize("method", ["auto", "quicksort", "yue", "mohapatra2014", "dynamic", "exhaustive"])
def test_figure_1_has_the_ranks_of_the_text(method: str) -> None:
    ranking = rw.most_violating_ranking(FIGURE_SCORES, FIGURE_RELEVANT, "ap", method=method)
    assert ranking.ranks.tolist() == FIGURE_OPT


def test_figure_1_evaluates_6_of_11_negatives() -> None:
    assert rw.inference.count_work(FIGURE_SCORES, FIGURE_RELEVANT, "ap").evaluated == 6
    steps = rw.inference.trace(FIGURE_SCORES, FIGURE_RELEVANT, "ap")
    assert {step.m for step in steps if step.m > 0} == {1, 2, 3, 6, 9, 10}


def test_figure_1_makes_the_calls_of_the_text() -> None:
    steps = rw.inference.trace(FIGURE_SCORES, FIGURE_RELEVANT, "ap")
    calls = {tuple(step[:4]): step.opt for step in steps}
    assert steps[0] == rw.inference.Step(1, 11, 1, 3, m=6, opt=2)
    assert calls[1, 5, 1, 2] == 2  # opt_3
    assert calls[7, 11, 2, 3] == 2  # opt_9
    filled = {(step.left, step.right): step.opt for step in steps if step.m == 0}
    assert filled == {(4, 5): 2, (7, 8): 2, (11, 11): 3}


def test_figure_1_does_not_depend_on_the_order_of_the_negatives(rng: np.random.Generator) -> None:
    shuffled = rng.permutation(13)
    work = rw.inference.count_work(FIGURE_SCORES[shuffled], FIGURE_RELEVANT[shuffled], "ap")
    assert work.evaluated == 6


# The appendix's counter-example: negatives 3ε and ε, a positive 5ε, D(1) = D(2) = 1 and D(m) = 1/log2(m).
EPS = 0.01
COUNTER_SCORES = np.array([3 * EPS, EPS, 5 * EPS])
COUNTER_RELEVANT = np.array([False, False, True])
# J of c negatives above the positive: 1 − D(1 + c) + Σ_{j ≤ c} (s_j − 5ε).
COUNTER_J = [0.0, (1 - 1) + (3 - 5) * EPS, (1 - 1 / log2(3)) + (3 + 1 - 2 * 5) * EPS]


@pytest.mark.parametrize("method", ["auto", "bucketed", "quicksort", "yue", "mohapatra2014"])
def test_chakrabartis_discount_is_refused_by_methods_that_need_c2(method: str) -> None:
    with pytest.raises(rw.NotQSSuitableError, match=r"\(i, j\) = \(1, 1\)") as refused:
        rw.structured_hinge(COUNTER_SCORES, COUNTER_RELEVANT, rw.NDCG(discount="chakrabarti"), method=method)
    assert (refused.value.i, refused.value.j) == (1, 1)


def test_greedy_ranks_with_chakrabartis_discount_are_impossible() -> None:
    steps = rw.NDCG(discount="chakrabarti").steps(1, [1, 2], n_pos=1, n_neg=2)
    gain = 2 * (5 * EPS - np.array([3 * EPS, EPS])) / (1 * 2) + steps  # f_j(2) − f_j(1)
    assert gain == pytest.approx([2 * EPS + 0, 4 * EPS + 1 / log2(3) - 1], rel=RTOL)
    assert gain[0] > 0 > gain[1]  # opt_1 = 2 > opt_2 = 1


def test_exhaustive_search_solves_what_chakrabartis_greedy_does_not() -> None:
    loss = rw.NDCG(discount="chakrabarti")
    best = rw.structured_hinge(COUNTER_SCORES, COUNTER_RELEVANT, loss, method="exhaustive")
    greedy = rw.structured_hinge(COUNTER_SCORES, COUNTER_RELEVANT, loss, method="chakrabarti")
    assert best.value == pytest.approx(max(COUNTER_J), rel=RTOL)
    assert best.interleaving.pattern() == "--+"
    assert greedy.value == pytest.approx(COUNTER_J[0], abs=RTOL)
    assert greedy.value < best.value


def test_the_convex_discount_has_no_such_counter_example() -> None:
    best = rw.structured_hinge(COUNTER_SCORES, COUNTER_RELEVANT, "ndcg", method="exhaustive")
    greedy = rw.structured_hinge(COUNTER_SCORES, COUNTER_RELEVANT, "ndcg", method="chakrabarti")
    assert greedy.value == pytest.approx(best.value, rel=RTOL)


def _ap_step(i: np.ndarray, j: np.ndarray, n_pos: int, n_neg: int) -> np.ndarray:
    """δ_j(i+1) − δ_j(i) of AP as the appendix prints it: without the factor 1/P."""
    return (j - 1) / (j + i - 1) - j / (j + i)


def test_the_printed_derivative_of_ap_gives_other_rankings() -> None:
    n_pos = int(np.count_nonzero(FIGURE_RELEVANT))
    with_factor = rw.most_violating_ranking(FIGURE_SCORES, FIGURE_RELEVANT, "ap")
    without = rw.most_violating_ranking(FIGURE_SCORES, FIGURE_RELEVANT, "ap", scale=n_pos)
    assert with_factor.ranks.tolist() == FIGURE_OPT
    assert without.ranks.tolist() != FIGURE_OPT


def test_steps_of_ap_have_the_factor_the_appendix_lost() -> None:
    i, j = np.arange(1, 4), np.arange(1, 6)[:, None]
    assert rw.AveragePrecision().steps(i, j, 3, 5) == pytest.approx(_ap_step(i, j, 3, 5) / 3, rel=RTOL)
