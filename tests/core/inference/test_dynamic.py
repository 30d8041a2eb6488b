"""The dynamic programme is exact for every loss with (C1), also where (C2) breaks, and for a scale of either sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from rank_losses import NAMED, TOL, Query, slack

import rankwise as rw
from rankwise.kernels.published import dynamic
from rankwise.metrics.registry import as_loss

PROBLEMS = 250
SCALES = (-3.0, -1.0, -0.25, -0.01, 0.0, 0.01, 0.25, 1.0, 3.0)

# No step of these has the wrong sign: more negatives above never make them less.
MONOTONE: dict[str, rw.Loss] = {
    **NAMED,
    "chakrabarti": rw.NDCG(discount="chakrabarti"),
    "ndcg@3": rw.DiscountedLoss(discount=lambda m: np.where(m <= 3, 1 / np.log2(1.0 + m), 0.0), name="ndcg@3"),
    "precision@2, some weights zero": rw.DiscountedLoss(lambda k: k % 2, lambda m: m <= 2, name="odd"),
}
LOSSES: dict[str, rw.Loss] = {
    **MONOTONE,
    "rising discount": rw.DiscountedLoss(discount=lambda m: 2 + np.cos(m), name="waves"),
}

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
Family = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def queries(seed: int, size: int = PROBLEMS) -> Iterator[Query]:
    """Random tiny queries: continuous scores, few values, or one (ties), spread from 1e-2 to 1e2."""
    rng = np.random.default_rng(seed)
    for k in range(size):
        n_pos, n_neg = rng.integers(1, 5), rng.integers(1, 7)
        relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        kinds = (rng.normal(size=relevant.size), rng.integers(-2, 3, relevant.size) * 0.5, np.full(relevant.size, 0.3))
        scores = kinds[0 if k % 5 < 2 else 1 if k % 5 < 4 else 2] * 10.0 ** rng.integers(-2, 3)
        yield Query(scores, relevant, SCALES[rng.integers(len(SCALES))])


def solve(query: Query, loss: Any, method: str = "dynamic") -> rw.HingeResult:
    return rw.structured_hinge(query.scores, query.relevant, loss, scale=query.scale, method=method)


def counts_by_score(query: Query, worst: bool) -> np.ndarray:
    """c_k of the ranking by scores."""
    pos, neg = np.sort(query.scores[query.relevant])[::-1], query.scores[~query.relevant]
    return (neg >= pos[:, None] if worst else neg > pos[:, None]).sum(axis=1)


def best_by_definition(query: Query, loss: rw.Loss) -> float:
    """J by V_k(c) = h_k(c) + max_{c′ ≤ c} V_{k−1}(c′) on the whole of (P, N + 1), h in units of J."""
    pos, neg = np.sort(query.scores[query.relevant])[::-1], np.sort(query.scores[~query.relevant])[::-1]
    value = np.zeros(neg.size + 1)
    for k in range(1, pos.size + 1):
        gain = -query.scale * loss.steps(k, np.arange(1, neg.size + 1), pos.size, neg.size)
        h = np.concatenate([[0.0], np.cumsum(2 * (neg - pos[k - 1]) / (pos.size * neg.size) + gain)])
        value = h + np.maximum.accumulate(value)
    return float(value.max())


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_value_is_that_of_exhaustive_search(loss: rw.Loss) -> None:
    for query in queries(seed=1):
        best = solve(query, loss, "exhaustive").value
        assert abs(solve(query, loss).value - best) <= slack(best), query


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_loss_gradient_and_interleaving_belong_to_one_ranking(
    loss: rw.Loss, objective: Callable[..., float]
) -> None:
    for query in queries(seed=2, size=90):
        found = solve(query, loss)
        n_neg = int((~query.relevant).sum())
        by_definition = objective(query.scores, query.relevant, loss, query.scale, found.interleaving)
        assert found.loss == pytest.approx(float(loss.of_counts(found.interleaving.above, n_neg)), abs=TOL), query
        assert abs(found.value - query.scale * found.loss - found.gradient @ query.scores) <= slack(found.value), query
        assert abs(found.value - by_definition) <= slack(found.value), query


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_value_is_that_of_the_recursion_on_all_pairs(
    loss: rw.Loss, families: dict[str, Family], rng: np.random.Generator, draw_relevant: Draw
) -> None:
    sizes = [(1, 60), (30, 1), (12, 200), (40, 15)]
    for (k, name), (j, scale) in product(enumerate(families), enumerate([-30.0, -1.0, -0.05, 0.05, 1.0, 30.0])):
        size = sizes[(k + j) % len(sizes)]  # so each with every family and with every scale
        relevant = draw_relevant(rng, *size)
        query = Query(families[name](rng, relevant), relevant, scale)
        best = best_by_definition(query, loss)
        assert abs(solve(query, loss).value - best) <= slack(best), (name, scale, size)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc"])
def test_with_c2_it_gives_what_the_fast_method_gives(
    loss: str, dtype: type, families: dict[str, Family], rng: np.random.Generator, draw_relevant: Draw
) -> None:
    sizes = [((20, 500), 0.1), ((60, 3000), 1.0), ((1000, 300), 1.0), ((50, 70_000), 10.0)]
    for (k, name), (size, scale) in product(enumerate(families), sizes):
        if size[1] == 70_000 and (k % 2 == 0) == (dtype is np.float32):  # of the largest, one dtype for a family
            continue
        relevant = draw_relevant(rng, *size)
        query = Query(families[name](rng, relevant).astype(dtype), relevant, scale)
        found, fast = solve(query, loss), solve(query, loss, "bucketed")
        rtol = TOL if dtype is np.float64 else 1e-5
        assert abs(found.value - fast.value) <= rtol * max(1.0, fast.value), (name, size)
        assert found.gradient.dtype == dtype


@pytest.mark.parametrize("loss", MONOTONE.values(), ids=MONOTONE)
def test_a_negative_scale_lifts_positives_and_a_positive_one_lowers_them(
    loss: rw.Loss, families: dict[str, Family], rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for name, scale in product(families, (0.02, 1.0, 20.0)):
        relevant = draw_relevant(rng, 25, 150)
        query = Query(families[name](rng, relevant), relevant, 0.0)
        lifted, lowered = (solve(query._replace(scale=s), loss).interleaving.above for s in (-scale, scale))
        assert (lifted <= counts_by_score(query, worst=False)).all(), (name, scale)
        assert (lowered >= counts_by_score(query, worst=False)).all(), (name, scale)


@pytest.mark.parametrize("loss", MONOTONE.values(), ids=MONOTONE)
def test_only_one_side_of_the_ranking_by_scores_is_visited(
    loss: rw.Loss, rng: np.random.Generator, draw_relevant: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    relevant = draw_relevant(rng, 50, 2000)
    query = Query(rng.normal(size=relevant.size) + relevant, relevant, 0.0)
    misordered = int(counts_by_score(query, worst=False).sum())
    for scale, pairs in [(-1.0, misordered), (0.0, 0), (1.0, 50 * 2000 - misordered)]:
        monkeypatch.setattr(dynamic, "MOST_PAIRS", pairs)
        solve(query._replace(scale=scale), loss)


def test_too_many_pairs_are_refused_with_what_to_do(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "MOST_PAIRS", 99)
    query = Query(rng.normal(size=120), np.arange(120) < 20, -1.0)
    with pytest.raises(ValueError, match=r"visit \d{3} pairs of 20 positives and 100 negatives.*'auto'.*else sample"):
        solve(query, "ap")


def test_large_queries_of_equal_scores_are_solved(draw_relevant: Draw, rng: np.random.Generator) -> None:
    n_pos, n_neg = 100, 200_000
    loss = rw.NDCG(discount="chakrabarti")
    flat = Query(np.full(n_pos + n_neg, 0.5), draw_relevant(rng, n_pos, n_neg), 0.0)
    most = float(loss.of_counts(np.full(n_pos, n_neg), n_neg))  # all negatives on top
    for scale, lost in [(-2.0, 0.0), (0.0, 0.0), (2.0, most)]:
        found = solve(flat._replace(scale=scale), loss)
        assert found.loss == pytest.approx(lost, rel=TOL)
        assert found.value == pytest.approx(scale * lost, rel=TOL)


def test_scale_zero_leaves_the_misordered_pairs_of_a_large_query(draw_relevant: Draw, rng: np.random.Generator) -> None:
    relevant = draw_relevant(rng, 100, 200_000)
    query = Query(rng.normal(size=relevant.size), relevant, 0.0)
    found = solve(query, rw.NDCG(discount="chakrabarti"))
    pairs = [np.maximum(0.0, query.scores[~relevant] - score).sum() for score in query.scores[relevant]]
    assert found.value == pytest.approx(2 * np.sum(pairs) / (100 * 200_000), rel=TOL)
    assert np.array_equal(found.interleaving.above, counts_by_score(query, worst=True))


@pytest.mark.parametrize("outlier", [1e6, 1e9, 1e12])
def test_samples_far_from_all_do_not_blur_the_others(outlier: float) -> None:
    middle = Query(np.array([0.333, 0.1, 0.0, 0.7, -0.2]), np.array([True, True, False, False, False]), -0.8)
    for loss in LOSSES.values():
        # A positive at the top and a negative at the end stay there, and change P and N only.
        far = Query(np.append(middle.scores, [outlier, -outlier]), np.append(middle.relevant, [True, False]), -0.8)
        best = solve(far._replace(scores=np.append(middle.scores, [1e3, -1e3])), loss)
        assert solve(far, loss).value == pytest.approx(best.value, abs=TOL)


@pytest.mark.parametrize("scale", [-1.0, 1.0])
def test_each_query_of_many_is_what_it_would_be_alone(scale: float, rng: np.random.Generator) -> None:
    qid = rng.integers(0, 40, 500)
    scores, relevant = np.round(rng.normal(size=500), 1), rng.random(500) < 0.3
    relevant[qid == 7], relevant[qid == 8] = False, True
    for loss in LOSSES.values():
        found = rw.structured_hinge(scores, relevant, loss, qid=qid, scale=scale, method="dynamic", n_threads=2)
        assert found.per_query is not None
        for q, name in enumerate(found.per_query.qid):
            rows = qid == name
            alone = solve(Query(scores[rows], relevant[rows], scale), loss)
            assert found.per_query.value[q] == alone.value
            assert np.allclose(found.gradient[rows] * found.per_query.qid.size, alone.gradient, atol=TOL)


@pytest.mark.parametrize("qid", [None, [0, 0, 1, 1]], ids=["one query", "queries"])
def test_a_negative_scale_is_refused_by_other_methods_which_are_named(qid: Any) -> None:
    for method in set(rw.inference.METHODS) - {"dynamic", "exhaustive"}:
        with pytest.raises(ValueError, match=r"at least 0, got -1\.0.*\(C2\).*method='dynamic' or 'exhaustive'"):
            rw.structured_hinge([1.0, 2.0, 1.0, 2.0], [0, 1, 1, 0], qid=qid, scale=-1.0, method=method)


@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf])
def test_a_scale_that_is_not_finite_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"scale must be finite, got"):
        rw.structured_hinge([1.0, 2.0], [0, 1], scale=scale, method="dynamic")


def test_a_built_in_loss_without_a_table_is_solved(rng: np.random.Generator) -> None:
    scores, relevant = rng.normal(size=90_000), np.arange(90_000) < 8
    for name in ("ap", "ndcg"):  # their tables end at 65,536 places; those of one's own do not
        own = rw.DiscountedLoss(as_loss(name).weight, as_loss(name).discount)
        found, expected = (solve(Query(scores, relevant, -1.0), loss).value for loss in (name, own))
        assert found == pytest.approx(expected, rel=TOL)
