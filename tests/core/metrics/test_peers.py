"""NDCG is LightGBM's own metric, and torchmetrics', where these are installed: cut-offs, ties and empty queries."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankwise import metrics

LIGHTGBM_ATOL = 1e-9  # its discounts and gains are tables of doubles, its scores too
TORCH_ATOL = 1e-5  # single precision
CUTS = [1, 3, 5, 10, 50]


def lightgbm_ndcg(scores: Any, grades: Any, qid: Any) -> NDArray[np.float64]:
    """Its ndcg at every cut of CUTS, of queries in ascending order, by scores that it is given to begin with."""
    lgb = pytest.importorskip("lightgbm")
    options = {"objective": "lambdarank", "metric": "ndcg", "eval_at": CUTS, "verbosity": -1, "num_threads": 1}
    sizes = np.unique(qid, return_counts=True)[1]
    data = lgb.Dataset(np.zeros((len(scores), 1)), grades, group=sizes, init_score=scores, params={"verbosity": -1})
    return np.array([found[2] for found in lgb.Booster(options, data).eval_train()])


def graded_queries(rng: np.random.Generator, levels: int | None) -> tuple[Any, Any, Any]:
    qid = np.sort(rng.integers(0, 60, 900))
    grades = rng.integers(0, 5, 900)
    grades[qid % 7 == 0] = 0  # as a part of MSLR's queries
    scores = rng.normal(size=900) if levels is None else rng.integers(0, levels, 900).astype(float)
    return scores, grades, qid


def test_ndcg_is_that_of_lightgbm_where_empty_queries_count_as_one(rng: np.random.Generator) -> None:
    scores, grades, qid = graded_queries(rng, None)
    ours = [metrics.ndcg(scores, grades, k=k, qid=qid, empty="one") for k in CUTS]
    np.testing.assert_allclose(ours, lightgbm_ndcg(scores, grades, qid), rtol=0.0, atol=LIGHTGBM_ATOL)
    left_out = [metrics.ndcg(scores, grades, k=k, qid=qid) for k in CUTS]
    assert (np.array(left_out) < ours).all()


def test_ndcg_of_ties_is_the_mean_of_lightgbm_over_the_orders_of_rows() -> None:
    # LightGBM ranks samples of equal score by their rows.
    grades, scores, qid = np.array([0, 3, 1, 0, 2]), np.array([1.0, 1.0, 1.0, 0.0, 0.0]), np.zeros(5, int)
    orders = [[*first, *last] for first in permutations([0, 1, 2]) for last in permutations([3, 4])]
    theirs = np.mean([lightgbm_ndcg(scores, grades[order], qid) for order in orders], axis=0)
    ours = [metrics.ndcg(scores, grades, k=k) for k in CUTS]
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=LIGHTGBM_ATOL)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_metrics_of_one_query_are_those_of_torchmetrics(k: int, rng: np.random.Generator) -> None:
    peer = pytest.importorskip("torchmetrics.functional.retrieval")
    torch = pytest.importorskip("torch")
    scores, grades = rng.normal(size=30), rng.integers(0, 5, 30)
    tensor = torch.tensor(scores)
    expected = peer.retrieval_normalized_dcg(tensor, torch.tensor(grades), top_k=k)
    assert metrics.ndcg(scores, grades, k=k, gain="linear") == pytest.approx(float(expected), abs=TORCH_ATOL)
    relevant = torch.tensor(grades > 2)
    for ours, theirs in (
        (metrics.precision_at, peer.retrieval_precision),
        (metrics.recall_at, peer.retrieval_recall),
        (metrics.reciprocal_rank, peer.retrieval_reciprocal_rank),
    ):
        assert ours(scores, grades > 2, k=k) == pytest.approx(float(theirs(tensor, relevant, top_k=k)), abs=TORCH_ATOL)
