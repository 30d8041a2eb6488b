"""LatentRankSVMCV: C is chosen by bags left out; folds in threads give the same; Ctrl-C keeps what there is."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from bag_problems import ZEROS, as_whole, planted
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_info, threadpool_limits

import rankwise as rw
from rankwise.latent import cccp, training
from rankwise.linear import cross_validation

# A C that is too small for anything to be learnt is part of a search.
pytestmark = pytest.mark.filterwarnings(ZEROS)
BAGS, Y, _ = planted(shift=4.0)


def test_scores_are_those_of_models_fitted_to_the_other_bags() -> None:
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    model = rw.LatentRankSVMCV(Cs=[0.01, 1.0], cv=folds, scoring="auc").fit(BAGS, Y)
    assert model.scores_.shape == (2, 3)
    whole = as_whole(BAGS)
    for fold, (train, test) in enumerate(folds.split(np.zeros(60), Y)):
        for k, C in enumerate((0.01, 1.0)):
            single = rw.LatentRankSVM(C=C).fit(whole[train], Y[train])
            expected = rw.metrics.auc(single.decision_function(whole[test]), Y[test])
            assert model.scores_[k, fold] == pytest.approx(expected, rel=1e-12)
    assert model.best_score_ == pytest.approx(model.scores_.mean(axis=1).max())
    assert (0.01, 1.0)[int(np.argmax(model.scores_.mean(axis=1)))] == model.C_
    last = rw.LatentRankSVM(C=model.C_).fit(BAGS, Y)
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(last, name))
    assert (model.objective_, model.n_iter_, model.converged_) == (last.objective_, last.n_iter_, last.converged_)


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_folds_in_threads_give_the_same(loss: str) -> None:
    one, two = (rw.LatentRankSVMCV(loss, Cs=2, cv=3, n_jobs=n_jobs, init="random").fit(BAGS, Y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.timing_["calls"] == two.timing_["calls"]
    assert one.timing_["passes"] == two.timing_["passes"] > 6


def test_threads_within_threads_leave_the_linear_algebra_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankwise.latent.blocks._BLOCK", 2000)
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        assert 2 in before
        model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=4, n_jobs=3, n_threads=2).fit(BAGS, Y)
        assert [library["num_threads"] for library in threadpool_info()] == before
    np.testing.assert_array_equal(model.coef_, rw.LatentRankSVM(C=model.C_).fit(BAGS, Y).coef_)


@pytest.mark.parametrize("kind", ["candidates", "coefficients"])
def test_candidates_are_split_with_the_bags_but_coefficients_not(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.array([len(bag) for bag in BAGS]) - 1
    seen: list[tuple[Any, Any]] = []
    real = training._begun

    def begun(problem: Any, start: Any) -> Any:
        seen.append((start.candidates if kind == "candidates" else start.coef, problem.bags.sizes))
        return real(problem, start)

    monkeypatch.setattr(training, "_begun", begun)
    rw.LatentRankSVMCV(Cs=[1.0], cv=2, init=numbers.tolist() if kind == "candidates" else [1.0, 0.0, 0.0]).fit(BAGS, Y)
    assert [sizes.size for _, sizes in seen] == [30, 30, 60]
    for given, sizes in seen:
        np.testing.assert_array_equal(given, sizes - 1 if kind == "candidates" else [1.0, 0.0, 0.0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_search_chooses_from_what_was_measured(n_jobs: int, interrupted: Any) -> None:
    with interrupted(lambda k: False) as count:
        rw.LatentRankSVMCV(Cs=[0.01, 0.1, 1.0], cv=4).fit(BAGS, Y)
    model = rw.LatentRankSVMCV(Cs=[0.01, 0.1, 1.0], cv=4, n_jobs=n_jobs)
    with interrupted(lambda k: k == count[0] // 2), pytest.raises(KeyboardInterrupt):
        model.fit(BAGS, Y)
    assert 0 < np.isfinite(model.scores_).sum() < 12
    assert model.C_ in model.Cs_
    assert model.converged_
    np.testing.assert_array_equal(model.coef_, rw.LatentRankSVM(C=model.C_).fit(BAGS, Y).coef_)


def test_ctrl_c_in_the_last_fit_keeps_the_best_model_so_far(interrupted: Any) -> None:
    with interrupted(lambda k: False) as count:
        rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3).fit(BAGS, Y)
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3)
    with interrupted(lambda k: k == count[0] - 4), pytest.raises(KeyboardInterrupt):
        model.fit(BAGS, Y)
    assert np.isfinite(model.scores_).all()
    assert not model.converged_
    assert model.predict(BAGS).shape == (60,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_before_anything_was_measured_leaves_no_model(n_jobs: int, interrupted: Any) -> None:
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3, n_jobs=n_jobs)
    with interrupted(lambda k: k > 3), pytest.raises(KeyboardInterrupt):
        model.fit(BAGS, Y)
    with pytest.raises(NotFittedError):
        model.predict(BAGS)


def test_a_stop_reaches_the_folds_in_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, stopped, real = [], threading.Event(), cccp._round

    def wait_and_go_on(*args: Any) -> None:
        assert stopped.wait(60)
        rounds.append(None)
        real(*args)

    monkeypatch.setattr(cccp, "_round", wait_and_go_on)
    monkeypatch.setattr(cross_validation.Stop, "set", lambda self: (threading.Event.set(self), stopped.set()))

    class Interrupted(ThreadPoolExecutor):
        """Ctrl-C reaches the thread that waits for the others."""

        def map(self, *given: Any) -> Any:
            super().map(*given)
            raise KeyboardInterrupt

    monkeypatch.setattr(cross_validation, "ThreadPoolExecutor", Interrupted)
    model = rw.LatentRankSVMCV(Cs=np.logspace(-2, 1, 8), cv=4, n_jobs=2, init="first")
    with pytest.raises(KeyboardInterrupt):
        model.fit(BAGS, Y)
    assert len(rounds) <= 4, "one each"
