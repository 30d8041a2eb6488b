"""The ranking by scores of many queries at once: its counts, its loss and its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import rankwise as rw
from rankwise.kernels.predicted import predict, predicted
from rankwise.metrics.registry import as_loss

RTOL = {np.float64: 1e-12, np.float32: 1e-6}
LOSSES: dict[str, rw.Loss] = {
    **{name: as_loss(name) for name in ("ap", "ndcg", "mrr", "auc")},
    "own": rw.DiscountedLoss(lambda k: 1 / k, lambda m: 1 / (m + 3.0) ** 0.7, name="own"),
    "chakrabarti": rw.NDCG(discount="chakrabarti"),
    "step": rw.StepLoss(lambda i, j, p, n: -i / (p * (j + 0.5)), name="push"),
}


class Batch(NamedTuple):
    scores: np.ndarray
    relevant: np.ndarray
    starts: np.ndarray

    def parts(self) -> Iterator[slice]:
        return (slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True))


def draw(rng: np.random.Generator, dtype: type = np.float64, sizes: Any = (1, 2, 7, 0, 40, 3000, 5, 300)) -> Batch:
    """Queries of these sizes, every other one with many ties; the shares of positives go from none to all."""
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    share = np.repeat(np.resize([0.5, 0.0, 0.3, 1.0, 0.1, 0.4, 1.0], len(sizes)), sizes)
    scores = rng.normal(size=starts[-1])
    coarse = np.repeat(np.arange(len(sizes)) % 2 == 0, sizes)
    return Batch(np.where(coarse, np.round(scores), scores).astype(dtype), rng.random(starts[-1]) < share, starts)


@pytest.mark.parametrize("worst", [True, False], ids=["worst", "best"])
@pytest.mark.parametrize("dtype", RTOL, ids=lambda dtype: dtype.__name__)
def test_counts_and_gradients_are_those_of_all_pairs(dtype: type, worst: bool, rng: np.random.Generator) -> None:
    for _ in range(5):
        batch = draw(rng, dtype)
        above, gradient = predicted(*batch, worst)
        assert gradient.dtype == dtype
        done = 0
        for part in batch.parts():
            scores, relevant = batch.scores[part], batch.relevant[part]
            pos, neg = scores[relevant], scores[~relevant]
            over = neg >= pos[:, None] if worst else neg > pos[:, None]
            unit = 2 / max(pos.size * neg.size, 1)
            expected = np.empty(scores.size)
            expected[relevant], expected[~relevant] = -unit * over.sum(axis=1), unit * over.sum(axis=0)
            np.testing.assert_allclose(gradient[part], expected, rtol=RTOL[dtype])
            assert above[done : done + pos.size].tolist() == np.sort(over.sum(axis=1)).tolist()
            done += pos.size
        assert done == above.size


@pytest.mark.parametrize("worst", [True, False], ids=["worst", "best"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_loss_is_the_ranking_loss_of_each_query(loss: rw.Loss, worst: bool, rng: np.random.Generator) -> None:
    batch = draw(rng)
    found = predict(*batch, loss, worst)
    for q, part in enumerate(batch.parts()):
        relevant = batch.relevant[part]
        expected = rw.ranking_loss(batch.scores[part], relevant, loss, ties="worst" if worst else "best")
        assert found.loss[q] == pytest.approx(expected, rel=RTOL[np.float64], abs=RTOL[np.float64])
    assert 0 < np.count_nonzero(found.loss) < found.loss.size


@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr"])
def test_a_loss_is_found_beyond_its_table(loss: str, rng: np.random.Generator) -> None:
    batch = draw(rng, sizes=(80_000,))
    batch.scores[batch.relevant] -= 5.0
    found = predict(*batch, as_loss(loss)).loss[0]
    assert found == pytest.approx(rw.ranking_loss(batch.scores, batch.relevant, loss), rel=RTOL[np.float64])


def test_the_gradient_is_that_of_the_hinge_at_scale_zero(rng: np.random.Generator) -> None:
    batch = draw(rng)
    scores = rng.normal(size=batch.scores.size)  # without ties there is but one best ranking
    found = predict(scores, batch.relevant, batch.starts, as_loss("ap"))
    for q, part in enumerate(batch.parts()):
        hinge = rw.structured_hinge(scores[part], batch.relevant[part], "ap", scale=0.0)
        np.testing.assert_allclose(found.gradient[part], hinge.gradient, rtol=RTOL[np.float64])
        assert found.loss[q] == pytest.approx(hinge.loss, abs=RTOL[np.float64])


def test_minus_zero_ties_with_zero() -> None:
    scores, relevant, starts = np.array([0.0, -0.0, -0.0, 0.0]), np.array([True, False, True, False]), np.array([0, 4])
    assert predicted(scores, relevant, starts, True)[0].tolist() == [2, 2]
    assert predicted(scores, relevant, starts, False)[0].tolist() == [0, 0]


@pytest.mark.parametrize("relevant", [[True] * 3, [False] * 3, []], ids=["no negatives", "no positives", "no samples"])
def test_an_empty_query_has_no_loss_and_no_gradient(relevant: list[bool]) -> None:
    truth = np.array(relevant, bool)
    scores, starts = np.arange(truth.size) * 1.0, np.array([0, truth.size])
    found = predict(scores, truth, starts, as_loss("ap"))
    assert found.loss.tolist() == [0.0]
    assert found.gradient.tolist() == [0.0] * truth.size
    assert predicted(scores, truth, starts, True)[0].tolist() == [0] * int(truth.sum())


def test_no_queries_give_nothing() -> None:
    found = predict(np.empty(0), np.empty(0, bool), np.zeros(1, np.int64), as_loss("ap"))
    assert [array.size for array in found] == [0, 0]


def test_inputs_are_never_written_to(rng: np.random.Generator) -> None:
    batch = draw(rng)
    kept = [array.copy() for array in batch]
    for array in batch:
        array.flags.writeable = False
    predict(*batch, as_loss("ndcg"))
    assert all(np.array_equal(array, before) for array, before in zip(batch, kept, strict=True))


def test_a_normaliser_that_is_not_positive_is_refused() -> None:
    later = rw.DiscountedLoss(lambda k: k > 1, np.reciprocal, name="later")
    scores, relevant = np.arange(7.0), np.array([1, 1, 0, 0, 1, 0, 0], bool)
    with pytest.raises(ValueError, match=r"later: Σ w_k·D\(k\) over 1 positives is 0; it must be positive"):
        predict(scores, relevant, np.array([0, 3, 7]), later)
    assert predict(scores[:3], relevant[:3], np.array([0, 3]), later).loss[0] > 0
