"""Ctrl-C keeps the best model so far; time and calls of inference are accounted for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

import rankwise as rw
from rankwise.linear import task as task_module

ATOL = 1e-9
CS = [0.1, 1.0, 10.0, 100.0]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]
Grouped = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
Interrupt = Callable[[int], list[int]]


@pytest.fixture(scope="module")
def grouped(grouped: Grouped) -> Grouped:
    """In six queries."""
    X, y, qid = grouped
    return X, y, qid % 6


@pytest.fixture(scope="module")
def digits(grouped: Grouped) -> Data:
    return grouped[:2]


@pytest.mark.parametrize("k", [3, 12])
def test_ctrl_c_keeps_the_best_model_so_far(digits: Data, interrupt_at: Interrupt, k: int) -> None:
    X, y = digits
    count = interrupt_at(k)
    model = rw.RankSVM(C=1000.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert count[0] == k
    assert not model.converged_
    assert model.tol < model.gap_ <= 1.0
    value = 1000.0 * rw.structured_hinge(model.decision_function(X), y == 1, "ap").value
    assert model.objective_ == pytest.approx(0.5 * np.sum(model.coef_**2) + value)
    assert model.predict(X).shape == y.shape


def test_ctrl_c_before_anything_is_learnt_leaves_the_model_as_it_was(digits: Data, interrupt_at: Interrupt) -> None:
    X, y = digits
    fitted = rw.RankSVM(C=1.0).fit(X, y)
    before = fitted.coef_.copy()
    fresh = rw.RankSVM(C=1000.0)
    for model in (fitted, fresh):
        interrupt_at(1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, before)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_time_and_calls_are_accounted_for(grouped: Any, interrupt_at: Interrupt) -> None:
    X, y, qid = grouped
    count = interrupt_at(-1)
    model = rw.RankSVM(C=1.0, tol=0.05).fit(X, y, qid)
    timing = model.timing_
    assert timing["calls"] == count[0] * 6
    assert 0.0 < timing["inference"] < timing["inference"] + timing["products"] < timing["total"]
    assert model.history_["calls"][-1] == timing["calls"]
    for name in ("iteration", "primal", "dual", "gap", "planes", "calls", "seconds"):
        assert model.history_[name].shape == (model.n_iter_,)
    assert (np.diff(model.history_["primal"]) <= 0.0).all()
    assert (np.diff(model.history_["dual"]) >= 0.0).all()


def test_the_clock_covers_the_search(grouped: Grouped, interrupt_at: Interrupt) -> None:
    X, y, _ = grouped
    count = interrupt_at(-1)
    model = rw.RankSVMCV(Cs=3, cv=2).fit(X, y)
    assert model.timing_["calls"] == count[0] - 1  # one call lays out the grid
    assert 0.0 < model.timing_["inference"] < model.timing_["total"]


def evaluations(model: rw.RankSVMCV, data: Grouped, count: list[int]) -> tuple[int, int]:
    """How many evaluations a search takes, and how many the last fit."""
    model.fit(*data)
    return count[0] - model.n_iter_, count[0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_search_chooses_from_what_was_measured(
    grouped: Grouped, interrupt_at: Interrupt, n_jobs: int
) -> None:
    search, _ = evaluations(rw.RankSVMCV(Cs=CS, cv=3), grouped, interrupt_at(-1))
    interrupt_at(2 * search // 3)
    model = rw.RankSVMCV(Cs=CS, cv=3, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*grouped)
    assert 0 < np.isfinite(model.scores_).sum() < 12
    assert model.C_ in model.Cs_
    assert model.converged_
    assert model.gap_ <= model.tol
    assert np.isfinite(model.best_score_)
    np.testing.assert_allclose(model.coef_, rw.RankSVM(C=model.C_).fit(*grouped).coef_, atol=ATOL)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals cannot be sent to a thread here")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_stops_all_threads(grouped: Grouped, monkeypatch: pytest.MonkeyPatch, n_jobs: int) -> None:
    real, count = task_module.Inference.solve, [0]

    def hinge(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        if count[0] == 30:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return real(*args, **kwargs)

    model = rw.RankSVMCV(Cs=np.logspace(0, 2, 10), cv=4, n_jobs=n_jobs)
    complete = rw.RankSVMCV(Cs=np.logspace(0, 2, 10), cv=4).fit(*grouped).timing_["calls"]
    monkeypatch.setattr(task_module.Inference, "solve", hinge)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*grouped)
    assert 0 < np.isfinite(model.scores_).sum() < 40
    assert model.converged_
    assert model.timing_["calls"] < 0.7 * complete


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_last_fit_keeps_the_best_model_so_far(
    grouped: Grouped, interrupt_at: Interrupt, n_jobs: int
) -> None:
    _, total = evaluations(rw.RankSVMCV(Cs=CS, cv=3), grouped, interrupt_at(-1))
    interrupt_at(total - 2)
    model = rw.RankSVMCV(Cs=CS, cv=3, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*grouped)
    assert np.isfinite(model.scores_).all()
    assert not model.converged_
    assert model.tol < model.gap_ < 1.0
    assert model.timing_["calls"] > 0
    assert model.predict(grouped[0]).shape == (600,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_before_anything_was_measured_leaves_no_model(
    grouped: Grouped, monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    model, calls = rw.RankSVMCV(Cs=2, cv=2, n_jobs=n_jobs), []
    real = task_module.Inference.solve

    def hinge(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        if len(calls) > 1:  # the first lays out the grid
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(task_module.Inference, "solve", hinge)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*grouped)
    with pytest.raises(NotFittedError):
        model.predict(grouped[0])
