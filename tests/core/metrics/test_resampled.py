"""Metrics of samples drawn again, as often as is said."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.metrics import METRICS, resampled

RTOL = 1e-12


@pytest.mark.parametrize("name", METRICS)
def test_samples_count_as_often_as_they_were_drawn(name: str) -> None:
    rng = np.random.default_rng(3)
    scores, relevant = rng.integers(0, 9, 40).astype(float), rng.random(40) < 0.3  # with ties
    counts = rng.multinomial(40, np.full(40, 1.0 / 40.0), size=20)
    expected = [METRICS[name](np.repeat(scores, row), np.repeat(relevant, row)) for row in counts]
    np.testing.assert_allclose(resampled(name, scores, relevant, counts), expected, rtol=RTOL)


def test_a_draw_without_positives_has_no_value() -> None:
    found = resampled("ap", [2.0, 1.0], [True, False], [[1, 0], [0, 2], [1, 1]])
    assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 1], r"shape \(2,\).*a column for each of 2 samples"),
        ([[1, 1, 1]], r"shape \(1, 3\).*a column for each of 2 samples"),
        ([[1, -1]], "a number below 0"),
        ([[1, np.nan]], "or NaN"),
    ],
)
def test_counts_that_mean_nothing_are_refused(counts: list, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        resampled("ap", [2.0, 1.0], [True, False], counts)
