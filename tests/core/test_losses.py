"""Losses: their tables and closed forms, Δ by the definitions, steps, (C2), and functions of the user's own."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.kernels.contract import Tail
from rankwise.metrics.registry import as_loss, as_metric

RTOL = 1e-12
ATOL = 1e-12
VALUE_RTOL = 1e-9  # of J


# Δ of positives at these places, of which the first k count, with n_neg negatives.
BY_LOOP: dict[str, Callable[[list[int], float, int], float]] = {
    "ap": lambda places, k, n_neg: 1 - sum(i / m for i, m in enumerate(places, 1) if m <= k) / min(len(places), k),
    "ndcg": lambda places, k, n_neg: (
        1
        - sum(1 / math.log2(1 + m) for m in places if m <= k)
        / sum(1 / math.log2(1 + i) for i in range(1, int(min(len(places), k)) + 1))
    ),
    "mrr": lambda places, k, n_neg: 1 - (1 / places[0] if places[0] <= k else 0.0),
    "precision": lambda places, k, n_neg: 1 - sum(m <= k for m in places) / min(len(places), k),
    "auc": lambda places, k, n_neg: sum(m - i for i, m in enumerate(places, 1)) / (len(places) * n_neg),
}
WHOLE = [name for name in BY_LOOP if name != "precision"]
CUT = [f"{name}@{k}" for name in BY_LOOP if name != "auc" for k in (1, 2, 3, 5, 100)]
OWN = rw.DiscountedLoss(lambda k: 1 / k, lambda m: 0.8**m, name="own")
LOSSES = {**{name: as_loss(name) for name in WHOLE}, "own": OWN}


def all_places(n_pos: int, n_neg: int) -> np.ndarray:
    """Every way to put n_pos positives in n_pos + n_neg places."""
    return np.array(list(combinations(range(1, n_pos + n_neg + 1), n_pos)))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (4, 1), (3, 5)])
@pytest.mark.parametrize("name", [*WHOLE, *CUT])
def test_every_ranking_has_the_loss_of_its_definition(name: str, size: tuple[int, int]) -> None:
    (base, _, k), places = name.partition("@"), all_places(*size)
    found = as_loss(name).of_counts(places - np.arange(1, size[0] + 1), size[1])
    expected = [BY_LOOP[base](row.tolist(), float(k or np.inf), size[1]) for row in places]
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", WHOLE)
def test_the_predicted_ranking_has_the_loss_of_its_definition(name: str, rng: np.random.Generator) -> None:
    relevant = rng.permutation(70) < 9
    scores = rng.permutation(70) * 1.0
    order = np.argsort(-scores)
    places = [place for place, sample in enumerate(order, start=1) if relevant[sample]]
    assert rw.ranking_loss(scores, relevant, name) == pytest.approx(BY_LOOP[name](places, np.inf, 61), rel=RTOL)


def test_the_loss_of_no_mistake_is_zero_and_of_all_mistakes_the_most() -> None:
    for name, loss in LOSSES.items():
        assert loss.of_counts([0, 0, 0], 4) == 0.0, name
        everything = loss.of_counts(all_places(3, 4) - np.arange(1, 4), 4)
        assert loss.of_counts([4, 4, 4], 4) == everything.max() > 0.0, name
    assert as_loss("auc").of_counts([4, 4, 4], 4) == pytest.approx(1.0)


@pytest.mark.parametrize(("ties", "places"), [("worst", [2, 4]), ("best", [1, 3])])
def test_a_tie_of_both_classes_is_the_mistake_one_asks_for(ties: str, places: list[int]) -> None:
    found = rw.ranking_loss([2.0, 2.0, 1.0, 1.0], [True, False, True, False], "ap", ties=ties)
    assert found == pytest.approx(BY_LOOP["ap"](places, np.inf, 2), rel=RTOL)


def test_zero_one_counts_samples_on_the_wrong_side_of_zero() -> None:
    scores, relevant = [3.0, -1.0, 0.0, 0.0, 2.0, -5.0], [True, True, True, False, False, False]
    assert rw.ranking_loss(scores, relevant, "zero-one", ties="best") == pytest.approx(2 / 6)
    assert rw.ranking_loss(scores, relevant, "zero-one", ties="worst") == pytest.approx(4 / 6)


@pytest.mark.parametrize("name", LOSSES)
def test_steps_are_differences_of_the_loss(name: str) -> None:
    loss, n_pos, n_neg = LOSSES[name], 3, 5
    grid = loss.steps(np.arange(1, n_pos + 1), np.arange(1, n_neg + 1)[:, None], n_pos, n_neg)
    for j in range(1, n_neg + 1):
        for i in range(1, n_pos + 1):
            # j negatives above positives i, …; then the j-th of them falls below positive i.
            before, after = np.full(n_pos, j), np.full(n_pos, j)
            before[: i - 1] = after[:i] = j - 1
            change = loss.of_counts(after, n_neg) - loss.of_counts(before, n_neg)
            assert grid[j - 1, i - 1] == loss.steps(i, j, n_pos, n_neg) == pytest.approx(float(change), abs=ATOL), (
                i,
                j,
            )


def test_built_in_tables_stay_small_and_those_of_a_function_reach_as_far_as_needed() -> None:
    far = 10**7
    for name in WHOLE:
        tables = as_loss(name).tables(3, far)
        assert tables.tail != Tail.NONE
        assert tables.discount.size < 10**5
    tables = rw.DiscountedLoss(discount=np.reciprocal).tables(3, 10**5)
    assert tables.tail == Tail.NONE
    assert tables.discount[10**5] == pytest.approx(1e-5, rel=RTOL)


def test_tables_are_kept_between_calls() -> None:
    calls = []
    loss = rw.DiscountedLoss(discount=lambda m: calls.append(1) or 1 / m)
    first = loss.tables(5, 1000).discount
    assert loss.tables(3, 900).discount is first
    assert len(calls) == 1
    loss.tables(5, 10_000)
    assert len(calls) == 2


def test_logarithms_evaluated_at_every_use_give_what_the_table_gives(rng: np.random.Generator) -> None:
    class Untabulated(rw.NDCG):
        table_size = 0

    plain = Untabulated()
    assert plain.tables(5, 1000).discount.size <= 1
    for n in (50, 5000, 40_000):
        scores, relevant = rng.normal(size=n), rng.random(n) < 0.01 + 1 / n
        for method in ("auto", "chakrabarti", "dynamic", "mohapatra2014", "quicksort", "yue"):
            found = rw.structured_hinge(scores, relevant, plain, method=method)
            expected = rw.structured_hinge(scores, relevant, "ndcg", method=method)
            assert found.value == pytest.approx(expected.value, rel=VALUE_RTOL)


def test_a_discount_of_ones_own_equal_to_a_built_in_one_gives_the_same(rng: np.random.Generator) -> None:
    # Beyond 65,536 places the built-in loss has no table.
    scores, relevant = rng.normal(size=150_000), rng.random(150_000) < 0.001
    for own, name in [
        (rw.DiscountedLoss(lambda k: k, lambda m: 1 / m), "ap"),
        (rw.DiscountedLoss(discount=lambda m: 1 / np.log2(1 + m)), "ndcg"),
        (rw.NDCG(discount=lambda m: 1 / np.log2(1 + m)), "ndcg"),
        (rw.DiscountedLoss(lambda k: k == 1, np.reciprocal), "mrr"),
    ]:
        found, expected = (rw.structured_hinge(scores, relevant, loss) for loss in (own, name))
        assert found.value == pytest.approx(expected.value, rel=VALUE_RTOL)
        assert found.loss == pytest.approx(expected.loss, rel=VALUE_RTOL)


def _by_cases(m: float) -> float:
    if m < 2:
        return 1.0
    return 1 / math.log2(1 + m)


@pytest.mark.parametrize(
    ("one_by_one", "array"),
    [
        (lambda m: 1 / math.log2(1 + m), lambda m: 1 / np.log2(1 + m)),
        (_by_cases, lambda m: 1 / np.log2(1 + m)),
        (lambda m: math.exp(-m / 9), lambda m: np.exp(-m / 9)),
        (lambda m: 2.0, lambda m: np.full(np.shape(m), 2.0)),
    ],
    ids=["math.log2", "if-else", "math.exp", "constant"],
)
def test_functions_may_take_one_number_at_a_time(one_by_one: Any, array: Any, rng: np.random.Generator) -> None:
    scores, relevant = rng.normal(size=200), rng.random(200) < 0.2
    found, expected = (
        rw.structured_hinge(scores, relevant, rw.DiscountedLoss(discount=discount)) for discount in (one_by_one, array)
    )
    assert found.value == pytest.approx(expected.value, rel=RTOL)
    weights = [rw.DiscountedLoss(weight=f, discount=np.reciprocal).tables(9, 9).weight for f in (one_by_one, array)]
    np.testing.assert_allclose(weights[0], weights[1], rtol=RTOL)


class Power(rw.DiscountedLoss):
    """A subclass, at module level so that it can be pickled."""

    name = "power"

    def __init__(self, exponent: float = 0.5) -> None:
        super().__init__()
        self.exponent = exponent

    def weight(self, k: Any) -> Any:
        return 1 / k

    def discount(self, m: Any) -> Any:
        return m**-self.exponent


BUILT_IN = [rw.AveragePrecision(), rw.NDCG(), rw.NDCG("chakrabarti"), rw.ReciprocalRank(), rw.AUC(), rw.ZeroOne()]
PICKLABLE = [*BUILT_IN, Power(2.0), rw.DiscountedLoss(discount=np.reciprocal, name="mine")]
COPIES: dict[str, Callable[[rw.Loss], rw.Loss]] = {
    "pickle": lambda loss: pickle.loads(pickle.dumps(loss)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("loss", PICKLABLE, ids=lambda loss: f"{loss!r}-{loss.name}")
def test_a_copy_of_a_loss_is_the_same_loss(loss: rw.Loss, how: str) -> None:
    method = "exhaustive" if loss == rw.NDCG("chakrabarti") else "auto"

    def hinge(which: rw.Loss) -> float:
        return rw.structured_hinge([1.0, 3.0, 2.0, 0.0], [True, False, True, False], which, method=method).value

    before = hinge(loss)
    twin = COPIES[how](loss)
    assert twin is not loss
    assert (type(twin), twin.name, repr(twin)) == (type(loss), loss.name, repr(loss))
    assert hinge(twin) == before == hinge(loss)


def test_tables_grow_safely_under_many_threads() -> None:
    loss = Power(0.5)
    start = threading.Barrier(8)

    def use(k: int) -> bool:
        start.wait()
        fine = True
        for n in range(100 + k, 20_000, 997):
            tables = loss.tables(n // 3, n)
            fine &= tables.weight.size >= n // 3 and tables.discount.size > n
            fine &= math.isclose(tables.discount[n], n**-0.5, rel_tol=RTOL)
            fine &= math.isclose(tables.weight[n // 3 - 1], 1 / (n // 3), rel_tol=RTOL)
        return fine

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))


def test_losses_of_the_first_places_have_names_and_keep_their_tables() -> None:
    assert as_loss("ndcg@10") is as_loss("ndcg@10")
    assert repr(as_loss("ndcg@10")) == "NDCG(k=10)"
    assert (rw.AveragePrecision(100).name, rw.ReciprocalRank(k=3).name) == ("ap@100", "mrr@3")
    assert repr(rw.PrecisionAt(5)) == "PrecisionAt(k=5)"
    assert rw.NDCG(k=3, gain="linear").gain == "linear"
    assert rw.NDCG(k=3).discounts(np.array([3, 4]), 4).tolist() == [0.5, 0.0]
    loss = pickle.loads(pickle.dumps(as_loss("ap@7")))
    assert rw.ranking_loss([1.0, 2.0, 0.0], [0, 1, 1], loss) == rw.ranking_loss([1.0, 2.0, 0.0], [0, 1, 1], "ap@7")


@pytest.mark.parametrize("loss", ["f1", as_metric("f1")], ids=["name", "metric"])
def test_f1_is_a_metric_that_cannot_be_trained_for(loss: Any) -> None:
    assert not isinstance(as_metric("f1"), rw.Loss)
    assert isinstance(as_metric("ap"), rw.Loss)
    for train in (rw.structured_hinge, rw.smooth_loss, rw.error_driven_loss, rw.ranking_loss, rw.check_qs_suitable):
        with pytest.raises(ValueError, match=r"f1 .*cannot be trained for; train for 'ap' and choose the threshold"):
            train([1.0, 0.0], [True, False], loss) if train is not rw.check_qs_suitable else train(loss, 1, 1)
    with pytest.raises(ValueError, match=r"f1 .*cannot be trained for; .*TunedThresholdClassifierCV"):
        rw.RankSVM(loss).fit([[0.0], [1.0]], [0, 1])


def test_other_things_are_no_losses() -> None:
    for name in ("map", "map@10"):
        with pytest.raises(ValueError, match=r"unknown loss .*; use one of 'ap', 'ndcg', 'mrr', 'auc', .*'ndcg@10'"):
            as_loss(name)
    for wrong in (None, 3, rw.NDCG, np.reciprocal):
        with pytest.raises(TypeError, match=r"loss must be a name or a Loss, got .*DiscountedLoss"):
            as_loss(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"unknown discount 'ln'; use 'log2', 'chakrabarti' or a function"):
        rw.NDCG(discount="ln")
    with pytest.raises(TypeError, match=r"has no discount; pass discount="):
        rw.check_qs_suitable(rw.DiscountedLoss(), 2, 2)
    for k in (0, -1, 2.5, True, "3"):
        for make in (rw.AveragePrecision, rw.ReciprocalRank, rw.PrecisionAt, lambda k: rw.NDCG(k=k)):
            with pytest.raises(ValueError, match="k must be a whole number of places, at least 1"):
                make(k)
