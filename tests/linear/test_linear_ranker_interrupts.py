"""Ctrl-C in a LinearRanker: what was tried so far decides; once more, and what is fitted so far is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import PredefinedSplit

import rankwise as rw
from rankwise.linear import candidates, tuning

Data = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
Interrupt = Callable[[int], list[int]]
At = Callable[..., list[int]]
# Two folds, drawn once, that keep queries whole.
HALVES = PredefinedSplit(np.arange(72) % 2)
# A fit of a classifier, and one refinement.
CLASSIFIER, REFINED = (candidates.Classifier, "fit"), (candidates, "descend")


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(72, 3))
    y = (X @ [1.0, -0.4, 0.0] + 0.7 * rng.normal(size=72) > 0.8).astype(int)
    return X, y, np.arange(72) % 6


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Ctrl-C at some calls of a function, by number; the list counts them."""

    def at(of: tuple[Any, str], *ks: int, signals: bool = False) -> list[int]:
        real, count, lock = getattr(*of), [0], threading.Lock()

        def fit(*arguments: Any) -> Any:
            with lock:
                count[0] += 1
                now = count[0] in ks
            if now and signals:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            elif now:
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(*of, fit)
        return count

    return at


def interrupted(data: Data, queries: bool = False, **options: Any) -> rw.LinearRanker:
    model = rw.LinearRanker(**{"cv": 2, **options})
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data[:2], data[2] if queries else None)
    return model


def assert_whole(model: rw.LinearRanker, data: Data) -> None:
    assert model.predict(data[0]).shape == (72,)
    assert model.report_.shares.sum() == pytest.approx(1.0)
    assert set(model.timing_) == {"total", "search", "fit"}
    assert rw.metrics.auc(model.decision_function(data[0]), data[1]) > 0.7


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("k", [20, 75])
def test_ctrl_c_in_the_search_chooses_from_what_was_tried(data: Data, stop_at: At, n_jobs: int, k: int) -> None:
    stop_at(CLASSIFIER, k)
    model = interrupted(data, n_jobs=n_jobs)
    assert_whole(model, data)
    names = [name.split(",")[0] for name in model.report_.names]
    assert names == (["logistic"] if k == 20 else ["logistic", "squared hinge"])
    assert np.isfinite(model.report_.folds).all()
    assert np.isfinite(model.best_score_)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals cannot be sent to a thread here")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_ends_the_search(data: Data, stop_at: At, n_jobs: int) -> None:
    stop_at(CLASSIFIER, 30, signals=True)
    model = interrupted(data, n_jobs=n_jobs)
    assert_whole(model, data)
    assert {name.split(",")[0] for name in model.report_.names} <= {"logistic", "squared hinge"}


def test_ctrl_c_before_anything_was_tried_leaves_a_ranker_of_middling_strength(data: Data, stop_at: At) -> None:
    stop_at(CLASSIFIER, 1)
    model = interrupted(data)
    assert_whole(model, data)
    assert model.report_.folds.shape == (5, 0)
    assert np.isnan(model.best_score_)


def test_ctrl_c_again_before_anything_is_fitted_leaves_no_model(data: Data, stop_at: At) -> None:
    stop_at(CLASSIFIER, 1, 2)
    model = interrupted(data)
    with pytest.raises(NotFittedError):
        model.predict(data[0])
    assert not hasattr(model, "timing_")


def test_ctrl_c_again_leaves_a_fitted_model_as_it_was(data: Data, stop_at: At) -> None:
    model = rw.LinearRanker(cv=HALVES).fit(*data[:2])
    before = model.coef_.copy()
    stop_at(CLASSIFIER, 1, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data[:2])
    np.testing.assert_array_equal(model.coef_, before)


def test_ctrl_c_while_refining_keeps_the_starts(
    data: Data, stop_at: At, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_WAYS", ())
        whole = rw.LinearRanker(cv=HALVES).fit(*data)
    stop_at(REFINED, 1)
    model = interrupted(data, queries=True, cv=HALVES)
    assert_whole(model, data)
    starts = ["logistic", "squared hinge", "balanced logistic", "balanced squared hinge", "structured hinge"]
    assert [name.split(",")[0] for name in model.report_.names] == starts
    np.testing.assert_array_equal(model.coef_, whole.coef_)  # the structured hinge was solved to its end, too
    model.save(tmp_path / "m.rw")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rw").coef_, model.coef_)


def test_ctrl_c_in_the_last_fits_keeps_what_is_fitted(data: Data, stop_at: At) -> None:
    count = stop_at(REFINED)
    whole = rw.LinearRanker(cv=HALVES).fit(*data[:2])
    stop_at(REFINED, count[0] - 2)
    model = interrupted(data, cv=HALVES)
    assert_whole(model, data)
    np.testing.assert_array_equal(model.report_.folds, whole.report_.folds)
    assert not np.array_equal(model.coef_, whole.coef_)


def test_ctrl_c_in_the_last_structured_hinge_is_heard(
    data: Data, interrupt_at: Interrupt, stop_at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "_WAYS", ())
    count = interrupt_at(-1)
    rw.LinearRanker(cv=HALVES).fit(*data)
    interrupt_at(count[0] - 1)
    model = interrupted(data, queries=True, cv=HALVES)
    assert_whole(model, data)
    assert model.report_.folds.shape == (5, 2)
