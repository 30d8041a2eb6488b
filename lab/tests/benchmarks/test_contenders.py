"""Contenders of the benchmark of quality: how C is chosen, and that each ranks better than chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.benchmarks import contenders
from rankwise_lab.benchmarks.contenders import BASELINES, OURS, Contender, choose
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

ALL_CONTENDERS = (*BASELINES, *OURS)


class _OneGoodFeature:
    """Ranks perfectly with some C, else at random."""

    def __init__(self, good: bool) -> None:
        self.column = 0 if good else 1

    def fit(self, X: Any, y: NDArray[np.bool_], /) -> _OneGoodFeature:
        return self

    def decision_function(self, X: Any, /) -> NDArray[np.float64]:
        return np.asarray(X[:, self.column])


def _good_at(*good: float) -> Callable[[float, int], _OneGoodFeature]:
    return lambda C, seed: _OneGoodFeature(C in good)


Samples = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture
def one_good_feature(rng: np.random.Generator) -> Samples:
    y = np.arange(100) % 5 == 0
    return np.column_stack([y, rng.normal(size=100)]).astype(float), y


def test_the_best_C_is_chosen_and_the_smallest_of_equals(one_good_feature: Samples) -> None:
    best, found = choose(_good_at(4.0, 16.0), [64.0, 16.0, 0.25, 4.0, 1.0], *one_good_feature, 0)
    assert best == 4.0
    assert list(found) == [0.25, 1.0, 4.0, 16.0, 64.0]
    assert found[4.0] == found[16.0] == 1.0
    assert found[0.25] == found[1.0] < contenders.GIVE_UP
    everywhere, _ = choose(_good_at(1.0, 2.0, 3.0), [3.0, 2.0, 1.0], *one_good_feature, 0)
    assert everywhere == 1.0


def test_the_search_ends_after_two_bad_values_and_not_after_one(one_good_feature: Samples) -> None:
    best, found = choose(_good_at(2.0, 4.0, 7.0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], *one_good_feature, 0)
    assert best == 2.0
    assert list(found) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    model, C = contenders.tuned(_good_at(4.0), [1.0, 4.0], *one_good_feature, 0)
    assert C == 4.0
    assert model.column == 0


@pytest.fixture(scope="module")
def noisy() -> Samples:
    rng = np.random.default_rng(1)
    y = np.arange(160) % 4 == 0
    X = rng.normal(size=(160, 5))
    X[:, 0] += 1.5 * y
    X[:, 1] -= y
    return X, y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("contender", ALL_CONTENDERS, ids=lambda contender: contender.name)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_contenders_rank_better_than_chance(contender: Contender, form: Callable[[Any], Any], noisy: Samples) -> None:
    X, y = noisy
    model, C = contender.fit(form(X[:80]), y[:80], 3)
    scores = model.decision_function(form(X[80:]))
    assert scores.shape == (80,)
    if contender.name == "linear-ranker":
        assert C is None, "it has several"
    else:
        assert C is not None
        assert C > 0
    assert average_precision_score(y[80:], scores) > 0.25 + 0.2, "chance is a quarter"


def test_logistic_mean_ranks_as_the_mean_of_the_folds_logistic_regressions(noisy: Samples) -> None:
    (X, y), seed = noisy, 7
    (contender,) = (contender for contender in OURS if contender.name == "logistic-mean")
    model, _ = contender.fit(X, y, seed)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    mean_ap, averages = [], []
    for C in 4.0 ** np.arange(-9, 4):
        fits = [LogisticRegression(C=C, solver="newton-cholesky", max_iter=1000).fit(X[a], y[a]) for a, _ in folds]
        aps = [average_precision_score(y[b], f.decision_function(X[b])) for f, (_, b) in zip(fits, folds, strict=True)]
        spread = [f.decision_function(X[a]).std() for f, (a, _) in zip(fits, folds, strict=True)]
        mean_ap.append(np.mean(aps))
        averages.append(np.mean([f.coef_[0] / s for f, s in zip(fits, spread, strict=True)], axis=0))
    expected = X @ averages[int(np.argmax(mean_ap))]
    np.testing.assert_array_equal(np.argsort(model.decision_function(X)), np.argsort(expected))
