"""What holds for every metric that can be trained for, by every surrogate: of the registries, and of one's own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from graded_losses import by_levels
from numpy.typing import NDArray
from queries_alone import FALLING, mixed_queries
from rank_losses import OWN

import rankwise as rw
from rankwise.metrics import LOSSES
from rankwise.metrics.registry import as_loss
from rankwise.surrogates import SURROGATES

Array = NDArray[Any]
RTOL, ATOL = 1e-9, 1e-13
DIFFERENCE = 1e-6
N_LARGE = 40_000  # counts as large
WHOLE = [name for name, loss in LOSSES.items() if loss.cut != "always"]
CUT = [f"{name}@3" for name, loss in LOSSES.items() if loss.cut != "never"]
METRICS: dict[str, rw.Loss] = {name: as_loss(name) for name in WHOLE + CUT}
METRICS |= {"own": OWN, "falling": FALLING}
METRICS |= {"linear": rw.NDCG(k=5, gain="linear"), "square": rw.NDCG(gain=np.square)}
WAYS: dict[str, rw.Surrogate] = {
    "hinge": rw.Hinge(),
    "smooth": rw.Smooth(0.6),
    "smooth by thresholds": rw.Smooth(0.6, soft_ranks=False),
    "error-driven": rw.ErrorDriven(0.6),
    "not interpolated": rw.ErrorDriven(0.6, interpolate=False),
    "direct": rw.Direct(),
}


def accepts(way: str, metric: str) -> bool:
    try:
        WAYS[way].accepts(METRICS[metric])
    except ValueError:
        return False
    # The hinge of this one breaks (C2).
    return (way, metric) not in {("hinge", "falling"), ("direct", "falling")}


PAIRS = [(way, metric) for way in WAYS for metric in METRICS if accepts(way, metric)]
GRADED = [(way, metric) for way, metric in PAIRS if way != "direct" and not METRICS[metric].judges_labels]
every = pytest.mark.parametrize(("way", "metric"), PAIRS, ids=lambda name: name)
every_graded = pytest.mark.parametrize(("way", "metric"), GRADED, ids=lambda name: name)


def test_all_surrogates_are_here() -> None:
    assert {surrogate.name for surrogate in WAYS.values()} == set(SURROGATES)
    assert {way for way, _ in PAIRS} == set(WAYS)
    assert {metric for _, metric in PAIRS} == set(METRICS)


def evaluate(way: str, metric: str, *args: Any, **options: Any) -> rw.Result:
    return rw.evaluate(WAYS[way], *args[:2], METRICS[metric], **options)


def binary(rng: np.random.Generator, n: int, tied: bool = False) -> tuple[Array, Array]:
    y = rng.permutation(np.arange(n) < max(n // 5, 1))
    s = rng.normal(size=n) + y
    return (np.round(2.0 * s) / 2.0 if tied else s), y


def assert_alone(way: str, metric: str, s: Array, truth: Array, qid: Array, dtype: Any = np.float64) -> None:
    """Assert that each query is as by itself, and that means are over the queries that count."""
    s = s.astype(dtype)
    found, skipped = (evaluate(way, metric, s, truth, qid=qid, empty=empty) for empty in ("zero", "skip"))
    n_queries, counted = found.per_query.qid.size, 0
    assert np.array_equal(found.per_query.qid, np.unique(qid))
    for q, name in enumerate(found.per_query.qid):
        own = qid == name
        alone = evaluate(way, metric, s[own], truth[own])
        assert found.per_query.value[q] == pytest.approx(alone.value, rel=RTOL, abs=ATOL), truth[own]
        assert found.per_query.loss[q] == pytest.approx(alone.loss, rel=RTOL, abs=ATOL)
        assert way != "hinge" or found.per_query.value[q] == alone.value
        rtol = 10 * RTOL if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(found.gradient[own] * n_queries, alone.gradient, rtol=rtol, atol=rtol * 1e-3)
        assert found.per_query.n_pos[q] == np.count_nonzero(truth[own])
        assert found.per_query.n_neg[q] == np.count_nonzero(truth[own] == 0)
        counted += np.unique(truth[own]).size > 1
    assert 0 < counted < n_queries
    assert found.value == pytest.approx(found.per_query.value.mean(), rel=RTOL)
    assert skipped.value == pytest.approx(found.value * n_queries / counted, rel=RTOL)
    with pytest.raises(ValueError, match="so it has no ranking loss"):
        evaluate(way, metric, s, truth, qid=qid, empty="error")


@every
def test_queries_in_any_order_are_as_each_alone(way: str, metric: str, rng: np.random.Generator) -> None:
    sizes = np.append(rng.integers(1, 60, 30), N_LARGE)
    qid = rng.permutation(np.repeat(rng.permutation(31) * 3, sizes))
    truth = rng.random(qid.size) < rng.choice([0.02, 0.3, 0.7], 31)[qid // 3]
    truth[qid == 6], truth[qid == 9] = True, False
    assert_alone(way, metric, np.round(rng.normal(size=qid.size), 2), truth, qid)
    assert_alone(way, metric, rng.normal(size=qid.size), truth, qid, np.float32)


@every_graded
def test_graded_queries_are_as_each_alone(way: str, metric: str, rng: np.random.Generator) -> None:
    for number in range(4):
        assert_alone(way, metric, *mixed_queries(rng, whole=number % 2 == 0))


@every_graded
def test_one_grade_beside_0_is_as_1_whatever_it_is_worth(way: str, metric: str, rng: np.random.Generator) -> None:
    s, y = rng.normal(size=60), rng.random(60) < 0.4
    qid = np.arange(60) // 12
    expected = evaluate(way, metric, s, y, qid=qid)
    for grades in (2.0 * y, np.where(y, 2.5 + qid, 0.0), y.astype(int), y.astype(np.float32), y.tolist()):
        found = evaluate(way, metric, s, grades, qid=qid)
        np.testing.assert_allclose(found.per_query.value, expected.per_query.value, rtol=RTOL, atol=ATOL)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=RTOL, atol=ATOL)


@every_graded
def test_grades_are_a_weighted_mean_over_thresholds(way: str, metric: str, rng: np.random.Generator) -> None:
    loss = METRICS[metric]
    if way == "smooth":  # soft ranks of all samples instead: see test_grades.py
        way = "smooth by thresholds"
    for grades in (rng.integers(0, 5, 30) * 1.0, np.round(rng.exponential(1.0, 30), 1) + 0.5):
        s = rng.normal(size=30)

        def parts(truth: Array, s: Array = s) -> Array:
            found = evaluate(way, metric, s, truth)
            return np.array([found.value, found.loss, *found.gradient])

        np.testing.assert_allclose(parts(grades), by_levels(grades, loss, parts), rtol=1e-8, atol=ATOL)


@every
def test_neither_the_order_of_rows_nor_threads_change_anything(
    way: str, metric: str, rng: np.random.Generator, request: pytest.FixtureRequest
) -> None:
    if metric != "zero-one":  # it uses no threads
        request.getfixturevalue("threads_for_few")
    for n, tied in product((60, N_LARGE), (False, True)):
        s, y = binary(rng, n, tied)
        order, qid = rng.permutation(n), rng.integers(0, n // 20, n)
        graded = [y * rng.integers(1, 4, n)] * ((way, metric) in GRADED)
        for ids, truth in product((None, qid), (y, *graded)):
            found = evaluate(way, metric, s, truth, qid=ids)
            threads = evaluate(way, metric, s, truth, qid=ids, n_threads=3)
            assert found.value == threads.value
            np.testing.assert_array_equal(found.gradient, threads.gradient)
            moved = evaluate(way, metric, s[order], truth[order], qid=None if ids is None else ids[order])
            assert moved.value == pytest.approx(found.value, rel=RTOL)
            np.testing.assert_allclose(moved.gradient, found.gradient[order], rtol=RTOL, atol=1e-15)


@every
def test_gradients_have_their_signs_and_equal_samples_share_them(
    way: str, metric: str, rng: np.random.Generator
) -> None:
    loss = METRICS[metric]
    for n, tied in product((30, N_LARGE), (False, True)):
        s, y = binary(rng, n, tied)
        found = evaluate(way, metric, s, y)
        gradient = found.gradient
        assert np.abs(gradient).max() > 0.0 or metric != "auc"
        if not loss.judges_labels and loss.name != "falling":
            assert abs(gradient.sum()) <= 1e-10
        if way != "direct":
            assert (gradient[y] <= 0.0).all()
            assert (gradient[~y] >= 0.0).all()
        for side in (y, ~y):
            at = np.argsort(s[side], kind="stable")
            level, own = s[side][at], gradient[side][at]
            assert np.ptp(own[level == level[level.size // 2]]) <= 1e-17
        shifted = evaluate(way, metric, s + 64.0, y)
        if not loss.judges_labels and tied:  # the shift is exact
            np.testing.assert_allclose(shifted.gradient, gradient, rtol=1e-7, atol=1e-15)
            assert shifted.value == pytest.approx(found.value, rel=RTOL)


@pytest.mark.parametrize(("way", "metric"), [pair for pair in PAIRS if WAYS[pair[0]].is_derivative])
def test_the_gradient_is_that_of_central_differences(way: str, metric: str, rng: np.random.Generator) -> None:
    truths = [binary(rng, 24)[1], rng.permutation(np.arange(24) % 4) * 1.0]
    for truth in truths[: 2 - METRICS[metric].judges_labels]:
        s = 2.0 * rng.normal(size=24)
        found = evaluate(way, metric, s, truth).gradient
        for k in range(24):
            move = DIFFERENCE * (np.arange(24) == k)
            up, down = (evaluate(way, metric, s + sign * move, truth).value for sign in (1.0, -1.0))
            assert found[k] == pytest.approx((up - down) / (2.0 * DIFFERENCE), abs=1e-7), k


@pytest.mark.parametrize(("way", "metric"), [pair for pair in PAIRS if pair[0] != "error-driven"])
def test_values_are_beside_the_loss(way: str, metric: str, rng: np.random.Generator) -> None:
    """Above it, if the surrogate is convex; at it, if it is the loss itself or the width falls."""
    loss, surrogate = METRICS[metric], WAYS[way]
    truths = [binary(rng, 50)[1], rng.permutation(np.arange(50) % 4) * 1.0]
    for truth in truths[: 1 + ((way, metric) in GRADED)]:
        s = rng.permutation(50) / 7.0 - 3.0
        lost = rw.ranking_loss(s, truth, loss)
        if not surrogate.is_convex:
            near = surrogate if surrogate.width is None else replace(surrogate, width=1e-9)
            assert rw.evaluate(near, s, truth, loss).value == pytest.approx(lost, rel=1e-7, abs=1e-9)
            continue
        for scale in (0.1, 1.0, 30.0):
            assert rw.structured_hinge(s, truth, loss, scale=scale).value >= scale * lost - RTOL
        apart = rw.structured_hinge(1e4 * np.where(truth > 0, truth, -1.0), truth, loss)
        assert (apart.value, apart.loss, np.abs(apart.gradient).max()) == (0.0, 0.0, 0.0)


@every
def test_a_score_that_is_not_finite_is_named(way: str, metric: str, rng: np.random.Generator) -> None:
    for n in (9, N_LARGE):
        relevant = np.arange(n) % 4 == 1
        graded = [relevant * 2.0, np.full(n, 3.0)] * ((way, metric) in GRADED)
        for k, ids, truth in product((0, 1, n - 1), (None, np.arange(n) % 3), (relevant, np.zeros(n, bool), *graded)):
            s, bad = rng.normal(size=n), rng.choice([np.nan, np.inf, -np.inf, 1e301])
            s[k] = bad
            said = "too large" if np.isfinite(bad) else "not finite"
            with pytest.raises(ValueError, match=rf"scores\[{k}\] is .*: {said}"):
                evaluate(way, metric, s, truth, qid=ids)


@every
def test_a_query_with_nothing_to_rank_is_zero_or_refused(way: str, metric: str) -> None:
    scores = np.array([0.5, 2.0, -1.0, 0.25], np.float32)
    graded = [np.full(4, 3.0)] * ((way, metric) in GRADED)
    for truth in (np.zeros(4, bool), np.ones(4, bool), np.zeros(0, bool), *graded):
        s = scores[: truth.size]
        for empty in ("zero", "skip"):
            found = evaluate(way, metric, s, truth, empty=empty)
            assert (found.value, found.loss, found.per_query) == (0.0, 0.0, None)
            assert found.gradient.tolist() == [0.0] * truth.size
            assert found.gradient.dtype == np.float32
            assert rw.ranking_loss(s, truth, METRICS[metric], empty=empty) == 0.0
        has = "no two different grades" if truth.dtype != bool else f"{truth.sum()} positives and {(~truth).sum()} neg"
        for call in (evaluate, lambda way, metric, *args, **kwargs: rw.ranking_loss(*args, METRICS[metric], **kwargs)):
            with pytest.raises(ValueError, match=rf"the query has {has}.*remove it, or pass empty='zero'"):
                call(way, metric, s, truth, empty="error")
    many = evaluate(way, metric, [1.0, 2.0], [True, False], qid=["a", "b"], empty="skip")
    assert many.value == 0.0
    assert not many.gradient.any()


@every
def test_inputs_are_never_written_to_and_gradients_have_their_type(
    way: str, metric: str, rng: np.random.Generator
) -> None:
    for dtype, ids in product((np.float64, np.float32, np.float16, np.longdouble), (None, np.arange(N_LARGE) % 7)):
        s, y = binary(rng, N_LARGE)
        s = np.round(s, 2).astype(dtype)
        given = s, y, ids
        kept = [None if array is None else array.copy() for array in given]
        first = evaluate(way, metric, s, y, qid=ids)
        rw.ranking_loss(s, y, METRICS[metric], qid=ids)
        for array, before in zip(given, kept, strict=True):
            assert array is None or np.array_equal(array, before)
            if array is not None:
                array.flags.writeable = False
        again = evaluate(way, metric, s, y, qid=ids)
        assert again.value == first.value
        np.testing.assert_array_equal(again.gradient, first.gradient)
        assert first.gradient.dtype == (np.float64 if dtype == np.longdouble else dtype)
        assert not first.gradient.flags.writeable
