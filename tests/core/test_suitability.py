"""Which losses are QS-suitable: (C2) holds, or the error names where it breaks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.metrics.registry import as_loss

BUILT_IN = ("ap", "ndcg", "mrr", "auc")
SIZES = [(1, 1), (1, 9), (9, 1), (3, 5), (40, 70)]
ROUNDING = 1e-15
VALUE_RTOL = 1e-9  # of J


def cut(k: int) -> Callable[[Any], Any]:
    """NDCG's discount up to place k, and nothing beyond."""
    return lambda m: np.where(m <= k, 1 / np.log2(1.0 + m), 0.0)


def breaks_at(loss: rw.Loss, n_pos: int, n_neg: int) -> set[tuple[int, int]]:
    """Every (i, j) with δ_{j+1}(i+1) − δ_{j+1}(i) < δ_j(i+1) − δ_j(i)."""
    i, j = np.arange(1, n_pos + 1), np.arange(1, n_neg + 1)[:, None]
    fall = np.diff(loss.steps(i, j, n_pos, n_neg), axis=0)
    return {(int(b) + 1, int(a) + 1) for a, b in np.argwhere(fall < -ROUNDING)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_losses_are_suitable(name: str, size: tuple[int, int]) -> None:
    assert not breaks_at(as_loss(name), *size)
    rw.check_qs_suitable(name, *size)


class CutNDCG(rw.NDCG):
    """A built-in loss with another discount is checked like any other."""

    def discount(self, m: Any) -> Any:
        return cut(3)(np.asarray(m))


BROKEN: dict[str, tuple[rw.Loss, tuple[int, int], tuple[int, int]]] = {
    "chakrabarti": (rw.NDCG(discount="chakrabarti"), (3, 5), (1, 1)),
    # D bends down at m = i + j = k only.
    "ndcg@2": (rw.DiscountedLoss(discount=cut(2)), (3, 9), (1, 1)),
    "ndcg@4": (rw.DiscountedLoss(discount=cut(4)), (3, 9), (1, 3)),
    "ndcg@4, two negatives": (rw.DiscountedLoss(discount=cut(4)), (6, 2), (3, 1)),
    "a subclass": (CutNDCG(), (2, 9), (1, 2)),
    "precision@3": (rw.DiscountedLoss(discount=lambda m: m <= 3), (2, 9), (1, 2)),
    "weight zero where it bends": (rw.DiscountedLoss(lambda k: k >= 3, cut(4)), (3, 9), (3, 1)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_loss_that_breaks_c2_is_refused_where_it_breaks(name: str) -> None:
    loss, size, at = BROKEN[name]
    assert at in breaks_at(loss, *size)
    with pytest.raises(rw.NotQSSuitableError, match=rf"breaks \(C2\) at \(i, j\) = \({at[0]}, {at[1]}\)") as refused:
        rw.check_qs_suitable(loss, *size)
    assert (refused.value.i, refused.value.j) == at
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("method", ["auto", "bucketed", "quicksort", "yue", "mohapatra2014"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_loss_that_breaks_c2_is_refused_by_every_method_that_needs_it(
    name: str, method: str, rng: np.random.Generator
) -> None:
    loss, (n_pos, n_neg), _ = BROKEN[name]
    scores, relevant = rng.normal(size=n_pos + n_neg), np.arange(n_pos + n_neg) < n_pos
    for qid in (None, np.zeros(scores.size, int)):
        with pytest.raises(rw.NotQSSuitableError):
            rw.structured_hinge(scores, relevant, loss, method=method, qid=qid)
    with pytest.raises(rw.NotQSSuitableError):
        rw.inference.count_work(scores, relevant, loss)


def test_a_query_in_which_the_loss_does_not_break_is_solved() -> None:
    at_4 = rw.DiscountedLoss(discount=cut(4))
    for size in [(1, 1), (5, 1), (1, 2), (2, 1)]:  # i + j stays below 4, or there is no j + 1
        assert not breaks_at(at_4, *size)
        scores, relevant = np.arange(sum(size), 0.0, -1), np.arange(sum(size)) >= size[1]
        found = rw.structured_hinge(scores, relevant, at_4)
        assert found.value == pytest.approx(rw.structured_hinge(scores, relevant, at_4, method="exhaustive").value)


class HalfNDCG(rw.NDCG):
    """A built-in loss with another convex discount."""

    def discount(self, m: Any) -> Any:
        return 1 / (1.0 + m)


def test_a_subclass_of_a_built_in_loss_uses_its_own_discount_beyond_the_table(rng: np.random.Generator) -> None:
    scores, relevant = rng.normal(size=150_000), np.arange(150_000) < 5
    relevant[np.argsort(scores)[:40]] = True  # positives far down
    found = rw.structured_hinge(scores, relevant, HalfNDCG())
    expected = rw.structured_hinge(scores, relevant, rw.DiscountedLoss(discount=lambda m: 1 / (1.0 + m)))
    assert found.value == pytest.approx(expected.value, rel=VALUE_RTOL)
    assert found.loss == pytest.approx(expected.loss, rel=VALUE_RTOL)


@pytest.mark.parametrize("base", [0.8, 0.5, 0.99])
def test_a_convex_discount_that_underflows_is_suitable(base: float, rng: np.random.Generator) -> None:
    loss = rw.DiscountedLoss(discount=lambda m: base ** (m - 1))
    rw.check_qs_suitable(loss, n_pos=10, n_neg=5000)
    scores, relevant = rng.normal(size=5010), np.arange(5010) < 10
    found = rw.structured_hinge(scores, relevant, loss)
    assert found.value == pytest.approx(rw.structured_hinge(scores, relevant, loss, method="yue").value, rel=VALUE_RTOL)


@pytest.mark.parametrize(
    "discount",
    [
        lambda m: 1 / m,
        lambda m: 1 / np.sqrt(m),
        lambda m: 1 / np.log(m + 1.5),
        lambda m: -np.log(m) + 99,
        lambda m: 9.0,
    ],
    ids=["reciprocal", "root", "log", "minus log", "constant"],
)
def test_rounding_is_not_taken_for_a_breach(discount: Any) -> None:
    rw.check_qs_suitable(rw.DiscountedLoss(discount=discount), n_pos=1000, n_neg=200_000)


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize(
    "weight",
    [lambda k: 1.0, lambda k: k != 2, lambda k: k == 1, lambda k: 1 / k],
    ids=["1", "2nd 0", "1st only", "1/k"],
)
def test_what_a_discount_was_checked_for_changes_no_later_check(
    weight: Callable[[Any], Any], k: int, rng: np.random.Generator
) -> None:
    sizes = rng.permutation([(n_pos, n_neg) for n_pos in range(1, 7) for n_neg in range(1, 7)]).tolist()
    loss = rw.DiscountedLoss(weight, cut(k))
    for n_pos, n_neg in sizes:
        refused = nullcontext()
        if breaks_at(rw.DiscountedLoss(weight, cut(k)), n_pos, n_neg):
            refused = pytest.raises(rw.NotQSSuitableError)
        with refused:
            rw.check_qs_suitable(loss, n_pos, n_neg)


def test_a_negative_weight_is_refused() -> None:
    loss = rw.DiscountedLoss(weight=lambda k: 2 - k, discount=np.reciprocal, name="falling")
    with pytest.raises(rw.NotQSSuitableError, match=r"falling: weight\(3\) = -1 is negative") as refused:
        rw.check_qs_suitable(loss, n_pos=5, n_neg=9)
    assert (refused.value.i, refused.value.j) == (3, None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_function_that_is_not_finite_is_refused_where_it_is_not(value: float) -> None:
    at_7 = rw.DiscountedLoss(discount=lambda m: np.where(m == 7, value, 1 / m), name="hole")
    with pytest.raises(ValueError, match=r"hole: discount\(7\) = .* is not finite"):
        rw.structured_hinge(np.arange(9.0), np.arange(9) < 3, at_7)
    weight = rw.DiscountedLoss(lambda k: np.where(k == 2, value, 1.0), np.reciprocal, name="hole")
    with pytest.raises(ValueError, match=r"hole: weight\(2\) = .* is not finite"):
        rw.structured_hinge(np.arange(9.0), np.arange(9) < 3, weight)


@pytest.mark.parametrize("method", ["auto", "dynamic", "exhaustive", "chakrabarti"])
@pytest.mark.parametrize(
    "loss",
    [rw.DiscountedLoss(lambda k: 0.0, np.reciprocal), rw.DiscountedLoss(discount=lambda m: -1.0 * m)],
    ids=["no weight", "negative discount"],
)
def test_a_normaliser_that_is_not_positive_is_refused(loss: rw.Loss, method: str) -> None:
    with pytest.raises(ValueError, match=r"Σ w_k·D\(k\) over 3 positives is .*must be positive"):
        rw.structured_hinge(np.arange(9.0), np.arange(9) < 3, loss, method=method)


def test_a_weight_that_is_zero_only_for_few_positives_is_refused_for_those_only() -> None:
    later = rw.DiscountedLoss(lambda k: k > 2, np.reciprocal)
    with pytest.raises(ValueError, match=r"over 2 positives is 0"):
        rw.structured_hinge(np.arange(9.0), np.arange(9) < 2, later)
    with pytest.raises(ValueError, match=r"over [12] positives is 0"):
        rw.structured_hinge(np.arange(18.0), np.resize([1, 1, 0, 0, 1, 0], 18), later, qid=np.arange(18) // 4)
    assert rw.structured_hinge(np.arange(9.0), np.arange(9) < 3, later).value > 0


@pytest.mark.parametrize("size", [(1, 9), (3, 9), (9, 3)])
@pytest.mark.parametrize("name", ["ndcg", "ap", "mrr", "precision"])
def test_losses_of_the_first_places_are_not_suitable_for_longer_queries(name: str, size: tuple[int, int]) -> None:
    cut, first, beyond = (as_loss(f"{name}@{k}") for k in (3, 1, 12))
    assert breaks_at(cut, *size)
    with pytest.raises(rw.NotQSSuitableError, match=rf"{name}@3 breaks \(C2\)"):
        rw.check_qs_suitable(cut, *size)
    for suitable in (first, beyond):
        assert not breaks_at(suitable, *size)
        rw.check_qs_suitable(suitable, *size)


def test_counts_to_check_are_integers_of_at_least_one() -> None:
    for counts in ((0, 3), (3, 0), (-1, 2)):
        with pytest.raises(ValueError, match=r"must be at least 1"):
            rw.check_qs_suitable("ap", *counts)
    for count in (2.0, True, "2", None):
        with pytest.raises(TypeError, match=r"n_pos must be an integer"):
            rw.check_qs_suitable("ap", count, 2)  # type: ignore[arg-type]
    rw.check_qs_suitable("ap", np.int32(2), 2)  # type: ignore[arg-type]
