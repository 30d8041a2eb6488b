"""The threshold of the best F1, against every threshold there is."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.linear.base import best_f1_threshold

ATOL = 1e-12


def f1_of(scores: np.ndarray, relevant: np.ndarray, threshold: float) -> float:
    called = scores > threshold
    true = np.count_nonzero(called & relevant)
    wrong = np.count_nonzero(called != relevant)
    return 2.0 * true / (2.0 * true + wrong) if true + wrong else 0.0


def best_f1(scores: np.ndarray, relevant: np.ndarray) -> float:
    return max(f1_of(scores, relevant, t) for t in [-np.inf, *scores])


FAMILIES = {
    "normal": lambda rng, y: rng.normal(size=y.size) + y,
    "reversed": lambda rng, y: rng.normal(size=y.size) - 3.0 * y,
    "integers": lambda rng, y: rng.integers(-2, 3, y.size).astype(float) + y,
    "constant": lambda rng, y: np.full(y.size, 0.1),
    "separated": lambda rng, y: rng.normal(size=y.size) + 30.0 * y,
    "neighbours in floating point": lambda rng, y: 1.0 + np.finfo(float).eps * rng.integers(0, 6, y.size),
    "tiny": lambda rng, y: 5e-324 * rng.integers(-3, 4, y.size),
    "huge": lambda rng, y: 1e308 * rng.choice([1.0, 1.1, 1.2, -1.0], y.size),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_other_threshold_has_a_higher_f1(name: str, rng: np.random.Generator) -> None:
    for n in [1, 2, 3, 4, 8, 30]:
        for _ in range(20):
            relevant = rng.random(n) < 0.4
            scores = FAMILIES[name](rng, relevant)
            threshold = best_f1_threshold(scores, relevant)
            assert f1_of(scores, relevant, threshold) == pytest.approx(best_f1(scores, relevant), abs=ATOL)


def test_it_lies_midway_between_two_scores_and_of_several_the_highest_is_taken() -> None:
    scores, relevant = np.array([4.0, 1.0, 3.0, 0.0]), np.array([True, False, True, False])
    assert best_f1_threshold(scores, relevant) == (3.0 + 1.0) / 2
    # Above 2.5: TP 1, FP 0, FN 1, F1 = 2/3. Above everything but −1: TP 2, FP 2, F1 = 4/6.
    scores, relevant = np.array([3.0, 2.0, 1.0, 0.0, -1.0]), np.array([True, False, False, True, False])
    assert best_f1_threshold(scores, relevant) == (3.0 + 2.0) / 2
