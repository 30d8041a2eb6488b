"""LatentRankSVM: with one candidate a bag it is RankSVM; it begins where it is told; scikit-learn and files keep it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_problems import LOSSES, ROUNDING, ZEROS, as_whole, objective, planted
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankwise as rw
from rankwise.io import read_model, write_model
from rankwise.latent import Bags, training

METHODS = ("decision_function", "best_candidate", "candidate_scores", "predict", "rank")
QUERIES: dict[str, dict[str, Any]] = {
    "one query": {},
    "queries": {"qid": np.arange(60) % 4},
    "weights": {"qid": np.arange(60) % 4, "query_weight": 1.0 + np.arange(60) % 4},
}


@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_with_one_candidate_a_bag_it_is_rank_svm(loss: str, queries: str, route: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4)) + 0.5
    y = (X[:, 0] + rng.normal(size=60) > 0.7).astype(int)
    plain = rw.RankSVM(loss, 3.0, tol=1e-8, scale=0.7).fit(X, y, **QUERIES[queries])
    init = "mean" if route == "all candidates" else "first"
    model = rw.LatentRankSVM(loss, 3.0, tol=1e-8, scale=0.7, init=init).fit(X[:, None], y, **QUERIES[queries])
    assert model.converged_
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-8)
    radius = 2.0 * np.sqrt(2.0 * 1e-8 * plain.objective_)  # F is 1-strongly convex
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=radius)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=30.0 * radius)
    spread = model.decision_function(X[:, None]) - plain.decision_function(X)
    assert np.abs(spread).max() < 100.0 * radius
    assert not model.best_candidate(X[:, None]).any()
    assert model.n_iter_ == 1


def test_it_finds_the_candidates_that_make_bags_positive(route: str) -> None:
    (bags, y, witness), (fresh, truth, _) = planted(), planted(seed=1)
    for loss in LOSSES:
        model = rw.LatentRankSVM(loss, 10.0).fit(bags, y)
        assert (model.best_candidate(bags)[y] == witness[y]).mean() > 0.9
        assert rw.metrics.average_precision(model.decision_function(fresh), truth) > 0.9
        assert model.score(fresh, truth) > 0.85


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_scores_are_those_of_the_best_candidate(loss: str) -> None:
    bags, y, _ = planted()
    model = rw.LatentRankSVM(loss, 1.0, init="first").fit(bags, y)
    by_bag = [bag @ model.coef_[0] + model.intercept_[0] for bag in bags]
    np.testing.assert_allclose(model.candidate_scores(bags), np.concatenate(by_bag), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(model.decision_function(bags), [s.max() for s in by_bag], rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(model.best_candidate(bags), [s.argmax() for s in by_bag])
    order = np.argsort(-model.decision_function(bags), kind="stable")
    np.testing.assert_array_equal(model.rank(bags)[order], 1 + np.arange(60))
    np.testing.assert_array_equal(model.predict(bags), model.decision_function(bags) > 0)
    assert 0 < model.predict(bags).sum() < 60
    with pytest.raises(ValueError, match=r"bags have 4 features, but LatentRankSVM is expecting 3"):
        model.predict([np.ones((2, 4))])
    for method in METHODS:
        assert getattr(model, method)(as_whole(bags)[[]]).shape == (0,)
    without = rw.LatentRankSVM(loss, 1.0, fit_intercept=False).fit(bags, y)
    assert (without.intercept_.tolist(), without.coef_.shape) == ([0.0], (1, 3))


@pytest.mark.parametrize("labels", [("bad", "good"), (-1, 1), (1.0, 2.0), (False, True)], ids=str)
def test_labels_of_any_two_classes_come_back(labels: tuple[Any, Any], tmp_path: Path) -> None:
    bags, y, _ = planted()
    plain = rw.LatentRankSVM(C=1.0).fit(bags, y)
    model = rw.LatentRankSVM(C=1.0).fit(bags, np.array(labels)[y.astype(int)])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.classes_.tolist() == list(labels)
    np.testing.assert_array_equal(model.predict(bags) == labels[1], plain.predict(bags))
    model.save(tmp_path / "m.rw")
    assert rw.load(tmp_path / "m.rw").predict(bags).tolist() == model.predict(bags).tolist()


def test_grids_and_folds_go_over_lists_and_over_bags_alike() -> None:
    listed, y, _ = planted()
    bags = as_whole(listed)
    found = []
    for form in (listed, bags, Bags(csr_matrix(bags.features), bags.offsets)):
        search = GridSearchCV(rw.LatentRankSVM(), {"C": [0.1, 1.0], "loss": ["ap", "auc"]}, cv=3, error_score="raise")
        search.fit(form, y)
        scores = cross_val_score(rw.LatentRankSVM(C=1.0), form, y, cv=3, scoring="average_precision")
        assert scores.min() > 0.8
        assert search.best_estimator_.predict(form).shape == (60,)
        found.append(np.append(search.cv_results_["mean_test_score"], scores))
    np.testing.assert_allclose(found[1:], [found[0]] * 2)


@pytest.mark.parametrize(
    "model",
    [
        rw.LatentRankSVM(),
        rw.LatentRankSVM("zero-one", 2, init="random"),
        rw.LatentRankSVM(init=np.zeros(60, int), fit_intercept=False),
        rw.LatentRankSVM(init=np.array([1.0, 0.0, 0.0]), random_state=3),
        rw.LatentRankSVMCV("auc", Cs=[0.1, 1.0], cv=2, init="random"),
        rw.LatentRankSVMCV(Cs=2, cv=2),
    ],
    ids=["default", "zero-one", "candidates", "coefficients", "cv", "cv-grid"],
)
def test_a_model_comes_back_whole(model: Any, tmp_path: Path) -> None:
    bags, y, _ = planted()
    model = clone(model).fit(bags, y)
    model.save(tmp_path / "m.rw")
    found = rw.load(tmp_path / "m.rw")
    assert type(found) is type(model)
    ours, theirs = ({name: value for name, value in vars(one).items() if name[-1] == "_"} for one in (model, found))
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        np.testing.assert_equal(theirs[name], value, err_msg=name)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(found, method)(bags), getattr(model, method)(bags))
    np.testing.assert_array_equal(clone(found).fit(bags, y).coef_, model.coef_)
    file = read_model(tmp_path / "m.rw")  # as 0.2.0 wrote it, with what is gone
    file.header["params"] |= {"self_paced": 0.5, "init": ["mean", "first"]}
    gone = {"starts_": np.array([1.0, 2.0]), "history.positives": np.full(model.n_iter_, 20)}
    write_model(tmp_path / "old.rw", file.kind, file.header, file.arrays | gone)
    found = rw.load(tmp_path / "old.rw")
    np.testing.assert_array_equal(found.decision_function(bags), model.decision_function(bags))
    assert not hasattr(found, "starts_")


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        (np.ones(60), ValueError, "one class"),
        (np.arange(60) % 3, ValueError, "Only binary"),
        (np.arange(59) % 2, ValueError, "60 bags, but 59 labels; pass one label per bag"),
        (np.ones((60, 2)), ValueError, "1d array"),
        (None, ValueError, "y"),
    ],
    ids=["one class", "three", "too few", "two columns", "none"],
)
def test_what_are_no_labels_is_refused(y: Any, error: type[Exception], match: str) -> None:
    for model in (rw.LatentRankSVM(), rw.LatentRankSVMCV()):
        with pytest.raises(error, match=match):
            model.fit(planted().bags, y)
    with pytest.warns(DataConversionWarning):
        rw.LatentRankSVM(C=1.0).fit(planted().bags, planted().y[:, None])


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"C": 0.0}, "C must be a positive number"),
        ({"outer_tol": 0.0}, "outer_tol must be a positive number"),
        ({"max_outer": 0}, "max_outer must be an integer, at least 1"),
        ({"loss": "precision"}, "precision needs the last place that counts"),
        ({"scale": -1.0}, "scale must be finite and at least 0"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"cv": 1}, "cv must be at least 2, got 1"),
        ({"cv": 21}, "cv=21 needs at least 21 samples in the smaller class, but there are only 20"),
        ({"Cs": [1.0, 0.5]}, "Cs must be positive numbers in ascending order"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"scoring": "beauty"}, "beauty"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], match: str) -> None:
    bags, y, _ = planted()
    models = [model for model in (rw.LatentRankSVM(), rw.LatentRankSVMCV()) if set(parameters) <= {*model.get_params()}]
    assert models
    for model in models:
        with pytest.raises(ValueError, match=match):
            model.set_params(**parameters).fit(bags, y)
        with pytest.raises(NotFittedError):
            model.predict(bags)


@pytest.mark.parametrize("at", [4, 25, 60])
def test_ctrl_c_keeps_the_best_model_so_far(at: int, route: str, interrupted: Any) -> None:
    bags, y, _ = planted(200, shift=2.0)
    model = rw.LatentRankSVM(C=100.0, tol=1e-6, outer_tol=1e-9)
    with interrupted(lambda k: k == at), pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    if not hasattr(model, "coef_"):  # nothing was learnt yet
        assert at == 4
        return
    assert model.objective_ == pytest.approx(objective(bags, y, "ap", 100.0, model.coef_[0]))
    assert model.predict(bags).shape == (200,)


def test_progress_is_shown_where_asked_for_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    bags, y, _ = planted()
    for model in (rw.LatentRankSVM(C=1.0), rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=2)):
        model.fit(bags, y)
        assert capsys.readouterr() == ("", "")
        model.set_params(verbose=1).fit(bags, y)
        out, err = capsys.readouterr()
        assert out == ""
        if isinstance(model, rw.LatentRankSVM):
            assert err.startswith("LatentRankSVM ap, C=1: start mean, step")
            assert err.endswith(f"s{os.linesep}")
        else:
            assert "LatentRankSVMCV, C = 0.1: ap " in err


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """By start: the candidates and the coefficients that it began with."""
    seen = []
    real = training.minimise

    def minimise(problem: Any, state: Any, after: Any) -> None:
        seen.append((state.fixed - problem.bags.starts, state.coef.copy()))
        real(problem, state, after)

    monkeypatch.setattr(training, "minimise", minimise)
    return seen


@pytest.mark.filterwarnings(ZEROS)
def test_every_name_begins_where_it_says(begun: Any) -> None:
    bags, y, _ = planted(30, 4, 3.0, most=5)
    for init in ("first", "random", "mean"):
        rw.LatentRankSVM(C=1.0, init=init).fit(bags, y)
    (first, v), (random, u), (mean, w) = begun
    assert not np.concatenate([first, v, u]).any()
    assert (random < [len(bag) for bag in bags]).all()
    assert np.unique(random).size > 2
    np.testing.assert_array_equal(mean[y], np.array([np.argmax(bag @ w) for bag in bags])[y])
    for seed in (0, 1):
        rw.LatentRankSVM(C=1.0, init="random", random_state=seed).fit(bags, y)
    np.testing.assert_array_equal(begun[3][0], random)
    assert (begun[4][0] != random).any()
    rw.LatentRankSVM("zero-one", C=1.0).fit(bags, y)
    means = np.array([bag.mean(axis=0) for bag in bags])
    of_ap, of_01 = (rw.RankSVM(loss, C=1.0).fit(means, y) for loss in ("ap", "zero-one"))
    np.testing.assert_allclose(w, of_ap.coef_[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(begun[5][1], [*of_01.coef_[0], of_01.intercept_[0] / 10.0], rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings(ZEROS)
def test_candidates_and_coefficients_are_taken_as_given(begun: Any) -> None:
    bags, y, _ = planted(30, 4, 3.0, most=5)
    numbers, coef = np.array([len(bag) - 1 for bag in bags]), np.array([1.0, -0.5, 0.25])
    linear = LogisticRegression().fit(np.concatenate(bags), np.arange(sum(map(len, bags))) % 2)
    for init in (numbers, tuple(numbers.astype(np.uint8)), coef.tolist(), coef[None], linear):
        rw.LatentRankSVM(C=1.0, init=init).fit(bags, y)
    for candidates, v in begun[:2]:
        np.testing.assert_array_equal(candidates[y], numbers[y])
        assert not v.any()
    for (candidates, v), expected in zip(begun[2:], (coef, coef, linear.coef_[0]), strict=True):
        np.testing.assert_array_equal(v, expected)
        np.testing.assert_array_equal(candidates[y], np.array([np.argmax(bag @ v) for bag in bags])[y])
    begun.clear()
    rw.LatentRankSVM("zero-one", C=1.0, init=coef).fit(bags, y)
    for one in ([1, 0, 0], [1.0, 0.0, 0.0]):  # as many bags as features: whole numbers are candidates
        rw.LatentRankSVM(C=1.0, init=one).fit(bags[:3], [True, False, False])
    assert [v.tolist() for _, v in begun] == [[*coef, 0.0], [0.0] * 3, [1.0, 0.0, 0.0]]
    found = rw.LatentRankSVM(C=1.0).fit(bags, y)
    again = rw.LatentRankSVM(C=1.0, init=found).fit(bags, y)
    assert again.objective_ <= found.objective_
    assert again.n_iter_ == 1


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "name": ("whole", ValueError, r"unknown init='whole'; use one of 'first', 'random', 'mean'"),
    "none": (None, TypeError, "init must be an array, got NoneType"),
    "empty": ([], ValueError, "init: 0 coefficients for 3 features"),
    "names": (["mean", "first"], ValueError, r"init has shape \(2,\) and dtype <U5; pass the number of a candidate"),
    "too few": (np.zeros(3, int), ValueError, r"init has shape \(3,\) and dtype int64; pass the number .* 30 bags"),
    "too high": (np.full(30, 99), ValueError, r"init: bag 0 has no candidate 99; pass a number from 0 to \d"),
    "negative": (-np.ones(30, int), ValueError, r"init: bag 0 has no candidate -1"),
    "coefficients": (np.ones(4), ValueError, "init: 4 coefficients for 3 features"),
    "not finite": (np.array([1.0, np.nan, 0.0]), ValueError, "init: 3 coefficients for 3 features; .* finite"),
    "booleans": (np.zeros(30, bool), ValueError, "init has shape .* and dtype bool"),
    "other features": (LogisticRegression().fit(np.eye(4), [0, 1, 0, 1]), ValueError, "4 coefficients for 3 features"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_start_is_refused(wrong: str) -> None:
    bags, y, _ = planted(30)
    init, error, match = WRONG[wrong]
    for model in (rw.LatentRankSVMCV(Cs=2, cv=2, init=init), rw.LatentRankSVM(C=1.0, init=init)):
        with pytest.raises(error, match=match):
            model.fit(bags, y)
