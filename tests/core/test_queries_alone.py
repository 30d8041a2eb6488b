"""The loss of a query depends on that query alone: on no grade, size or score of the others in the call."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from queries_alone import LOSSES, ONE_GAIN, mixed_queries

import rankwise as rw

RTOL, ATOL = 1e-9, 1e-13
FUNCTIONS: dict[str, Any] = {
    "hinge": rw.structured_hinge,
    "smooth": rw.smooth_loss,
    "error-driven": rw.error_driven_loss,
    "not interpolated": partial(rw.error_driven_loss, interpolate=False),
}


def without_driven_f1(kind: str) -> list[str]:
    return [name for name in LOSSES if name != "f1" or kind in ("hinge", "smooth")]


@pytest.mark.parametrize(
    ("kind", "loss"), [(kind, loss) for kind in FUNCTIONS for loss in without_driven_f1(kind)], ids=str
)
def test_each_query_of_a_graded_call_is_as_by_itself(kind: str, loss: str, rng: np.random.Generator) -> None:
    function = FUNCTIONS[kind]
    for number in range(4):
        s, grades, qid = mixed_queries(rng, whole=number % 2 == 0)
        found = function(s, grades, LOSSES[loss], qid=qid)
        n_queries = found.per_query.qid.size
        for place, q in enumerate(found.per_query.qid):
            own = qid == q
            alone = function(s[own], grades[own], LOSSES[loss])
            assert found.per_query.value[place] == pytest.approx(alone.value, rel=RTOL, abs=ATOL), grades[own]
            np.testing.assert_allclose(found.gradient[own] * n_queries, alone.gradient, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(
    ("kind", "loss"), [(kind, loss) for kind in FUNCTIONS for loss in without_driven_f1(kind)], ids=str
)
def test_one_grade_beside_0_is_as_1_whatever_it_is_worth(kind: str, loss: str, rng: np.random.Generator) -> None:
    s, y = rng.normal(size=60), rng.random(60) < 0.4
    qid = np.arange(60) // 12
    expected = FUNCTIONS[kind](s, y, LOSSES[loss], qid=qid)
    for grades in (2.0 * y, np.where(y, 0.5 + qid, 0.0)):
        found = FUNCTIONS[kind](s, grades, LOSSES[loss], qid=qid)
        np.testing.assert_allclose(found.per_query.value, expected.per_query.value, rtol=RTOL)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=RTOL, atol=ATOL)


def test_grades_that_a_gain_makes_equal_are_one_grade(rng: np.random.Generator) -> None:
    s, grades = rng.normal(size=40), rng.integers(0, 4, 40)
    binary = [rw.smooth_loss(s, grades > 1, ONE_GAIN), rw.smooth_loss(s, grades, ONE_GAIN)]
    assert binary[0].value == binary[1].value > 0.0
    np.testing.assert_array_equal(binary[0].gradient, binary[1].gradient)
    nothing = rw.smooth_loss(s, 2 + grades, ONE_GAIN)  # all are worth the same
    assert nothing.value == 0.0
    assert not nothing.gradient.any()


def test_a_score_that_is_not_finite_is_named_in_a_call_with_both_kinds() -> None:
    for bad in (1, 4):
        scores: NDArray[Any] = np.zeros(6)
        scores[bad] = np.nan
        with pytest.raises(ValueError, match=rf"scores\[{bad}\] is nan"):
            rw.smooth_loss(scores, [0, 2, 0, 0, 1, 2], "ndcg", qid=[0, 0, 0, 1, 1, 1])
