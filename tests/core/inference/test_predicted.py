"""The ranking by scores of many queries at once: its loss and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

import rankwise as rw
from rankwise.kernels.engine import predict
from rankwise.metrics.registry import as_loss
from rankwise.queries import Queries, as_queries

RTOL = {np.float64: 1e-12, np.float32: 1e-6}
LOSSES: dict[str, rw.Loss] = {
    **{name: as_loss(name) for name in ("ap", "ndcg", "mrr", "auc", "ndcg@10")},
    "own": rw.DiscountedLoss(lambda k: 1 / k, lambda m: 1 / (m + 3.0) ** 0.7, name="own"),
    "chakrabarti": rw.NDCG(discount="chakrabarti"),
}
SIZES = (1, 2, 7, 0, 40, 3000, 5, 300, 20_000)


def draw(rng: np.random.Generator, dtype: type = np.float64) -> tuple[np.ndarray, Queries]:
    """Scores of queries, every other one with many ties; the shares of positives go from none to all."""
    starts = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
    share = np.repeat(np.resize([0.5, 0.0, 0.3, 1.0, 0.1, 0.4, 1.0, 0.2, 0.01], len(SIZES)), SIZES)
    scores = rng.normal(size=starts[-1])
    coarse = np.repeat(np.arange(len(SIZES)) % 2 == 0, SIZES)
    return np.where(coarse, np.round(scores), scores).astype(dtype), as_queries(rng.random(starts[-1]) < share, starts)


def parts_of(queries: Queries) -> list[slice]:
    return [slice(a, b) for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True)]


@pytest.mark.parametrize("worst", [True, False], ids=["worst", "best"])
@pytest.mark.parametrize("dtype", RTOL, ids=lambda dtype: dtype.__name__)
def test_gradients_are_those_of_all_pairs(dtype: type, worst: bool, rng: np.random.Generator) -> None:
    scores, queries = draw(rng, dtype)
    before = scores.copy()
    scores.flags.writeable = False
    gradient = predict(scores, queries, LOSSES["ap"], worst).gradient
    assert gradient.dtype == dtype
    assert np.array_equal(scores, before)
    for part in parts_of(queries):
        relevant = queries.relevant[part]
        pos, neg = scores[part][relevant], scores[part][~relevant]
        over = neg >= pos[:, None] if worst else neg > pos[:, None]
        unit, expected = 2 / max(pos.size * neg.size, 1), np.empty(relevant.size)
        expected[relevant], expected[~relevant] = -unit * over.sum(axis=1), unit * over.sum(axis=0)
        np.testing.assert_allclose(gradient[part], expected, rtol=RTOL[dtype])


@pytest.mark.parametrize("worst", [True, False], ids=["worst", "best"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_loss_is_the_ranking_loss_of_each_query(loss: rw.Loss, worst: bool, rng: np.random.Generator) -> None:
    scores, queries = draw(rng)
    found = predict(scores, queries, loss, worst).loss
    for q, part in enumerate(parts_of(queries)):
        ties = "worst" if worst else "best"
        expected = rw.ranking_loss(scores[part], queries.relevant[part], loss, ties=ties)
        assert found[q] == pytest.approx(expected, rel=RTOL[np.float64], abs=RTOL[np.float64])
    assert 0 < np.count_nonzero(found) < found.size


def test_minus_zero_ties_with_zero() -> None:
    scores, queries = np.array([0.0, -0.0, -0.0, 0.0]), as_queries(np.array([True, False] * 2), np.array([0, 4]))
    assert predict(scores, queries, LOSSES["auc"], worst=True).loss.tolist() == [1.0]
    assert predict(scores, queries, LOSSES["auc"], worst=False).loss.tolist() == [0.0]


def test_no_queries_give_nothing() -> None:
    found = predict(np.empty(0), as_queries(np.empty(0, bool), np.zeros(1, np.int64)), LOSSES["ap"])
    assert (found.loss.size, found.gradient.size) == (0, 0)


def test_a_normaliser_that_is_not_positive_is_refused() -> None:
    later = rw.DiscountedLoss(lambda k: k > 1, np.reciprocal, name="later")
    scores, relevant = np.arange(7.0), np.array([1, 1, 0, 0, 1, 0, 0], bool)
    with pytest.raises(ValueError, match=r"later: Σ w_k·D\(k\) over 1 positives is 0; it must be positive"):
        rw.evaluate(rw.Direct(), scores, relevant, later, qid=[0, 0, 0, 1, 1, 1, 1])
    assert rw.evaluate(rw.Direct(), scores[:3], relevant[:3], later).loss > 0
