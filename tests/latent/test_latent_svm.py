"""LatentRankSVM: with one candidate a bag it is RankSVM; scikit-learn takes it for a classifier; files keep it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankwise as rw
from rankwise.io import ModelFileError, read_model, write_model
from rankwise.latent import Bags, cccp
from rankwise.linear import task as task_module

Array = NDArray[np.float64]
LOSSES = ["ap", "ndcg", "mrr", "auc", "zero-one"]
ROUNDING = 1e-9


def planted(n: int = 60, seed: int = 0, shift: float = 5.0) -> tuple[list[Array], NDArray[np.bool_], NDArray[np.int64]]:
    """Bags, labels, and the candidate that makes a bag positive."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) < n // 3)
    bags = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    witness = np.array([rng.integers(len(bag)) for bag in bags])
    for bag, positive, k in zip(bags, y, witness, strict=True):
        bag[k, 0] += shift * positive
    return bags, y, witness


@pytest.fixture(params=["all candidates", "working set"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cccp, "_SMALL", 0 if request.param == "working set" else 1 << 21)
    return str(request.param)


QUERIES: dict[str, Any] = {
    "one query": lambda n: {},
    "queries": lambda n: {"qid": np.arange(n) % 4},
    "weights": lambda n: {"qid": np.arange(n) % 4, "query_weight": 1.0 + np.arange(n) % 4},
}


@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_with_one_candidate_a_bag_it_is_rank_svm(loss: str, queries: str, route: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4)) + 0.5
    y = (X[:, 0] + rng.normal(size=60) > 0.7).astype(int)
    given = QUERIES[queries](60)
    plain = rw.RankSVM(loss, 3.0, tol=1e-8, scale=0.7).fit(X, y, **given)
    init = "mean" if route == "all candidates" else "first"
    model = rw.LatentRankSVM(loss, 3.0, tol=1e-8, scale=0.7, init=init).fit(X[:, None], y, **given)
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
    bags, y, witness = planted()
    for loss in LOSSES:
        model = rw.LatentRankSVM(loss, 10.0).fit(bags, y)
        assert (model.best_candidate(bags)[y] == witness[y]).mean() > 0.9
        fresh, truth, _ = planted(seed=1)
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


@pytest.mark.parametrize("labels", [("bad", "good"), (-1, 1), (1.0, 2.0), (False, True)], ids=str)
def test_labels_of_any_two_classes_come_back(labels: tuple[Any, Any], tmp_path: Path) -> None:
    bags, y, _ = planted()
    plain = rw.LatentRankSVM(C=1.0).fit(bags, y)
    model = rw.LatentRankSVM(C=1.0).fit(bags, np.array(labels)[y.astype(int)])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.classes_.tolist() == list(labels)
    assert set(model.predict(bags).tolist()) == set(labels)
    np.testing.assert_array_equal(model.predict(bags) == labels[1], plain.predict(bags))
    model.save(tmp_path / "m.rw")
    assert rw.load(tmp_path / "m.rw").predict(bags).tolist() == model.predict(bags).tolist()


def test_without_an_intercept_there_is_none() -> None:
    bags, y, _ = planted()
    for loss in ("ap", "zero-one"):
        model = rw.LatentRankSVM(loss, 1.0, fit_intercept=False).fit(bags, y)
        assert model.intercept_.tolist() == [0.0]
        assert model.coef_.shape == (1, 3)


def test_the_usual_C_follows_the_scale_of_the_features() -> None:
    bags, y, _ = planted()
    small, large = rw.LatentRankSVM().fit(bags, y), rw.LatentRankSVM().fit([1000.0 * bag for bag in bags], y)
    np.testing.assert_allclose(large.C_, 1e-6 * small.C_, rtol=1e-9)
    np.testing.assert_allclose(1000.0 * large.coef_, small.coef_, rtol=1e-6, atol=1e-9)


def test_scikit_learn_clones_it_and_asks_for_its_parameters() -> None:
    model = rw.LatentRankSVM("auc", 2.0, init="random", tol=1e-4, max_outer=7, n_threads=2)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert model.set_params(C=3.0).C == 3.0
    assert "init='random'" in repr(model)
    with pytest.raises(NotFittedError):
        again.decision_function([np.ones((1, 2))])
    with pytest.raises(NotFittedError):
        again.save("nowhere")


def test_grids_and_folds_go_over_lists_and_over_bags_alike() -> None:
    listed, y, _ = planted()
    bags = Bags(np.concatenate(listed), np.cumsum([0, *map(len, listed)]))
    sparse = Bags(csr_matrix(bags.features), bags.offsets)
    found = []
    for form in (listed, bags, sparse):
        search = GridSearchCV(rw.LatentRankSVM(), {"C": [0.1, 1.0], "loss": ["ap", "auc"]}, cv=3, error_score="raise")
        search.fit(form, y)
        scores = cross_val_score(rw.LatentRankSVM(C=1.0), form, y, cv=3, scoring="average_precision")
        assert scores.min() > 0.8
        assert search.best_estimator_.predict(form).shape == (60,)
        found.append((search.cv_results_["mean_test_score"], scores))
    for means, scores in found[1:]:
        np.testing.assert_allclose(means, found[0][0])
        np.testing.assert_allclose(scores, found[0][1])


