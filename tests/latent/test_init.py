"""Where the alternation begins: names, candidates, coefficients and models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import rankwise as rw
from rankwise.latent import Bags, training
from rankwise.latent.bags import bag_means
from rankwise.latent.cccp import State

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


def test_chance_follows_the_seed(begun: Any) -> None:
    bags, y = data()
    for seed in (0, 0, 1):
        rw.LatentRankSVM(C=1.0, init="random", random_state=seed).fit(bags, y)
    starts = [candidates for _, candidates, _ in begun]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert (starts[0] != starts[2]).any()


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
    begun.clear()
    for one in ([1, 0, 0], [1.0, 0.0, 0.0]):  # as many bags as features: whole numbers are candidates
        rw.LatentRankSVM(C=1.0, init=one).fit(bags[:3], y[:3])
    assert [v.tolist() for _, _, v in begun] == [[0.0] * 3, [1.0, 0.0, 0.0]]


def test_the_ranker_of_means_may_be_given_and_a_fitted_model_begins_where_it_ended() -> None:
    bags, y = data()
    plain = rw.RankSVM(C=1.0).fit(np.array([bag.mean(axis=0) for bag in bags]), y)
    by_name, by_model = (rw.LatentRankSVM(C=1.0, init=init).fit(bags, y) for init in ("mean", plain))
    assert by_name.objective_ == pytest.approx(by_model.objective_, rel=1e-9)
    again = rw.LatentRankSVM(C=1.0, init=by_name).fit(bags, y)
    assert again.objective_ <= by_name.objective_
    assert again.n_iter_ == 1


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "name": ("whole", ValueError, r"unknown init='whole'; use 'first', 'centre', 'random', 'mean', candidates or"),
    "none": (None, TypeError, "init must be an array, got NoneType"),
    "empty": ([], ValueError, "init: 0 coefficients for 3 features"),
    "names": (["mean", "first"], ValueError, "init is a list of starts; fit a model for each, and keep that with the"),
    "lists": (([0] * 30, [0] * 30), ValueError, "init is a list of starts"),
    "arrays": ([np.zeros(3)], ValueError, "init is a list of starts"),
    "too few": (np.zeros(3, int), ValueError, r"init has shape \(3,\) and dtype int64; pass the number .* 30 bags"),
    "too many": (np.zeros(31, int), ValueError, r"init has shape \(31,\)"),
    "too high": (np.full(30, 99), ValueError, r"init: bag 0 has no candidate 99; pass a number from 0 to \d"),
    "one too high": (np.array([len(bag) for bag in data()[0]]), ValueError, r"init: bag 0 has no candidate \d"),
    "negative": (-np.ones(30, int), ValueError, r"init: bag 0 has no candidate -1"),
    "coefficients": (np.ones(4), ValueError, "init: 4 coefficients for 3 features"),
    "not finite": (np.array([1.0, np.nan, 0.0]), ValueError, "init: 3 coefficients for 3 features; .* finite"),
    "booleans": (np.zeros(30, bool), ValueError, "init has shape .* and dtype bool"),
    "complex": (np.zeros(3, complex), ValueError, "init has shape .* and dtype complex"),
    "one number": (3, ValueError, r"init has shape \(\)"),
    "object": (object(), ValueError, "init has shape .* and dtype object"),
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


@pytest.mark.parametrize("sparse", [False, True])
def test_means_are_those_of_the_bags(sparse: bool) -> None:
    bags, _ = data()
    matrix = np.concatenate(bags)
    whole = Bags(csr_matrix(matrix) if sparse else matrix.astype(np.float32), np.cumsum([0, *map(len, bags)]))
    means = bag_means(whole[::-2])
    found = means.toarray() if sparse else means
    np.testing.assert_allclose(found, [bag.mean(axis=0) for bag in bags[::-2]], atol=1e-6)
