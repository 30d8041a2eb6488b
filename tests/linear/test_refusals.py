"""What the linear rankers refuse, naming what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import rankwise as rw

Data = tuple[NDArray[np.float64], NDArray[np.int64]]
KINDS = (rw.RankSVM, rw.RankSVMCV)
BAD: list[tuple[dict[str, Any], str]] = [
    ({"loss": "map"}, "unknown loss 'map'"),
    ({"loss": 3}, "loss must be"),
    ({"method": "sort"}, "unknown method 'sort'"),
    *[({"C": C}, "C must be a positive number") for C in (0, -1.0, np.inf, np.nan, "1", True)],
    *[({"tol": tol}, "tol must be a positive number") for tol in (0.0, -1e-3, np.nan, "small")],
    *[({"max_iter": n}, "max_iter must be an integer") for n in (0, -5, 2.0, "many")],
    ({"scale": -1.0}, "scale must be"),
    ({"n_threads": 0}, "n_threads must be"),
]
BAD_CV: list[tuple[dict[str, Any], str]] = [
    ({"loss": []}, "loss is an empty list"),
    ({"loss": ["ap", "map"]}, "unknown loss 'map'"),
    *[({"Cs": Cs}, "Cs must be") for Cs in (0, -3, 2.5, [], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, np.inf], None)],
    *[({"Cs": Cs}, "Cs must be") for Cs in ([[1.0, 2.0]], ["a"], "abc", True, [np.nan])],
    *[({"cv": cv}, "cv") for cv in (1, 0, -2, 0.5, "five")],
    ({"cv": 300}, "cv=300 needs at least 300 samples in the smaller class, but there are only 212; pass a smaller"),
    ({"cv": []}, "cv returns no folds; pass a number of folds"),
    ({"cv": [([0, 0, 1, 2, 60, 60], [3, 4])]}, "trains on the same row twice"),
    ({"scoring": "accuracy"}, "unknown metric 'accuracy'"),
    ({"scoring": "precision"}, "precision needs the last place"),
    ({"scoring": []}, "scoring is an empty list"),
    ({"scoring": ["ap", "auc", "ap"]}, "a metric twice: ap, auc, ap"),
    ({"scoring": ["ap", "map"]}, "'map'"),
    *[({"n_jobs": n}, "n_jobs must be at least 1") for n in (0, -2, 1.5, "all")],
]


BAD_RANKER: list[tuple[dict[str, Any], str]] = [
    *[({"cv": cv}, "cv") for cv in (0.5, "five")],
    *[({"cv": cv}, f"cv must be at least 2, got {cv}; pass a number of folds, or a splitter") for cv in (1, 0, -2)],
    ({"cv": []}, "cv returns no folds; pass a number of folds"),
    ({"cv": [([0, 0, 1, 2, 60, 60], [3, 4])]}, "trains on the same row twice"),
    ({"metric": "accuracy"}, "unknown metric 'accuracy'"),
    ({"metric": "precision"}, "precision needs the last place"),
    ({"metric": "map"}, "metric='map' averages AP over queries and needs them; pass qid"),
    ({"metric": 3}, "metric"),
    ({"metric": None}, "metric"),
    *[({"n_jobs": n}, "n_jobs must be at least 1") for n in (0, -2, 1.5, "all")],
    *[({"random_state": seed}, "random_state must be an integer, at least 0") for seed in (-1, 0.5, None, "a")],
]


def shown(value: Any) -> str:
    return "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else getattr(value, "__name__", "")


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        *[(kind, *case) for kind in KINDS for case in BAD if kind is rw.RankSVM or "C" not in case[0]],
        *[(rw.RankSVMCV, *case) for case in BAD_CV],
        *[(rw.LinearRanker, *case) for case in BAD_RANKER],
    ],
    ids=shown,
)
def test_bad_parameters_are_named(cancer: Data, kind: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        kind(**options).fit(*cancer)


def test_a_splitter_that_trains_on_one_class_is_refused_by_its_fold(cancer: Data) -> None:
    X, y = cancer
    both, negative = np.arange(45), np.flatnonzero(y == 0)
    with pytest.raises(ValueError, match=r"fold 2 of cv trains on no query with both classes; .*stratified"):
        rw.LinearRanker(cv=[(both, np.arange(45, 90)), (negative, both)]).fit(X, y)


@pytest.mark.parametrize("kind", [*KINDS, rw.LinearRanker])
def test_bad_samples_are_refused_with_a_remedy(cancer: Data, kind: Any) -> None:
    X, y = cancer
    n, thirds, groups = y.size, np.arange(y.size) % 3, np.arange(y.size) % 7
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (np.where(X > 3.0, np.nan, X), y, {}, "X contains NaN"),
        (np.where(X > 3.0, np.inf, X), y, {}, "X contains infinity"),
        (sp.csr_array(np.where(X > 3.0, np.nan, X)), y, {}, "X contains NaN"),
        (np.ma.masked_less(X, 0.0), y, {}, "masked entries"),
        (X, thirds, {}, "grades, pass qid, .*; for several classes, use .*OneVsRestClassifier"),
        (X, X[:, 0], {}, "type of the target is continuous"),
        (X, np.ones(n), {}, "only one class is present: every label is 1.0"),
        (X, y[:-1], {}, "inconsistent numbers of samples"),
        (X, y, {"qid": y[:-1]}, "qid has"),
        (X, y, {"qid": np.stack([y, y])}, "qid has shape"),
        (X, y, {"qid": y}, "one class|both classes"),
        (X, y, {"qid": np.where(y > 0, np.nan, 0.0)}, r"qid\[\d+\] is nan"),
        (X, y, {"qid": groups, "query_weight": np.ones(5)}, r"query_weight has shape \(5,\)"),
        (X, y, {"qid": groups, "query_weight": 2.0}, "query_weight has shape"),
        (X, y, {"qid": groups, "query_weight": np.arange(1.0 * n)}, "differs from that of other samples of its query"),
        (X, y, {"qid": groups, "query_weight": -np.ones(n)}, r"query_weight\[0\] is -1.*; weights must be finite"),
        (X, y, {"qid": groups, "query_weight": np.full(n, np.nan)}, r"query_weight\[0\] is nan"),
        (X, y, {"qid": groups, "query_weight": np.full(n, np.inf)}, r"query_weight\[0\] is inf"),
        (X, y, {"qid": groups, "query_weight": np.zeros(n)}, "0 for every query"),
        (X, y, {"qid": groups, "query_weight": np.full(n, "1")}, "query_weight must be numbers"),
    ]
    for samples, labels, more, match in cases:
        with pytest.raises((ValueError, TypeError), match=match):
            kind().fit(samples, labels, **more)


@pytest.mark.parametrize(
    ("factor", "match"),
    [
        (1e307, "too large to be summed; scale them"),
        (1e-305, "no feature varies by more than 1e-302, .*; scale them"),
        (1e-318, "no feature varies by more than 1e-302, .*; scale them"),
    ],
)
def test_features_beyond_what_can_be_scaled_are_refused_by_the_ranker(cancer: Data, factor: float, match: str) -> None:
    X, y = np.abs(cancer[0][:90, :4]), cancer[1][:90]
    for given in (X * factor, *([sp.csr_array(X * factor)] if factor < 1.0 else [])):
        with pytest.raises(ValueError, match=match):
            rw.LinearRanker().fit(given, y)


def test_features_too_small_to_be_squared_are_refused_where_C_follows_them() -> None:
    rng = np.random.default_rng(0)
    X, y = 1e-80 * rng.normal(size=(40, 3)), np.arange(40) % 2
    for model in (rw.RankSVM(), rw.RankSVMCV(cv=2, Cs=2)):
        with pytest.raises(ValueError, match="too small to be squared; scale them"):
            model.fit(X, y)


def test_a_C_whose_square_vanishes_is_used() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.warns(UserWarning, match="coefficients of 0"):
        assert not rw.RankSVM(C=1e-300).fit(X, y).coef_.any()


@pytest.mark.parametrize("factor", [1e-170, 1e-200, 1e-300, 1e-318])
def test_features_whose_squares_vanish_are_refused_whatever_C_is(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = factor * rng.normal(size=(400, 3)), np.arange(400) % 2
    X[:100] = 0.0
    y[:100] = 0
    for model in (rw.RankSVM(), rw.RankSVM(C=1.0), rw.RankSVMCV(cv=2, Cs=2), rw.RankSVMCV(cv=2, Cs=[1.0])):
        for given in (X, sp.csr_array(X), sp.csc_array(X)):
            with pytest.raises(ValueError, match="too small to be squared; scale them"):
                model.fit(given, y)


@pytest.mark.parametrize("factor", [1e170, 1e200, 1e300])
def test_features_whose_squares_overflow_are_refused_whatever_C_is(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = factor * rng.normal(size=(40, 3)), np.arange(40) % 2
    for model in (rw.RankSVM(), rw.RankSVM(C=1.0), rw.RankSVMCV(cv=2, Cs=2)):
        with pytest.raises(ValueError, match="too large to be squared; scale them"):
            model.fit(X, y)


def test_features_that_are_small_only_where_one_looks_first_are_accepted() -> None:
    X = np.zeros((20_000, 1))
    X[300:900, 0] = np.linspace(0.5, 2.0, 600)  # between two blocks
    y = X[:, 0] > 1.0
    assert rw.RankSVM(C=1.0, max_iter=50).fit(X, y).score(X, y) == 1.0


def test_a_sparse_matrix_that_points_outside_itself_is_refused() -> None:
    X = sp.csr_array(np.eye(6))
    X.indices[0] = 1000
    with pytest.raises(ValueError, match="not a valid CSR matrix"):
        rw.RankSVM().fit(X, [0, 1] * 3)