def learnt(model: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.parametrize(
    "model",
    [
        rw.LatentRankSVM(),
        rw.LatentRankSVM("zero-one", 2, init="centre"),
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
    ours, theirs = learnt(model), learnt(found)
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        np.testing.assert_equal(theirs[name], value, err_msg=name)
    for method in ("decision_function", "best_candidate", "candidate_scores", "predict", "rank"):
        np.testing.assert_array_equal(getattr(found, method)(bags), getattr(model, method)(bags))
    np.testing.assert_array_equal(clone(found).fit(bags, y).coef_, model.coef_)
    damaged = tmp_path / "damaged.rw"
    damaged.write_bytes((tmp_path / "m.rw").read_bytes()[:-30])
    with pytest.raises(ModelFileError, match=r"damaged\.rw"):
        rw.load(damaged)


@pytest.mark.parametrize("model", [rw.LatentRankSVM(C=1.0), rw.LatentRankSVMCV(Cs=2, cv=2)], ids=["fit", "cv"])
def test_a_file_of_0_2_0_loads_without_what_is_gone(model: Any, tmp_path: Path) -> None:
    bags, y, _ = planted()
    model = clone(model).fit(bags, y)
    model.save(tmp_path / "m.rw")
    file = read_model(tmp_path / "m.rw")
    file.header["params"] |= {"self_paced": 0.5, "init": ["mean", "first"]}
    gone = {"starts_": np.array([1.0, 2.0]), "history.positives": np.full(model.n_iter_, 20)}
    write_model(tmp_path / "old.rw", file.kind, file.header, file.arrays | gone)
    found = rw.load(tmp_path / "old.rw")
    np.testing.assert_array_equal(found.decision_function(bags), model.decision_function(bags))
    assert not hasattr(found, "starts_")
    with pytest.raises(ValueError, match="init is a list of starts; fit a model for each"):
        found.fit(bags, y)


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
            model.fit(planted()[0], y)
    with pytest.warns(DataConversionWarning):
        rw.LatentRankSVM(C=1.0).fit(planted()[0], planted()[1][:, None])


def test_bags_of_another_width_are_not_judged() -> None:
    bags, y, _ = planted()
    model = rw.LatentRankSVM(C=1.0).fit(bags, y)
    with pytest.raises(ValueError, match=r"bags have 4 features, but LatentRankSVM is expecting 3"):
        model.predict([np.ones((2, 4))])
    whole = Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))
    for method in ("decision_function", "best_candidate", "candidate_scores", "predict", "rank"):
        assert getattr(model, method)(whole[[]]).shape == (0,)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"C": 0.0}, "C must be a positive number"),
        ({"tol": -1.0}, "tol must be a positive number"),
        ({"outer_tol": 0.0}, "outer_tol must be a positive number"),
        ({"max_outer": 0}, "max_outer must be an integer, at least 1"),
        ({"max_iter": 1.5}, "max_iter must be an integer"),
        ({"loss": "precision"}, "unknown loss"),
        ({"method": "magic"}, "method"),
        ({"scale": -1.0}, "scale must be finite and at least 0"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"random_state": None}, "random_state must be an integer"),
        ({"random_state": -1}, "random_state must be an integer"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], match: str) -> None:
    bags, y, _ = planted()
    for model in (rw.LatentRankSVM(), rw.LatentRankSVMCV()):
        if set(parameters) <= set(model.get_params()):
            with pytest.raises(ValueError, match=match):
                model.set_params(**parameters).fit(bags, y)


@pytest.mark.parametrize("k", [4, 25, 60])
def test_ctrl_c_keeps_the_best_model_so_far(k: int, route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y, _ = planted(200, shift=2.0)
    real, count = task_module.Inference.solve, [0]

    def hinge(*args: Any, **options: Any) -> Any:
        count[0] += 1
        if count[0] == k:
            raise KeyboardInterrupt
        return real(*args, **options)

    model = rw.LatentRankSVM(C=100.0, tol=1e-6, outer_tol=1e-9)
    monkeypatch.setattr(task_module.Inference, "solve", hinge)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    monkeypatch.setattr(task_module.Inference, "solve", real)
    if not hasattr(model, "coef_"):  # nothing was learnt yet
        assert k == 4
        return
    best = np.array([(bag @ model.coef_[0]).max() for bag in bags])
    value = 0.5 * float(model.coef_[0] @ model.coef_[0]) + 100.0 * rw.structured_hinge(best, y, "ap").value
    assert model.objective_ == pytest.approx(value)
    assert model.predict(bags).shape == (200,)


def test_an_event_ends_a_fit_after_its_round() -> None:
    bags, y, _ = planted()
    model = rw.LatentRankSVM(C=1.0, init="first")
    model._stop = threading.Event()
    model._stop.set()
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert model.coef_.shape == (1, 3)


def test_progress_is_shown_where_asked_for_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    bags, y, _ = planted()
    rw.LatentRankSVM(C=1.0).fit(bags, y)
    assert capsys.readouterr() == ("", "")
    rw.LatentRankSVM(C=1.0, verbose=1).fit(bags, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("LatentRankSVM ap, C=1: start mean, step")
    assert err.endswith(f"s{os.linesep}")
