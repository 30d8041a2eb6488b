"""Scores in several parts, in this process: what the parts find together is what one machine finds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dask_problems import InProcess
from numpy.typing import NDArray

import rankwise as rw
from rankwise.dask.functions import hinge_of, precision_of
from rankwise.dask.plan import Labelled
from rankwise.distributed.exchange import Traffic
from rankwise.distributed.part import Large, Members, Part, divide
from rankwise.distributed.smooth import solve_smooth
from rankwise.metrics.registry import as_loss, as_metric

ATOL = 1e-12
KINDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "few": lambda rng, n: rng.integers(-1, 2, n),
    "equal": lambda rng, n: np.full(n, 0.25),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "scaled": lambda rng, n: np.exp(8.0 * rng.normal(size=n)),
    "clustered": lambda rng, n: np.round(rng.normal(size=n)) + 1e-9 * rng.normal(size=n),
}


def draw(kind: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(KINDS[kind](rng, n), np.float64)


def parted(scores: Any, truth: Any, cuts: Any, qid: Any = None) -> InProcess:
    bounds = list(pairwise([0, *cuts, scores.size]))
    states = [Labelled(k, truth[a:b], None if qid is None else qid[a:b], None) for k, (a, b) in enumerate(bounds)]
    return InProcess(states, [scores[a:b] for a, b in bounds])


def hinge(scores: Any, truth: Any, cuts: Any, loss: str, qid: Any = None) -> tuple[float, float, Any, Traffic]:
    exchange = parted(scores, truth, cuts, qid)
    parts, value, lost, _ = hinge_of(exchange, as_loss(loss), rw.Hinge(), "zero")
    return value, lost, np.concatenate([state.gradient for state in parts.states]), exchange.traffic


def problem(t: int, rng: np.random.Generator, large: bool) -> tuple[Any, Any, Any, str]:
    n_pos = int(rng.integers(1, 60))
    n = int(rng.integers(9000, 12_000)) + 12 * n_pos if large else int(rng.integers(n_pos + 1, 300))
    relevant = np.zeros(n, bool)
    relevant[rng.choice(n, n_pos, replace=False)] = True
    scores = draw([*KINDS][t % len(KINDS)], n, rng)
    scores = scores + relevant * rng.normal() * np.median(np.abs(scores))
    return scores, relevant, np.sort(rng.integers(0, n + 1, 3)), ("ap", "ndcg", "mrr", "auc")[t % 4]


@pytest.mark.slow
@pytest.mark.parametrize("large", [True, False], ids=["large", "small"])
def test_84_random_vectors_have_the_hinge_and_the_precision_of_one_machine(
    large: bool, rng: np.random.Generator
) -> None:
    for t in range(84):
        scores, relevant, cuts, loss = problem(t, rng, large)
        local = rw.structured_hinge(scores, relevant, loss)
        value, lost, gradient, _ = hinge(scores, relevant, cuts, loss)
        where = f"{t}, {[*KINDS][t % len(KINDS)]}, {loss}"
        np.testing.assert_allclose(value, local.value, rtol=ATOL, atol=ATOL, err_msg=where)
        np.testing.assert_allclose(lost, local.loss, rtol=ATOL, atol=ATOL, err_msg=where)
        np.testing.assert_allclose(gradient, local.gradient, rtol=0, atol=ATOL, err_msg=where)
        found = precision_of(parted(scores, relevant, cuts), as_metric("ap"), "skip")
        expected = rw.metrics.average_precision(scores, relevant)
        np.testing.assert_allclose(found, expected, rtol=0, atol=ATOL, err_msg=where)


def test_queries_in_any_order_over_any_parts(rng: np.random.Generator) -> None:
    n = 40_000
    scores, qid = rng.normal(size=n), np.repeat([5, 3, 9, 1], [12_000, 500, 20_000, 7_500])[rng.permutation(n)]
    qid[:100] = np.arange(100, 200) // 5  # whole in the first part
    grades = rng.integers(0, 4, n) * (rng.random(n) < 0.02)
    for truth in (grades > 0, grades.astype(float)):
        for loss in ("ap", "ndcg"):
            local = rw.structured_hinge(scores, truth, loss, qid=qid)
            value, lost, gradient, _ = hinge(scores, truth, [9_000, 9_000, 30_000], loss, qid)
            np.testing.assert_allclose([value, lost], [local.value, local.loss], rtol=ATOL)
            np.testing.assert_allclose(gradient, local.gradient, rtol=0, atol=ATOL)
        found = precision_of(parted(scores, truth, [9_000, 30_000], qid), as_metric("ap"), "skip")
        np.testing.assert_allclose(found, rw.metrics.average_precision(scores, truth, qid=qid), rtol=ATOL)


@pytest.mark.parametrize("k", [1, 20, 10_000])
def test_precision_of_the_first_k_places(k: int, rng: np.random.Generator) -> None:
    scores, relevant = np.round(rng.normal(size=20_000), 2), rng.random(20_000) < 0.01
    found = precision_of(parted(scores, relevant, [3, 9_000]), as_metric("ap", k), "skip")
    np.testing.assert_allclose(found, rw.metrics.average_precision(scores, relevant, k=k), rtol=ATOL)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smooth_loss_of_large_queries(kind: str, rng: np.random.Generator) -> None:
    n, n_pos = 40_000, 300
    relevant = np.arange(n) % (n // n_pos) == 7
    scores = draw(kind, n, rng) + 0.5 * relevant
    n_pos = int(relevant.sum())
    states = []
    for a, b in pairwise([0, 10, 10, 25_000, n]):
        states.append(divide(Part(scores[a:b]), [Members(None, np.flatnonzero(relevant[a:b]), a, n)]))
    for width in (0.01, 1.0, 10.0):
        local = rw.smooth_loss(scores, relevant, "ap", width=width)
        parts, (found,) = solve_smooth(InProcess(states), [Large(n, n_pos)], as_loss("ap"), rw.Smooth(width))
        np.testing.assert_allclose(found.value, local.value, rtol=1e-10)
        gradient = np.concatenate([state.portions[0].gradient for state in parts.states])
        scale = np.abs(local.gradient).max() + 1e-300
        np.testing.assert_allclose(gradient / scale, local.gradient / scale, rtol=0, atol=1e-10)


def test_what_is_exchanged_does_not_grow_with_the_samples(rng: np.random.Generator) -> None:
    received, sent = [], []
    for n in (200_000, 2_000_000):
        relevant = np.zeros(n, bool)
        relevant[rng.choice(n, 200, replace=False)] = True
        traffic = hinge(rng.normal(size=n) + relevant, relevant, [n // 2], "ap")[3]
        received.append(traffic.received)
        sent.append(traffic.sent)
    buckets, parts = 1 << 16, 2
    assert received[1] < parts * (4 * buckets + 200 * 1000)
    assert sent[1] < 200 * 2000
    assert received[1] < 5 * received[0]  # of 8 times as many buckets


def test_a_score_that_is_not_finite_is_named(rng: np.random.Generator) -> None:
    scores = rng.normal(size=9_500)
    scores[9_100] = np.nan
    with pytest.raises(ValueError, match=r"scores\[100\] of partition 1 is nan"):
        hinge(scores, np.arange(9_500) % 100 == 0, [9_000], "ap")
