"""LatentRankSVMCV: C is chosen by bags left out; folds in threads give the same; Ctrl-C keeps what there is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_info, threadpool_limits

import rankwise as rw
from rankwise.latent import Bags, cccp, latent_svm
from rankwise.linear import cross_validation
from rankwise.linear import task as task_module
from rankwise.metrics import average_precision

Array = NDArray[np.float64]
# A C that is too small for anything to be learnt is part of a search.
pytestmark = pytest.mark.filterwarnings("ignore:LatentRankSVM found only coefficients of 0")


def data(n: int = 60, seed: int = 0, shift: float = 4.0, width: int = 3) -> tuple[list[Array], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) < n // 3)
    bags = [rng.normal(size=(rng.integers(2, 7), width)) for _ in y]
    for bag, positive in zip(bags, y, strict=True):
        bag[rng.integers(len(bag)), 0] += shift * positive
    return bags, y


def test_scores_are_those_of_models_fitted_to_the_other_bags() -> None:
    bags, y = data()
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    model = rw.LatentRankSVMCV(Cs=[0.01, 1.0], cv=folds, scoring="auc").fit(bags, y)
    assert model.scores_.shape == (2, 3)
    whole = Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))
    for fold, (train, test) in enumerate(folds.split(np.zeros(60), y)):
        for k, C in enumerate((0.01, 1.0)):
            single = rw.LatentRankSVM(C=C).fit(whole[train], y[train])
            expected = rw.metrics.auc(single.decision_function(whole[test]), y[test])
            assert model.scores_[k, fold] == pytest.approx(expected, rel=1e-12)
    assert model.best_score_ == pytest.approx(model.scores_.mean(axis=1).max())
    assert (0.01, 1.0)[int(np.argmax(model.scores_.mean(axis=1)))] == model.C_
    last = rw.LatentRankSVM(C=model.C_).fit(bags, y)
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(last, name))
    assert (model.objective_, model.n_iter_, model.converged_) == (last.objective_, last.n_iter_, last.converged_)


def test_the_C_chosen_is_not_much_worse_than_the_best_on_fresh_bags() -> None:
    bags, y = data(90, width=6)
    fresh, truth = data(300, seed=1, width=6)
    model = rw.LatentRankSVMCV(Cs=5, cv=3).fit(bags, y)
    assert model.Cs_.shape == (5,)
    assert (np.diff(model.Cs_) > 0).all()
    singles = [rw.LatentRankSVM(C=C).fit(bags, y) for C in model.Cs_]
    values = [average_precision(single.decision_function(fresh), truth) for single in singles]
    assert average_precision(model.decision_function(fresh), truth) >= max(values) - 0.03
    assert max(values) > 0.8
    assert model.score(fresh, truth) > 0.8


def test_the_grid_follows_the_scale_of_the_features() -> None:
    bags, y = data(30)
    small, large = (rw.LatentRankSVMCV(Cs=2, cv=2).fit([scale * bag for bag in bags], y) for scale in (1.0, 100.0))
    np.testing.assert_allclose(large.Cs_, 1e-4 * small.Cs_, rtol=1e-9)
    np.testing.assert_allclose(large.scores_, small.scores_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_folds_in_threads_give_the_same(loss: str) -> None:
    bags, y = data()
    one, two = (rw.LatentRankSVMCV(loss, Cs=2, cv=3, n_jobs=n_jobs, init="random").fit(bags, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.timing_["calls"] == two.timing_["calls"]
    assert one.timing_["passes"] == two.timing_["passes"] > 6


def test_threads_within_threads_leave_the_linear_algebra_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankwise.latent.blocks._BLOCK", 2000)
    bags, y = data(40)
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        assert 2 in before
        model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=4, n_jobs=3, n_threads=2).fit(bags, y)
        assert [library["num_threads"] for library in threadpool_info()] == before
    np.testing.assert_array_equal(model.coef_, rw.LatentRankSVM(C=model.C_).fit(bags, y).coef_)


@pytest.mark.parametrize("kind", ["candidates", "coefficients"])
def test_candidates_are_split_with_the_bags_but_coefficients_not(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data(30)
    numbers = np.array([len(bag) for bag in bags]) - 1
    seen: list[tuple[Any, NDArray[np.int64]]] = []
    real = latent_svm.as_start

    def noted(init: Any, sizes: NDArray[np.int64], width: int) -> Any:
        seen.append((init, sizes))
        return real(init, sizes, width)

    monkeypatch.setattr(latent_svm, "as_start", noted)
    rw.LatentRankSVMCV(Cs=[1.0], cv=2, init=numbers.tolist() if kind == "candidates" else [1.0, 0.0, 0.0]).fit(bags, y)
    assert [sizes.size for _, sizes in seen] == [15, 15, 30]
    for init, sizes in seen:
        np.testing.assert_array_equal(init, sizes - 1 if kind == "candidates" else [1.0, 0.0, 0.0])


def test_scikit_learn_clones_it_and_a_splitter_may_be_given(tmp_path: Path) -> None:
    bags, y = data(30)
    model = rw.LatentRankSVMCV("auc", Cs=[0.1, 1.0], cv=StratifiedKFold(2), scoring="ap", n_jobs=2)
    again = clone(model)
    for name, value in model.get_params().items():
        assert str(again.get_params()[name]) == str(value)
    again.fit(bags, y).save(tmp_path / "m.rw")
    found = rw.load(tmp_path / "m.rw")
    assert found.cv == 5  # a splitter is not plain data
    np.testing.assert_array_equal(found.scores_, again.scores_)
    np.testing.assert_array_equal(found.best_candidate(bags), again.best_candidate(bags))
    assert (found.C_, found.best_score_) == (again.C_, again.best_score_)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"cv": 1}, "cv must be at least 2, got 1"),
        ({"cv": 11}, "cv=11 needs at least 11 samples in the smaller class, but there are only 10"),
        ({"Cs": 0}, "Cs must be at least 1"),
        ({"Cs": [1.0, 0.5]}, "Cs must be positive numbers in ascending order"),
        ({"Cs": [-1.0]}, "Cs must be positive"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"scoring": "beauty"}, "beauty"),
        ({"loss": "beauty"}, "unknown loss"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], match: str) -> None:
    bags, y = data(30)
    model = rw.LatentRankSVMCV(**parameters)
    with pytest.raises(ValueError, match=match):
        model.fit(bags, y)
    with pytest.raises(NotFittedError):
        model.predict(bags)


def interrupt(monkeypatch: pytest.MonkeyPatch, when: Any) -> list[int]:
    """Ctrl-C at the calls of inference that `when` says yes to; the list counts them."""
    real, count, lock = task_module.Inference.solve, [0], threading.Lock()

    def hinge(*args: Any, **options: Any) -> Any:
        with lock:
            count[0] += 1
            stop = when(count[0])
        if stop:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(task_module.Inference, "solve", hinge)
    return count


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_search_chooses_from_what_was_measured(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    with monkeypatch.context() as patch:
        count = interrupt(patch, lambda k: False)
        rw.LatentRankSVMCV(Cs=[0.01, 0.1, 1.0], cv=4).fit(bags, y)
    half = count[0] // 2
    interrupt(monkeypatch, lambda k: k == half)
    model = rw.LatentRankSVMCV(Cs=[0.01, 0.1, 1.0], cv=4, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert 0 < np.isfinite(model.scores_).sum() < 12
    assert model.C_ in model.Cs_
    assert model.converged_
    np.testing.assert_array_equal(model.coef_, rw.LatentRankSVM(C=model.C_).fit(bags, y).coef_)


def test_ctrl_c_in_the_last_fit_keeps_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    with monkeypatch.context() as patch:
        count = interrupt(patch, lambda k: False)
        rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3).fit(bags, y)
    total = count[0]
    interrupt(monkeypatch, lambda k: k == total - 4)
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert np.isfinite(model.scores_).all()
    assert not model.converged_
    assert model.predict(bags).shape == (60,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_before_anything_was_measured_leaves_no_model(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    interrupt(monkeypatch, lambda k: k > 3)
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    with pytest.raises(NotFittedError):
        model.predict(bags)


def test_a_stop_reaches_the_folds_in_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    rounds = []
    real = cccp._round
    monkeypatch.setattr(cccp, "_round", lambda *args: rounds.append(None) or real(*args))

    def wait(futures: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cross_validation, "wait", wait)
    model = rw.LatentRankSVMCV(Cs=np.logspace(-2, 1, 8), cv=4, n_jobs=2, init="first")
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert len(rounds) < 24


def test_progress_is_shown_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    bags, y = data(30)
    rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=2).fit(bags, y)
    assert capsys.readouterr() == ("", "")
    rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=2, verbose=1).fit(bags, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "LatentRankSVMCV: fold 2 of 2: best AP" in err or "LatentRankSVMCV: fold 2 of 2: best ap" in err
