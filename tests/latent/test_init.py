"""Where the alternation begins: names, candidates, coefficients, models, and lists of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import rankwise as rw
from rankwise.latent import Bags, training
from rankwise.latent.initial import bag_means
from rankwise.latent.state import State

Array = NDArray[np.float64]
# Zeros may be a minimum: it is said, and not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:LatentRankSVM found only coefficients of 0")


def data(n: int = 30, seed: int = 4) -> tuple[list[Array], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(rng.integers(2, 6), 3)) for _ in range(n)]
    y = np.arange(n) % 3 == 0
    for bag, positive in zip(bags, y, strict=True):
        bag[rng.integers(len(bag)), 0] += 3.0 * positive
    return bags, y


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, NDArray[np.int64], Array]]:
    """By start: the problem, the candidates and the coefficients that it began with."""
    seen = []
    real = training.minimise

    def minimise(problem: Any, state: State, after: Any) -> None:
        seen.append((problem, state.fixed - problem.bags.starts, state.coef.copy()))
        real(problem, state, after)

    monkeypatch.setattr(training, "minimise", minimise)
    return seen


def test_every_name_begins_where_it_says(begun: Any) -> None:
    bags, y = data()
    for init in ("first", "centre", "random", "mean"):
        rw.LatentRankSVM(C=1.0, init=init).fit(bags, y)
    (_, first, v), (_, centre, u), (_, random, z), (_, mean, w) = begun
    assert not first.any()
    assert not v.any()
    assert not u.any()
    assert not z.any()
    nearest = [np.argmin(np.linalg.norm(bag - bag.mean(axis=0), axis=1)) for bag in bags]
    np.testing.assert_array_equal(centre[y], np.array(nearest)[y])
    assert (random < [len(bag) for bag in bags]).all()
    assert np.unique(random).size > 2
    plain = rw.RankSVM(C=1.0).fit(np.array([bag.mean(axis=0) for bag in bags]), y)
    np.testing.assert_allclose(w, plain.coef_[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(mean[y], np.array([np.argmax(bag @ w) for bag in bags])[y])


def test_the_mean_start_has_an_intercept_where_the_loss_has(begun: Any) -> None:
    bags, y = data()
    rw.LatentRankSVM("zero-one", C=1.0).fit(bags, y)
    plain = rw.RankSVM("zero-one", C=1.0).fit(np.array([bag.mean(axis=0) for bag in bags]), y)
    np.testing.assert_allclose(begun[0][2], [*plain.coef_[0], plain.intercept_[0] / 10.0], rtol=1e-6, atol=1e-9)


def test_chance_follows_the_seed_and_differs_by_start(begun: Any) -> None:
    bags, y = data()
    for seed in (0, 0, 1):
        rw.LatentRankSVM(C=1.0, init=["random", "random"], random_state=seed).fit(bags, y)
    starts = [candidates for _, candidates, _ in begun]
    np.testing.assert_array_equal(starts[0], starts[2])
    np.testing.assert_array_equal(starts[1], starts[3])
    for one, other in ((0, 1), (0, 4), (1, 5)):
        assert (starts[one] != starts[other]).any()


def test_candidates_and_coefficients_are_taken_as_given(begun: Any) -> None:
    bags, y = data()
    numbers = np.array([len(bag) - 1 for bag in bags])
    coef = np.array([1.0, -0.5, 0.25])
    linear = LogisticRegression().fit(np.concatenate(bags), np.arange(sum(map(len, bags))) % 2)
    for init in (numbers, numbers.tolist(), tuple(numbers.astype(np.uint8)), coef, coef.tolist(), coef[None], linear):
        rw.LatentRankSVM(C=1.0, init=init).fit(bags, y)
    for _, candidates, v in begun[:3]:
        np.testing.assert_array_equal(candidates[y], numbers[y])
        assert not v.any()
    for _, candidates, v in begun[3:6]:
        np.testing.assert_array_equal(v, coef)
        np.testing.assert_array_equal(candidates[y], np.array([np.argmax(bag @ coef) for bag in bags])[y])
    np.testing.assert_array_equal(begun[6][2], linear.coef_[0])
    begun.clear()
    rw.LatentRankSVM("zero-one", C=1.0, init=coef).fit(bags, y)
    np.testing.assert_array_equal(begun[0][2], [*coef, 0.0])


def test_the_ranker_of_means_may_be_given_and_a_fitted_model_begins_where_it_ended() -> None:
    bags, y = data()
    plain = rw.RankSVM(C=1.0).fit(np.array([bag.mean(axis=0) for bag in bags]), y)
    by_name, by_model = (rw.LatentRankSVM(C=1.0, init=init).fit(bags, y) for init in ("mean", plain))
    assert by_name.objective_ == pytest.approx(by_model.objective_, rel=1e-9)
    again = rw.LatentRankSVM(C=1.0, init=by_name).fit(bags, y)
    assert again.objective_ <= by_name.objective_
    assert again.n_iter_ == 1


def test_of_several_starts_the_lowest_objective_wins(begun: Any) -> None:
    bags, y = data()
    linear = LogisticRegression().fit(np.concatenate(bags), np.arange(sum(map(len, bags))) % 2)
    numbers = np.zeros(30, int)
    inits: list[Any] = ["mean", "first", "centre", "random", numbers, numbers.tolist(), [0.0, 1.0, 0.0], linear]
    others = [init for number, init in enumerate(inits) if number != 3]  # chance would be another
    singles = [rw.LatentRankSVM(C=1.0, init=init).fit(bags, y) for init in others]
    winner = min(singles, key=lambda single: single.objective_)
    for kind in (list, tuple):
        model = rw.LatentRankSVM(C=1.0, init=kind(inits)).fit(bags, y)
        assert model.starts_.shape == (8,)
        assert model.objective_ == model.starts_.min()
        assert model.starts_[4] == model.starts_[5] == model.starts_[1]
        np.testing.assert_allclose(np.delete(model.starts_, 3), [single.objective_ for single in singles], rtol=1e-12)
        assert np.ptp(model.starts_) > 0
        if model.starts_.argmin() != 3:
            np.testing.assert_array_equal(model.coef_, winner.coef_)


def test_two_models_are_two_starts() -> None:
    bags, y = data()
    X = np.concatenate(bags)
    models = [LogisticRegression().fit(X, np.arange(len(X)) % k == 0) for k in (2, 3)]
    assert rw.LatentRankSVM(C=1.0, init=models).fit(bags, y).starts_.shape == (2,)
    assert rw.LatentRankSVM(C=1.0, init=models[:1]).fit(bags, y).starts_.shape == (1,)


def test_a_list_of_numbers_is_one_start_and_a_list_of_lists_several() -> None:
    bags, y = data()
    zeros = [0] * 30
    assert rw.LatentRankSVM(C=1.0, init=zeros).fit(bags, y).starts_.shape == (1,)
    assert rw.LatentRankSVM(C=1.0, init=[zeros]).fit(bags, y).starts_.shape == (1,)
    assert rw.LatentRankSVM(C=1.0, init=[zeros, zeros]).fit(bags, y).starts_.shape == (2,)
    assert rw.LatentRankSVM(C=1.0, init=[0.0, 1.0, 0.0]).fit(bags, y).starts_.shape == (1,)
    three = bags[:3]  # as many bags as features: whole numbers are candidates, others coefficients
    by_candidate, by_coef = (
        rw.LatentRankSVM(C=1.0, init=i, max_outer=9).fit(three, y[:3]) for i in ([0] * 3, [0.0] * 3)
    )
    assert by_candidate.starts_.shape == by_coef.starts_.shape == (1,)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "name": ("whole", ValueError, r"unknown init='whole'; use 'first', 'centre', 'random', 'mean', candidates or"),
    "name in a list": (["first", "whole"], ValueError, r"unknown init\[1\]='whole'"),
    "none": (None, TypeError, "init must be an array, got NoneType"),
    "empty": ([], ValueError, "init is empty; pass a start"),
    "empty tuple": ((), ValueError, "init is empty"),
    "too few": (np.zeros(3, int), ValueError, r"init has shape \(3,\) and dtype int64; pass the number .* 30 bags"),
    "too many": (np.zeros(31, int), ValueError, r"init has shape \(31,\)"),
    "too high": (np.full(30, 99), ValueError, r"init: bag 0 has no candidate 99; pass a number from 0 to \d"),
    "one too high": (np.array([len(bag) for bag in data()[0]]), ValueError, r"init: bag 0 has no candidate \d"),
    "negative": (-np.ones(30, int), ValueError, r"init: bag 0 has no candidate -1"),
    "in a list": (["first", np.full(30, 99)], ValueError, r"init\[1\]: bag 0 has no candidate 99"),
    "coefficients": (np.ones(4), ValueError, "init: 4 coefficients for 3 features"),
    "not finite": (np.array([1.0, np.nan, 0.0]), ValueError, "init: 3 coefficients for 3 features; .* finite"),
    "booleans": (np.zeros(30, bool), ValueError, "init has shape .* and dtype bool"),
    "complex": (np.zeros(3, complex), ValueError, "init has shape .* and dtype complex"),
    "one number": (3, ValueError, r"init has shape \(\)"),
    "object": (object(), ValueError, "init has shape .* and dtype object"),
    "ragged": ([[0, 1], "first"], ValueError, r"init\[0\] has shape \(2,\)"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("search", [False, True], ids=["fit", "cv"])
def test_what_is_no_start_is_refused(wrong: str, search: bool) -> None:
    bags, y = data()
    init, error, match = WRONG[wrong]
    model = rw.LatentRankSVMCV(Cs=2, cv=2, init=init) if search else rw.LatentRankSVM(C=1.0, init=init)
    with pytest.raises(error, match=match):
        model.fit(bags, y)


def test_a_model_of_other_features_is_no_start() -> None:
    bags, y = data()
    linear = LogisticRegression().fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="init: 4 coefficients for 3 features"):
        rw.LatentRankSVM(init=linear).fit(bags, y)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, np.nan, np.inf, True, "half"])
def test_a_share_out_of_bounds_is_refused(share: Any) -> None:
    bags, y = data()
    for model in (rw.LatentRankSVM(self_paced=share), rw.LatentRankSVMCV(self_paced=share)):
        with pytest.raises(ValueError, match="self_paced must be a fraction above 0 and at most 1"):
            model.fit(bags, y)


def test_a_tiny_share_begins_with_one_positive_and_takes_few_steps() -> None:
    bags, y = data()
    model = rw.LatentRankSVM(C=1.0, self_paced=1e-100).fit(bags, y)
    assert model.history_["positives"][1] == 1
    assert model.n_iter_ < 50


def test_the_easiest_positives_are_of_queries_that_count() -> None:
    bags, y = data()
    qid = np.arange(30) % 2
    qid[[0, 3]] = 9, 8  # each a query of its own, without negatives, and easy
    bags[0][0, 0] += 50.0
    bags[3][0, 0] += 40.0
    model = rw.LatentRankSVM(C=1.0, self_paced=0.05).fit(bags, y, qid)
    assert model.converged_
    weight = np.where(qid == qid[6], 0.0, 1.0)
    bags[6][0, 0] += 100.0
    assert rw.LatentRankSVM(C=1.0, self_paced=0.05).fit(bags, y, qid, weight).converged_


@pytest.mark.parametrize("sparse", [False, True])
def test_means_are_those_of_the_bags(sparse: bool) -> None:
    bags, _ = data()
    matrix = np.concatenate(bags)
    whole = Bags(csr_matrix(matrix) if sparse else matrix.astype(np.float32), np.cumsum([0, *map(len, bags)]))
    means = bag_means(whole[::-2])
    found = means.toarray() if sparse else means
    np.testing.assert_allclose(found, [bag.mean(axis=0) for bag in bags[::-2]], atol=1e-6)
