"""RankSVMCV: the C and the loss that rank best what was left out; with queries whole, in threads, through Ctrl-C."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, PredefinedSplit, ShuffleSplit

import rankwise as rw
from rankwise import metrics
from rankwise.io import ModelFileError, read_model, write_model
from rankwise.linear import rank_svm_cv
from rankwise.linear.cross_validation import choose, split
from rankwise.linear.labels import Labels
from rankwise.metrics import METRICS, as_metric

ATOL = 1e-9
# Where the minimum is not asked for, solvers may stop early. Of a grid that is laid out for them, the largest C takes
# most of the time.
ROUGH = 0.05
CS = [0.1, 10.0]
MEASURES = ["ap", "ndcg@10", "auc"]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]
Grouped = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def cancer(cancer: Data) -> Data:
    X, y = cancer
    return X[:, :8], y


@pytest.fixture(scope="module")
def grouped(grouped: Grouped) -> Grouped:
    """Half of the queries."""
    rows = grouped[2] < 6
    X, y, qid = (part[rows] for part in grouped)
    return X, y, qid


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ap", ["auc", "ndcg", "zero-one"]], ids=["one", "three"])
def test_what_is_chosen_has_the_highest_mean_score(grouped: Grouped, loss: Any) -> None:
    model = rw.RankSVMCV(loss, Cs=4, cv=3, tol=ROUGH).fit(*grouped)
    names = [loss] if isinstance(loss, str) else loss
    assert model.Cs_.shape == (len(names), 4)
    assert model.scores_.shape == (len(names), 4, 3)
    means = model.scores_.mean(axis=2)
    which, at = np.unravel_index(np.argmax(means), means.shape)
    assert (model.loss_, model.C_) == (names[which], model.Cs_[which, at])
    assert model.best_score_ == pytest.approx(means.max())
    assert np.ptp(means) > 0.01
    assert (np.diff(model.Cs_) > 0).all()


def test_the_last_fit_is_that_of_rank_svm(grouped: Grouped) -> None:
    X, y, qid = grouped
    weight = 1.0 + (qid == 3)
    model = rw.RankSVMCV("ndcg", Cs=CS, cv=2).fit(X, y, qid, weight)
    single = rw.RankSVM("ndcg", model.C_).fit(X, y, qid, weight)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=ATOL)
    np.testing.assert_allclose(model.intercept_, single.intercept_, atol=ATOL)
    assert model.objective_ == pytest.approx(single.objective_)
    np.testing.assert_array_equal(model.rank(X, qid), single.rank(X, qid))


def test_a_score_is_that_of_a_model_fitted_to_the_other_folds(grouped: Grouped) -> None:
    X, y, qid = grouped
    cv = GroupKFold(3)
    model = rw.RankSVMCV("ap", Cs=[0.1, 10.0], cv=cv, tol=1e-4, scoring="ndcg@5").fit(X, y, qid)
    for fold, (train, test) in enumerate(cv.split(X, y, qid)):
        for k, C in enumerate([0.1, 10.0]):
            single = rw.RankSVM("ap", C, tol=1e-4).fit(X[train], y[train], qid[train])
            expected = metrics.ndcg(single.decision_function(X[test]), y[test], k=5, qid=qid[test])
            assert model.scores_[0, k, fold] == pytest.approx(expected, abs=0.01)


def test_grades_are_trained_for_and_judged_by(grouped: Grouped) -> None:
    X, y, qid = grouped
    grades = y * np.random.default_rng(0).integers(1, 4, y.size)
    cv, options = GroupKFold(3), {"Cs": [0.1, 10.0], "tol": 1e-4, "scoring": "ndcg@5"}
    graded, plain = (rw.RankSVMCV("ndcg", cv=cv, **options).fit(X, labels, qid) for labels in (grades, y))
    assert np.abs(graded.scores_ - plain.scores_).max() > 0.01
    alone = rw.RankSVM("ndcg", graded.C_, tol=1e-4).fit(X, grades, qid)
    np.testing.assert_allclose(graded.coef_, alone.coef_, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("scoring", "loss"), [("ndcg", "ndcg"), ("auc", "auc"), ("ap", "zero-one"), ("mrr", "mrr")])
def test_the_measure_is_that_of_the_loss_unless_told(grouped: Grouped, scoring: str, loss: str) -> None:
    told, left = (rw.RankSVMCV(loss, Cs=CS, cv=2, scoring=one, tol=ROUGH).fit(*grouped) for one in (scoring, None))
    np.testing.assert_array_equal(told.scores_, left.scores_)


@pytest.mark.slow
def test_threads_change_nothing(grouped: Grouped) -> None:
    options: dict[str, Any] = {"Cs": CS, "cv": 3, "tol": ROUGH, "scoring": MEASURES}
    one, two = (rw.RankSVMCV(["ap", "ndcg"], n_jobs=n, **options).fit(*grouped) for n in (1, 2))
    for measure in MEASURES:
        np.testing.assert_array_equal(one.scores_by_[measure], two.scores_by_[measure])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert (one.C_, one.loss_, one.timing_["calls"]) == (two.C_, two.loss_, two.timing_["calls"])


@pytest.mark.parametrize("cv", [3, None])
def test_folds_keep_queries_whole_and_leave_out_every_row_once(grouped: Grouped, cv: int | None) -> None:
    _, y, qid = grouped
    folds = split(Labels(y == 1), qid, cv, 0)
    assert len(folds) == (cv or 5)
    for fold in folds:
        assert not set(qid[fold.train]) & set(qid[fold.test])
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(y.size))


@pytest.mark.parametrize("qid", [None, np.zeros(569)], ids=["none", "one"])
def test_folds_of_one_query_are_stratified(cancer: Data, qid: Any) -> None:
    relevant = cancer[1] == 1
    shares = [relevant[fold.test].mean() for fold in split(Labels(relevant), qid, 4, 0)]
    np.testing.assert_allclose(shares, relevant.mean(), atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cv",
    [
        KFold(3),
        ShuffleSplit(2, random_state=0),
        LeaveOneGroupOut(),
        PredefinedSplit(np.arange(300) % 2),
        [(list(range(150)), list(range(150, 300)))],
        [(np.arange(300) < 100, np.arange(300) >= 100)],
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter_of_scikit_learn_will_do(grouped: Grouped, cv: Any) -> None:
    X, y, qid = grouped
    model = rw.RankSVMCV(Cs=CS, cv=cv, tol=ROUGH).fit(X, y, qid)
    assert model.scores_.shape[2] == (cv.get_n_splits(X, y, qid) if hasattr(cv, "split") else 1)
    assert np.isfinite(model.scores_).all()


def test_too_few_queries_for_the_folds_are_counted(grouped: Grouped) -> None:
    X, y, qid = grouped
    with pytest.raises(
        ValueError, match="cv=5 needs at least 5 queries with both classes, but there are only 3; pass a"
    ):
        rw.RankSVMCV().fit(X, y, qid % 3)
    with pytest.raises(ValueError, match="both classes, but there are only 1"):
        rw.RankSVMCV(cv=2).fit(X, y * (qid == 0), qid)


def test_folds_that_nothing_can_be_said_about_are_no_interruption(cancer: Data) -> None:
    X, y = cancer
    only_negatives_left_out = PredefinedSplit(np.where(y == 0, np.arange(y.size) % 2, -1))
    with pytest.raises(ValueError, match="no fold of cv leaves out samples that ap can judge"):
        rw.RankSVMCV(Cs=2, cv=only_negatives_left_out).fit(X, y)


def test_a_fold_without_a_score_does_not_count(grouped: Grouped) -> None:
    X, y, qid = grouped
    y = y * (qid != 5)
    model = rw.RankSVMCV(Cs=CS, cv=LeaveOneGroupOut(), tol=ROUGH).fit(X, y, qid)
    assert np.isnan(model.scores_[:, :, 5]).all()
    assert model.best_score_ == pytest.approx(np.nanmean(model.scores_, axis=2).max())


def test_a_score_on_few_folds_is_no_reason_and_of_equals_the_smallest_c_is_taken() -> None:
    nan = np.nan
    for scores, chosen in (
        ([[[0.5, 0.5], [0.9, nan], [0.7, 0.7]]], (0, 2)),  # 0.9 was measured on one fold only
        ([[[0.5, 0.7], [0.8, 0.8], [0.8, 0.8]]], (0, 1)),
        ([[[0.1, nan], [0.2, nan]], [[0.3, nan], [nan, nan]]], (1, 0)),
    ):
        found = choose(np.array(scores), METRICS["ap"])
        assert found[:2] == chosen


def test_several_folds_are_followed_at_a_time(grouped: Grouped, monkeypatch: pytest.MonkeyPatch) -> None:
    both, real = threading.Barrier(2, timeout=60), rank_svm_cv.solve_path

    def path(*arguments: Any) -> Any:
        both.wait()  # for the other fold; alone, it would be broken
        yield from real(*arguments)

    monkeypatch.setattr(rank_svm_cv, "solve_path", path)
    rw.RankSVMCV(Cs=CS, cv=2, n_jobs=2, tol=ROUGH).fit(*grouped)


def test_a_last_fit_that_stops_short_says_so(grouped: Grouped) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=2 reached") as caught:
        model = rw.RankSVMCV(Cs=[1e4], cv=2, max_iter=2).fit(*grouped)
    assert len(caught) == 1
    assert not model.converged_


# Several measures: the first chooses, all judge the same fits


@pytest.mark.parametrize(
    ("form", "losses"), [(list, ["ap", "zero-one"]), (tuple, ["ap", "ndcg"])], ids=["two classes", "grades"]
)
def test_each_measure_finds_what_it_would_find_alone(grouped: Grouped, form: Any, losses: list[str]) -> None:
    X, y, qid = grouped
    grades = y if form is list else y * np.random.default_rng(0).integers(1, 4, y.size)
    options: dict[str, Any] = {"Cs": CS, "cv": 2, "tol": ROUGH}
    model = rw.RankSVMCV(losses, scoring=form(MEASURES), **options).fit(X, grades, qid)
    assert list(model.scores_by_) == list(model.best_by_) == MEASURES
    for measure in MEASURES:
        alone = rw.RankSVMCV(losses, scoring=measure, **options).fit(X, grades, qid)
        np.testing.assert_array_equal(model.scores_by_[measure], alone.scores_)
        assert model.best_by_[measure] == {"loss": alone.loss_, "C": alone.C_, "score": alone.best_score_}
        if measure == MEASURES[0]:
            np.testing.assert_array_equal(model.coef_, alone.coef_)
            np.testing.assert_array_equal(model.scores_, alone.scores_)
            assert (model.C_, model.loss_, model.best_score_) == (alone.C_, alone.loss_, alone.best_score_)


def test_every_fold_is_fitted_once_for_all_measures(grouped: Grouped, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, real = [], rank_svm_cv.solve_path
    monkeypatch.setattr(rank_svm_cv, "solve_path", lambda *given: paths.append(given) or real(*given))
    one, three = (rw.RankSVMCV("ap", Cs=CS, cv=3, tol=ROUGH, scoring=scoring) for scoring in (["ap"], MEASURES))
    assert one.fit(*grouped).timing_["calls"] == three.fit(*grouped).timing_["calls"]
    assert len(paths) == 2 * 3


def test_one_measure_leaves_nothing_of_a_list_before(grouped: Grouped) -> None:
    model = rw.RankSVMCV("ap", Cs=CS, cv=2, tol=ROUGH, scoring=[as_metric("ap")]).fit(*grouped)
    assert list(model.best_by_) == ["ap"]
    model.set_params(scoring="ap").fit(*grouped)
    assert not hasattr(model, "best_by_")
    assert not hasattr(model, "scores_by_")


def test_a_file_whose_measures_do_not_fit_its_scores_is_refused(grouped: Grouped, tmp_path: Path) -> None:
    path = tmp_path / "model.rw"
    rw.RankSVMCV("ap", Cs=CS, cv=2, tol=ROUGH, scoring=MEASURES).fit(*grouped).save(path)
    found = rw.load(path)
    assert sorted(found.scores_by_) == sorted(MEASURES)
    file = read_model(path)
    for best, said in [
        ({"ap": {"loss": "ap", "C": 1.0, "score": 0.5}}, "scores_by_ does not match the metrics"),
        ({"ap": {"loss": "ap", "C": 1.0}}, "best_by_ is"),
        ([], "best_by_ is"),
    ]:
        header = file.header | {"learnt": file.header["learnt"] | {"best_by_": best}}
        write_model(path, file.kind, header, file.arrays)
        with pytest.raises(ModelFileError, match=said):
            rw.load(path)
