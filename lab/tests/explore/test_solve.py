"""What the interactive page shows: its numbers are the library's, and what cannot be answered is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rankwise_lab.explore.solve import LARGEST, LOSSES, MOST_SAMPLES, BadRequestError, Query, explain, read, solve

import rankwise as rw
from rankwise.metrics import as_loss

RTOL, ATOL = 1e-12, 1e-12
RANKING_LOSSES = [loss for loss in LOSSES if loss != "zero-one"]
EXAMPLE = {"scores": [2.0, 1.0, 0.5, 0.0], "relevant": [False, True, False, True]}


def queries(loss: str, count: int = 30) -> Iterator[Query]:
    """Random queries, half of them with ties."""
    rng = np.random.default_rng(20180618)
    for k in range(count):
        n_pos, n_neg = rng.integers(1, 9), rng.integers(1, 40)
        relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        scores = rng.normal(size=relevant.size) + 0.5 * relevant
        yield Query(np.round(scores, 0 if k % 2 else 2), relevant, loss, float(rng.choice([0.0, 0.3, 1.0, 3.0])))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_numbers_are_those_of_the_library(loss: str) -> None:
    for query in queries(loss):
        found, exact = explain(query), rw.structured_hinge(query.scores, query.relevant, loss, scale=query.scale)
        assert (found.value, found.violating.loss) == (exact.value, exact.loss)
        assert found.gradient == exact.gradient.tolist()
        assert found.violating.pattern == exact.interleaving.pattern()
        assert found.violating.above == exact.interleaving.above.tolist()
        assert found.predicted.loss == rw.ranking_loss(query.scores, query.relevant, loss)
        assert found.gap == pytest.approx(float(exact.gradient @ query.scores), rel=RTOL, abs=ATOL)


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_the_gap_is_that_of_f_between_the_most_violating_and_the_perfect_ranking(
    loss: str, objective: Callable[..., float]
) -> None:
    for query in queries(loss):
        ranking = rw.most_violating_ranking(query.scores, query.relevant, loss, scale=query.scale)
        exact = objective(query.scores, query.relevant, as_loss(loss), query.scale, ranking)
        assert explain(query).value == pytest.approx(exact, rel=RTOL, abs=ATOL)


@pytest.mark.parametrize("loss", LOSSES)
def test_both_rankings_have_every_sample_once_and_say_the_same_in_each_form(loss: str) -> None:
    for query in queries(loss):
        found = explain(query)
        assert np.all(np.diff(query.scores[found.predicted.order]) <= 0)
        for ranked in (found.predicted, found.violating):
            assert sorted(ranked.order) == list(range(query.scores.size))
            signs = "".join("+" if query.relevant[k] else "-" for k in ranked.order)
            assert signs == ranked.pattern
            place = {k: at for at, k in enumerate(ranked.order)}
            assert ranked.ranks == [1 + sum(place[p] < place[j] for p in found.positives) for j in found.negatives]
            assert ranked.above == [sum(place[j] < place[p] for j in found.negatives) for p in found.positives]
        if loss != "zero-one":
            exact = as_loss(loss).of_counts(found.predicted.above, len(found.negatives))
            assert found.predicted.loss == pytest.approx(float(exact), rel=RTOL, abs=ATOL)


def last_best(values: list[float]) -> int:
    """The last position of the greatest value, up to rounding."""
    array = np.array(values)
    return int(np.flatnonzero(array >= array.max() - ATOL * max(1.0, float(np.abs(array).max())))[-1])


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_f_m_is_greatest_at_opt_m_in_every_call(loss: str) -> None:
    searched = 0
    for query in queries(loss):
        for call in explain(query).calls or []:
            assert len(call.values) == (call.high - call.low + 1 if call.m else 1)
            assert call.low + last_best(call.values) == call.opt
            searched += call.m > 0
    assert searched > 100


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_the_calls_fill_every_rank_and_end_with_the_most_violating_ranking(loss: str) -> None:
    for query in queries(loss):
        found = explain(query)
        assert found.calls is not None
        ranks: dict[int, int] = {}
        for call in found.calls:
            for j in [call.m] if call.m else range(call.left, call.right + 1):
                assert j not in ranks
                ranks[j] = call.opt
        assert [ranks[j + 1] for j in range(len(found.negatives))] == found.violating.ranks


def test_the_0_1_loss_has_no_recursion() -> None:
    assert solve({**EXAMPLE, "loss": "zero-one"})["calls"] is None


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_downhill_goes_against_the_gradient(loss: str) -> None:
    query = next(queries(loss))
    found = explain(query)
    moved = np.array(found.downhill) - query.scores
    assert np.abs(moved).max() == pytest.approx(0.25)
    assert moved == pytest.approx(-np.array(found.gradient) * 0.25 / np.abs(found.gradient).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_most_and_the_greatest_that_is_taken_can_be_answered(loss: str) -> None:
    scores = [LARGEST if k % 3 else -LARGEST for k in range(MOST_SAMPLES)]
    found = solve({"scores": scores, "relevant": [k % 2 == 0 for k in range(MOST_SAMPLES)], "loss": loss, "scale": 1e6})
    assert json.loads(json.dumps(found, allow_nan=False)) == found


BAD: dict[str, tuple[Any, str]] = {
    "a list": ([], "the request is a list; send an object"),
    "null": (None, "the request is null"),
    "nothing": ({}, "scores is missing; send a list"),
    "unknown field": ({**EXAMPLE, "qid": []}, "unknown field 'qid'"),
    "scores no list": ({**EXAMPLE, "scores": 3}, "scores is a number; send a list"),
    "relevant no list": ({**EXAMPLE, "relevant": "+-"}, "relevant is a string; send a list"),
    "a string": ({**EXAMPLE, "scores": [1, 2, "3", 4]}, r"scores\[2\] is a string; send a number"),
    "a boolean": ({**EXAMPLE, "scores": [1, True, 3, 4]}, r"scores\[1\] is a boolean; send a number"),
    "a list in scores": ({**EXAMPLE, "scores": [1, 2, 3, [4]]}, r"scores\[3\] is a list"),
    "nan": ({**EXAMPLE, "scores": [1, 2, float("nan"), 4]}, r"scores\[2\] is not finite; send a number from"),
    "inf": ({**EXAMPLE, "scores": [float("-inf"), 2, 3, 4]}, r"scores\[0\] is not finite"),
    "too large": ({**EXAMPLE, "scores": [1, 2, 3, 1e7]}, r"scores\[3\] is out of range; send a number from -1000000"),
    "a huge integer": ({**EXAMPLE, "scores": [1, 2, 3, 10**400]}, r"scores\[3\] is out of range"),
    "relevance 1": ({**EXAMPLE, "relevant": [1, 0, 1, 0]}, r"relevant\[0\] is a number; send true for a positive"),
    "lengths": ({**EXAMPLE, "relevant": [True, False]}, "scores has 4 entries and relevant has 2; send one per sample"),
    "no samples": ({"scores": [], "relevant": []}, "relevant has no positive sample; add one"),
    "no positive": ({**EXAMPLE, "relevant": [False] * 4}, "relevant has no positive sample; add one"),
    "no negative": ({**EXAMPLE, "relevant": [True] * 4}, "relevant has no negative sample; add one"),
    "too many": ({"scores": [0] * 201, "relevant": [True] * 201}, "scores has 201 entries; send at most 200"),
    "unknown loss": ({**EXAMPLE, "loss": "map"}, "loss is 'map'; use one of ap, ndcg, mrr, auc, zero-one"),
    "loss a list": ({**EXAMPLE, "loss": ["ap"]}, "loss is a list; use one of"),
    "scale negative": ({**EXAMPLE, "scale": -0.1}, "scale is out of range; send a number from 0 to 1000000"),
    "scale inf": ({**EXAMPLE, "scale": float("inf")}, "scale is not finite"),
    "scale null": ({**EXAMPLE, "scale": None}, "scale is null; send a number"),
}


@pytest.mark.parametrize(("request_", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_by_what_is_wrong_and_what_to_do(request_: Any, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        solve(request_)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {"scores": JSON | st.lists(st.floats(), max_size=4), "relevant": JSON | st.lists(st.booleans(), max_size=4)},
        optional={"loss": JSON | st.sampled_from(LOSSES), "scale": JSON},
    )
    | JSON
)
def test_whatever_is_sent_is_a_query_or_a_bad_request(request_: Any) -> None:
    try:
        query = read(request_)
    except BadRequestError:
        return
    assert np.isfinite(query.scores).all()
    assert 0 < query.relevant.sum() < query.relevant.size == query.scores.size
    assert query.loss in LOSSES
