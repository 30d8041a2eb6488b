"""Any floats at all: a result that obeys the invariants, or an error that names the sample; no warning, no nonsense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rankwise as rw

RTOL = {8: 1e-9, 4: 1e-5}  # by the size of a score, of max(scale, Σ |gradient·score|)
TIE = 1e-13  # see docs/theory.md, Rounding
SUM_ATOL = {8: 1e-9, 4: 1e-4}
LIMIT = 1e300  # beyond it a float64 score is refused
LOSSES = ("ap", "ndcg", "mrr", "auc", "zero-one")
N_LARGE = 70_000  # two blocks of a large query

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def assert_sound(scores: np.ndarray, relevant: np.ndarray, loss: Any, scale: float, found: rw.HingeResult) -> None:
    gradient, s = found.gradient.astype(np.float64), scores.astype(np.float64)
    rtol = RTOL[scores.dtype.itemsize]
    size = max(1.0, scale, float(np.abs(gradient) @ np.abs(s)))
    slack = rtol * size
    assert np.isfinite(found.value)
    assert np.isfinite(gradient).all()
    assert 0.0 <= found.loss <= 1.0 + rtol
    assert found.value >= scale * rw.ranking_loss(scores, relevant, loss) - slack
    assert abs(found.value - scale * found.loss - gradient @ s) <= rtol * size
    if loss != "zero-one":
        assert abs(gradient.sum()) <= SUM_ATOL[scores.dtype.itemsize]
    assert found.gradient.dtype == scores.dtype


@st.composite
def any_query(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(0, 40))
    width = draw(st.sampled_from([32, 64]))
    elements = st.floats(width=width) | st.sampled_from([0.0, -0.0, 1.0, 2.0])
    return draw(hnp.arrays(f"f{width // 8}", n, elements=elements)), draw(hnp.arrays(bool, n))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(any_query(), st.sampled_from(LOSSES), st.sampled_from([0.0, 1.0, 1e-6, 1e6]))
def test_any_floats_give_a_sound_result_or_an_error(
    query: tuple[np.ndarray, np.ndarray], loss: str, scale: float
) -> None:
    scores, relevant = query
    limit = LIMIT if scores.dtype == np.float64 else np.finfo(np.float32).max
    wrong = np.flatnonzero(~(np.abs(scores) <= limit))
    if wrong.size:
        with pytest.raises(ValueError, match=rf"scores\[{wrong[0]}\] is .*: (not finite|too large)"):
            rw.structured_hinge(scores, relevant, loss, scale=scale)
        return
    found = rw.structured_hinge(scores, relevant, loss, scale=scale)
    if 0 < relevant.sum() < relevant.size:
        assert_sound(scores, relevant, loss, scale, found)
    else:
        assert found.value == 0.0


@pytest.mark.parametrize("method", ["auto", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti"])
@pytest.mark.parametrize("outlier", [1e6, 1e8, 1e10])
def test_samples_far_from_all_do_not_blur_the_others(outlier: float, method: str) -> None:
    # A positive is first and a negative last, and cost nothing. The negative at 0 gains 1/6 of AP above the positive at
    # 0.333, and loses 2·0.333/(PN) of F. Of 16 buckets, an edge is at 0.
    scores, relevant = [outlier, 0.333, 0.0, -15 * outlier], [True, True, False, False]
    found = rw.structured_hinge(scores, relevant, "ap", method=method)
    assert found.value == pytest.approx(1 - (1 / 1 + 2 / 3) / 2 - 2 * 0.333 / 4, abs=RTOL[8])


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.complex_numbers(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(JUNK | st.lists(JUNK, max_size=2), max_size=4) | JUNK, st.lists(JUNK, max_size=4) | JUNK)
def test_junk_gives_a_result_or_a_plain_error(scores: Any, relevant: Any) -> None:
    try:
        found = rw.structured_hinge(scores, relevant)
    except (ValueError, TypeError):
        return
    assert np.isfinite(found.value)
    assert found.gradient.shape == np.shape(scores)


SPREADS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "the least number": lambda rng, n: rng.integers(0, 5, n) * 5e-324,
    "subnormal": lambda rng, n: rng.normal(size=n) * 1e-310,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
    "the last bit": lambda rng, n: 1.0 + rng.integers(0, 4, n) * 2.0**-52,
    "huge": lambda rng, n: rng.uniform(-1, 1, n) * LIMIT,
    "a few huge among tiny": lambda rng, n: rng.random(n) * np.where(rng.random(n) < 0.05, 1e299, 1e-290),
    "every magnitude": lambda rng, n: 10.0 ** rng.uniform(-300, 299, n) * rng.choice([-1, 1], n),
    "one outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e299, rng.normal(size=n)),
    "a huge offset": lambda rng, n: 1e15 + rng.integers(0, 9, n),
    "a saturated sigmoid": lambda rng, n: 1 / (1 + np.exp(-rng.normal(34.0, 1.0, n))),
    "integers at 2^53": lambda rng, n: 2.0**53 + rng.integers(0, 9, n) * 2,
}


@pytest.mark.parametrize("n", [40, 5000, N_LARGE])
@pytest.mark.parametrize("spread", SPREADS)
def test_scores_of_any_magnitude_are_solved(spread: str, n: int, rng: np.random.Generator, draw_relevant: Draw) -> None:
    relevant = draw_relevant(rng, n // 50 + 3, n - n // 50 - 3)
    scores = SPREADS[spread](rng, n)
    if spread == "huge":
        most = np.finfo(np.float32).max
        single = np.append(scores / LIMIT * most, [most, -most]).astype(np.float32)
        both = np.append(relevant, [True, False])
        assert_sound(single, both, "ap", 1.0, rw.structured_hinge(single, both, "ap"))
    for loss in ("ap", "ndcg", "auc"):
        found = rw.structured_hinge(scores, relevant, loss)
        assert_sound(scores, relevant, loss, 1.0, found)
        other = rw.structured_hinge(scores, relevant, loss, method="mohapatra2014")
        size = max(1.0, float(np.abs(found.gradient) @ np.abs(scores)))
        assert abs(other.value - found.value) <= RTOL[8] * size, loss


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e100, 1e290])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc", "zero-one"])
def test_a_scale_of_any_magnitude_is_kept(
    loss: str, scale: float, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for size in [(3, 9), (50, 4000), (40, 40_000)]:
        relevant = draw_relevant(rng, *size)
        scores = rng.normal(size=relevant.size)
        found = rw.structured_hinge(scores, relevant, loss, scale=scale)
        size_of_terms = max(scale, 1.0) * RTOL[8]
        assert abs(found.value - scale * found.loss - found.gradient @ scores) <= size_of_terms
        most = scale * found.loss if scale > 1 else rw.structured_hinge(scores, relevant, loss, scale=0.0).value
        assert abs(found.value - most) <= (1e-6 if scale < 1 else 10.0) + size_of_terms
