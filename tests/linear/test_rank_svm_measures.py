"""RankSVMCV with several measures: the first chooses, all judge the same fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import rankwise as rw
from rankwise.io import ModelFileError, read_model, write_model
from rankwise.linear.cross_validation import Search
from rankwise.metrics import as_metric

MEASURES = ["ap", "ndcg@10", "auc"]
ROUGH = 0.05  # the minimum is not asked for, so that solvers may stop early
CS = [0.1, 1.0, 10.0]
Grouped = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def grouped() -> Grouped:
    """Eights among digits, in six queries."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(3)
    rows = rng.permutation(y.size)[:400]
    return X[rows] / 16.0, (y[rows] == 8).astype(int), rng.permutation(400) % 6


@pytest.mark.parametrize(("form", "prior"), [(list, None), (tuple, [0.01] * 64)], ids=["list", "tuple-prior"])
def test_each_measure_finds_what_it_would_find_alone(grouped: Grouped, form: Any, prior: Any) -> None:
    options: dict[str, Any] = {"Cs": CS, "cv": 2, "prior": prior, "tol": ROUGH}
    model = rw.RankSVMCV(["ap", "zero-one"], scoring=form(MEASURES), **options).fit(*grouped)
    assert list(model.scores_by_) == list(model.best_by_) == MEASURES
    for measure in MEASURES:
        alone = rw.RankSVMCV(["ap", "zero-one"], scoring=measure, **options).fit(*grouped)
        np.testing.assert_array_equal(model.scores_by_[measure], alone.scores_)
        assert model.best_by_[measure] == {"loss": alone.loss_, "C": alone.C_, "score": alone.best_score_}
        if measure == MEASURES[0]:
            np.testing.assert_array_equal(model.coef_, alone.coef_)
            np.testing.assert_array_equal(model.scores_, alone.scores_)
            assert (model.C_, model.loss_, model.best_score_) == (alone.C_, alone.loss_, alone.best_score_)


def test_the_first_measure_chooses(grouped: Grouped) -> None:
    for first in MEASURES:
        scoring = sorted(MEASURES, key=lambda name: name != first)
        model = rw.RankSVMCV("zero-one", Cs=5, cv=3, tol=ROUGH, scoring=scoring).fit(*grouped)
        assert {"loss": model.loss_, "C": model.C_, "score": model.best_score_} == model.best_by_[first]


def test_every_fold_is_fitted_once_for_all_measures(grouped: Grouped, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    real = Search._follow
    monkeypatch.setattr(Search, "_follow", lambda self, *job: fits.append(job[1:]) or real(self, *job))
    one, three = (rw.RankSVMCV("ap", Cs=CS, cv=3, tol=ROUGH, scoring=scoring) for scoring in (["ap"], MEASURES))
    assert one.fit(*grouped).timing_["calls"] == three.fit(*grouped).timing_["calls"]
    assert fits == 2 * [(0, 0), (0, 1), (0, 2)]


def test_threads_change_no_score(grouped: Grouped) -> None:
    one, two = (rw.RankSVMCV("ap", Cs=CS, cv=3, tol=ROUGH, scoring=MEASURES, n_jobs=n).fit(*grouped) for n in (1, 2))
    for measure in MEASURES:
        np.testing.assert_array_equal(one.scores_by_[measure], two.scores_by_[measure])


def test_grades_are_seen_by_the_measures_that_know_them(grouped: Grouped) -> None:
    X, y, qid = grouped
    grades = y * np.random.default_rng(0).integers(1, 4, y.size)
    found = rw.RankSVMCV("ap", Cs=CS, cv=3, tol=ROUGH, scoring=MEASURES).fit(X, grades, qid).scores_by_
    for measure in MEASURES:
        alone = rw.RankSVMCV("ap", Cs=CS, cv=3, tol=ROUGH, scoring=measure).fit(X, grades, qid)
        np.testing.assert_array_equal(found[measure], alone.scores_)


def test_one_measure_leaves_nothing_of_a_list_before(grouped: Grouped) -> None:
    model = rw.RankSVMCV("ap", Cs=CS, cv=2, tol=ROUGH, scoring=[as_metric("ap")]).fit(*grouped)
    assert list(model.best_by_) == ["ap"]
    model.set_params(scoring="ap").fit(*grouped)
    assert not hasattr(model, "best_by_")
    assert not hasattr(model, "scores_by_")


@pytest.mark.parametrize(
    ("scoring", "said"),
    [([], "scoring is an empty list"), (["ap", "auc", "ap"], "a metric twice: ap, auc, ap"), (["ap", "map"], "'map'")],
    ids=str,
)
def test_lists_that_say_nothing_are_refused(grouped: Grouped, scoring: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rw.RankSVMCV(scoring=scoring).fit(*grouped)


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
