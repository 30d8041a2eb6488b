"""How RankSVM is trained: weights of queries, starts, warnings, progress, and the usual C."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw

ATOL = 1e-9
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def grouped(cancer: Data) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Six queries of 40 samples."""
    return cancer[0][:240], cancer[1][:240], np.arange(240) % 6


def close(model: rw.RankSVM, other: rw.RankSVM) -> bool:
    """Whether two fits, by their certificates, may be of one problem, and are near to each other."""
    overlap = max(model.dual_, other.dual_) <= min(model.objective_, other.objective_) * (1.0 + ATOL)
    # F is 1-strongly convex: ½‖w − w*‖² ≤ F(w) − F(w*).
    radius = sum(np.sqrt(2.0 * (one.objective_ - one.dual_)) for one in (model, other))
    return bool(overlap and np.linalg.norm(model.coef_ - other.coef_) <= radius + ATOL)


def test_weight_two_is_a_query_twice_and_weight_zero_a_query_left_out(grouped: Any) -> None:
    X, y, qid = grouped
    options = {"C": 1.0, "tol": 1e-4}
    again, rest = qid == 2, qid != 4
    doubled = rw.RankSVM(**options).fit(np.r_[X, X[again]], np.r_[y, y[again]], np.r_[qid, np.full(again.sum(), 9)])
    for weight, other in ((1.0 + again, doubled), (rest, rw.RankSVM(**options).fit(X[rest], y[rest], qid[rest]))):
        weighted = rw.RankSVM(**options).fit(X, y, qid, weight.astype(int))
        assert close(weighted, other)
        assert not close(weighted, rw.RankSVM(**options).fit(X, y, qid))


def test_the_order_of_rows_and_the_names_of_queries_do_not_matter(grouped: Any, rng: np.random.Generator) -> None:
    X, y, qid = grouped
    order = rng.permutation(y.size)
    names = np.array(["f", "e", "d", "c", "b", "a"])[qid]
    model = rw.RankSVM(C=1.0).fit(X, y, qid)
    assert close(model, rw.RankSVM(C=1.0).fit(X[order], y[order], names[order]))


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_a_second_fit_goes_on_where_the_first_ended(cancer: Data, loss: str) -> None:
    X, y = cancer
    model = rw.RankSVM(loss, 100.0, tol=1e-2, warm_start=True).fit(X, y)
    first, value = model.n_iter_, model.objective_
    model.fit(X, y)
    assert model.n_iter_ < first
    assert model.objective_ <= value * (1.0 + ATOL)
    warm, cold = model.set_params(C=150.0).fit(X, y), clone(model).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert close(warm, cold)


def test_a_warm_start_at_other_features_or_losses_is_a_start_like_another(cancer: Data) -> None:
    X, y = cancer
    model = rw.RankSVM(C=1.0, warm_start=True).fit(X[:, :5], y).fit(X[:, :6], y)
    assert close(model, clone(model).fit(X[:, :6], y))
    for loss in ("zero-one", "ap"):
        model.set_params(loss=loss).fit(X[:, :6], y)
        assert close(model, clone(model).fit(X[:, :6], y))


def test_a_fit_that_stops_short_says_so_and_what_to_do(cancer: Data) -> None:
    with pytest.warns(ConvergenceWarning, match=r"gap of \d.*tol=0.001: max_iter=1 reached; raise it") as caught:
        model = rw.RankSVM(max_iter=1).fit(*cancer)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.gap_ > model.tol
    assert model.n_iter_ == 1


def test_progress_is_shown_where_asked_for_and_nowhere_else(cancer: Data, capsys: pytest.CaptureFixture[str]) -> None:
    rw.RankSVM().fit(*cancer)
    assert capsys.readouterr() == ("", "")
    rw.RankSVMCV(Cs=2, cv=2, verbose=1, tol=0.1).fit(*cancer)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"RankSVMCV: ap loss, C = \S+: ap 0\.9", err)
    assert "planes" in err
    model = rw.RankSVM("ndcg", C=1000.0, verbose=1).fit(*cancer)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"RankSVM ndcg, C=1000: iteration \d+, objective \S+, gap \S+, \d+ planes, .*s\n", err)
    assert f"iteration {model.n_iter_}," in err
    assert f"gap {model.gap_:.1e}" in err


def test_the_usual_C_follows_the_scale_of_the_features(cancer: Data) -> None:
    X, y = cancer
    small, large = rw.RankSVM().fit(X, y), rw.RankSVM().fit(1000.0 * X, y)
    np.testing.assert_allclose(large.C_, 1e-6 * small.C_, rtol=1e-9)
    np.testing.assert_allclose(1000.0 * large.coef_, small.coef_, rtol=1e-6, atol=1e-9)
    assert rw.RankSVM(C=small.C_).fit(X, y).objective_ == pytest.approx(small.objective_, rel=1e-12)


def test_without_any_slope_C_is_1_and_nothing_is_learnt() -> None:
    model = rw.RankSVM().fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1])
    assert model.C_ == 1.0
    assert not model.coef_.any()
