"""Linear rankers in files: what is written is read, what does not hold together is refused, a kill does no harm."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold

import rankwise as rw
from rankwise.io import ModelFile, ModelFileError, read_model, write_model
from rankwise.metrics import as_metric

Data = tuple[NDArray[np.float64], NDArray[np.int64]]
MODELS = {
    "ap": rw.RankSVM(),
    "zero-one": rw.RankSVM("zero-one", 3, tol=1e-2, fit_intercept=True),
    "warm": rw.RankSVM("ndcg", np.float64(2.0), warm_start=True),
    "no-intercept": rw.RankSVM("auc", fit_intercept=False, max_iter=np.int64(500), tol=np.float32(0.125)),
    "cv": rw.RankSVMCV(Cs=3, cv=2),
    "cv-list": rw.RankSVMCV(["ap", "auc"], Cs=np.array([0.1, 1.0]), cv=2, scoring="ndcg@5", n_jobs=2),
    "cv-measures": rw.RankSVMCV(["ap", "auc"], Cs=[0.1, 1.0], cv=2, scoring=["ndcg@5", "ap", "auc"]),
    "linear": rw.LinearRanker("ndcg@10", cv=2, random_state=4),
}


@pytest.fixture(scope="module")
def few(short_search: None) -> Data:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0.8).astype(int)


@pytest.fixture(scope="module")
def linear(few: Data) -> rw.LinearRanker:
    return clone(MODELS["linear"]).fit(*few)


def saved(model: Any, folder: Path) -> Any:
    model.save(folder / "model.rankwise")
    return rw.load(folder / "model.rankwise")


def learnt(model: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


def assert_same_learnt(model: Any, other: Any) -> None:
    """Every attribute that fit set is there, of the same type and value, and no other."""
    ours, theirs = learnt(model), learnt(other)
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        if isinstance(value, np.ndarray):
            assert theirs[name].dtype == value.dtype or value.dtype == object, name
            np.testing.assert_array_equal(theirs[name], value)
        elif name in ("history_", "scores_by_"):
            assert set(value) == set(theirs[name])
            for column in value:
                np.testing.assert_array_equal(theirs[name][column], value[column])
        else:
            assert theirs[name] == value, name
            assert type(theirs[name]) is type(value), name


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_whole(cancer: Data, few: Data, tmp_path: Path, name: str) -> None:
    X, y = few if name == "linear" else cancer
    model = clone(MODELS[name]).fit(X, y)
    found = saved(model, tmp_path)
    assert type(found) is type(model)
    assert_same_learnt(model, found)
    for method in ("decision_function", "predict", "rank"):
        np.testing.assert_array_equal(getattr(found, method)(X), getattr(model, method)(X))
    for key, value in model.get_params().items():
        np.testing.assert_array_equal(found.get_params()[key], value, err_msg=key)
    np.testing.assert_array_equal(clone(found).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize(
    "labels",
    [np.array(["bad", "gööd"]), np.array(["b", "g"], dtype=object), np.array([False, True]), np.array([1.0, 2.0])],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_and_names_of_features_come_back(tmp_path: Path, labels: NDArray[Any]) -> None:
    frame = load_breast_cancer(as_frame=True)
    X, y = frame.data / frame.data.std(), labels[frame.target]
    for model in (rw.RankSVM(), rw.RankSVMCV(Cs=2, cv=2)):
        found = saved(model.fit(X, y), tmp_path)
        assert_same_learnt(model, found)
        assert found.predict(X).tolist() == model.predict(X).tolist()
        assert found.feature_names_in_.dtype == object
        with pytest.raises(ValueError, match="same order"):
            found.predict(X[X.columns[::-1]])


def test_a_fit_that_was_interrupted_is_saved_too(cancer: Data, tmp_path: Path, interrupt_at: Any) -> None:
    interrupt_at(2)
    model = rw.RankSVM(C=1000.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*cancer)
    assert_same_learnt(model, saved(model, tmp_path))


def test_a_loss_of_your_own_is_kept_by_name(cancer: Data, tmp_path: Path) -> None:
    X, y = cancer
    root = rw.DiscountedLoss(discount=lambda m: m**-0.5, name="root")
    model = rw.RankSVM(root).fit(X, y)
    found = saved(model, tmp_path)
    assert found.loss == "root"
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="unknown loss 'root'"):
        found.fit(X, y)
    both = saved(rw.RankSVMCV([root, rw.AUC()], Cs=2, cv=2).fit(X, y), tmp_path)
    assert both.loss == ["root", "auc"]
    assert both.loss_ in both.loss


def test_a_loss_that_borrows_a_name_is_not_taken_for_the_other(cancer: Data, tmp_path: Path) -> None:
    X, y = cancer
    found = saved(rw.RankSVM(rw.NDCG(discount=lambda m: m**-0.5)).fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="unknown loss"):
        found.fit(X, y)
    assert saved(rw.RankSVM(rw.NDCG()).fit(X, y), tmp_path).loss == "ndcg"


def test_what_is_not_plain_data_is_left_out_and_listed(cancer: Data, few: Data, tmp_path: Path) -> None:
    model = rw.RankSVMCV(Cs=2, cv=StratifiedKFold(2), scoring=as_metric("ndcg@5"), tol=0.01).fit(*cancer)
    found = saved(model, tmp_path)
    assert read_model(tmp_path / "model.rankwise").header["left_out"] == ["cv"]
    assert (found.cv, found.scoring, found.tol) == (5, "ndcg@5", 0.01)
    ranker = saved(rw.LinearRanker(get_scorer("roc_auc"), cv=StratifiedKFold(2)).fit(*few), tmp_path)
    assert read_model(tmp_path / "model.rankwise").header["left_out"] == ["cv", "metric"]
    assert (ranker.metric, ranker.cv, ranker.metric_) == ("ap", 5, "score")
    assert "not plain data" in " ".join(str(rw.RankSVM.save.__doc__).split())


def test_the_report_comes_back_also_without_folds(few: Data, linear: rw.LinearRanker, tmp_path: Path) -> None:
    alone = rw.LinearRanker().fit(few[0], np.arange(60) == 3)
    for model in (linear, alone):
        found = saved(model, tmp_path)
        assert (str(found.report_), repr(found.report_)) == (str(model.report_), repr(model.report_))
        assert np.isnan(found.best_score_) == (model is alone)


@pytest.mark.parametrize("kind", ["ap", "cv"])
def test_parameters_of_0_2_0_that_are_gone_are_no_obstacle(cancer: Data, tmp_path: Path, kind: str) -> None:
    model = clone(MODELS[kind]).fit(*cancer)
    model.save(tmp_path / "m.rw")
    file = read_model(tmp_path / "m.rw")
    gone = {"solver": "frank-wolfe", "prior": [0.5] * 30, "refit": "average", "random_state": 3}
    write_model(tmp_path / "m.rw", file.kind, file.header | {"params": file.header["params"] | gone}, file.arrays)
    found = rw.load(tmp_path / "m.rw")
    np.testing.assert_array_equal(found.decision_function(cancer[0]), model.decision_function(cancer[0]))
    assert set(found.get_params()) == set(model.get_params())
    assert getattr(found, "random_state", 3) == 3


@pytest.mark.parametrize("kind", [rw.RankSVM, rw.RankSVMCV, rw.LinearRanker])
def test_what_is_not_fitted_is_not_saved(cancer: Data, tmp_path: Path, kind: Any) -> None:
    model = kind()
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.rankwise")
    with pytest.raises(ValueError, match="one class"):
        model.fit(cancer[0], np.ones(569))
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.rankwise")
    assert list(tmp_path.iterdir()) == []


def without(part: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}


Change = Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]
TAMPERED: dict[str, Change] = {
    "coef-transposed": lambda h, a: (h, a | {"coef_": a["coef_"].T}),
    "coef-short": lambda h, a: (h, a | {"coef_": a["coef_"][:, 1:]}),
    "coef-nan": lambda h, a: (h, a | {"coef_": np.where(a["coef_"] > 0, np.nan, a["coef_"])}),
    "coef-float32": lambda h, a: (h, a | {"coef_": a["coef_"].astype(np.float32)}),
    "intercept-nan": lambda h, a: (h, a | {"intercept_": np.array([np.nan])}),
    "classes-three": lambda h, a: (h, a | {"classes_": np.arange(3)}),
    "names-few": lambda h, a: (h, a | {"feature_names_in_": np.array(["a", "b"])}),
    "no-coef": lambda h, a: (h, without(a, "coef_")),
    "no-classes": lambda h, a: (h, without(a, "classes_")),
    "no-params": lambda h, a: (without(h, "params"), a),
    "no-learnt": lambda h, a: (without(h, "learnt"), a),
    "no-size": lambda h, a: (h | {"learnt": without(h["learnt"], "n_features_in_")}, a),
    "size-other": lambda h, a: (h | {"learnt": h["learnt"] | {"n_features_in_": 31}}, a),
    "size-none": lambda h, a: (h | {"learnt": h["learnt"] | {"n_features_in_": None}}, a),
    "strange-param": lambda h, a: (h | {"params": h["params"] | {"gamma": 1}}, a),
}


def column(name: str, change: Callable[[NDArray[Any]], Any]) -> Change:
    return lambda h, a: (h, a | {f"history.{name}": change(a[f"history.{name}"])})


TAMPERED_HISTORY: dict[str, Change] = {
    "model-unknown": column("model", lambda c: c + 4),
    "model-floats": column("model", lambda c: c + 0.5),
    "pull-unknown": column("pull", lambda c: c + 3),
    "share-nan": column("share", lambda c: c * np.nan),
    "at-infinite": column("at", lambda c: c * np.inf),
    "fold-infinite": column("fold0", lambda c: c + np.inf),
    "fold-short": column("fold1", lambda c: c[1:]),
    "no-rows": lambda h, a: (h, {name: v[:0] if name.startswith("history") else v for name, v in a.items()}),
    "no-history": lambda h, a: (h, {name: v for name, v in a.items() if not name.startswith("history")}),
    "no-shares": lambda h, a: (h, {name: v for name, v in a.items() if name != "history.share"}),
    "no-metric": lambda h, a: (h | {"learnt": {k: v for k, v in h["learnt"].items() if k != "metric_"}}, a),
    "metric-number": lambda h, a: (h | {"learnt": h["learnt"] | {"metric_": 3}}, a),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *((kind, name) for kind in ("ap", "cv", "linear") for name in TAMPERED),
        *(("linear", n) for n in TAMPERED_HISTORY),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(
    cancer: Data, linear: rw.LinearRanker, tmp_path: Path, kind: str, change: str
) -> None:
    path = tmp_path / "model.rankwise"
    (linear if kind == "linear" else clone(MODELS[kind]).fit(*cancer)).save(path)
    file: ModelFile = read_model(path)
    write_model(path, file.kind, *(TAMPERED | TAMPERED_HISTORY)[change](file.header, file.arrays))
    with pytest.raises(ModelFileError, match=r"model\.rankwise: .*again|model\.rankwise: unknown parameter"):
        rw.load(path)


def test_a_kind_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "m.rw", "forest", {}, {})
    with pytest.raises(ModelFileError, match="unknown kind 'forest'; upgrade rankwise"):
        rw.load(tmp_path / "m.rw")
    with pytest.raises(ModelFileError, match="no such file"):
        rw.load(tmp_path / "none.rw")


@pytest.mark.parametrize("kind", ["cv", "linear"])
def test_the_file_of_one_class_is_not_taken_for_that_of_another(
    cancer: Data, few: Data, tmp_path: Path, kind: str
) -> None:
    clone(MODELS[kind]).fit(*(few if kind == "linear" else cancer)).save(tmp_path / "m.rw")
    file = read_model(tmp_path / "m.rw")
    write_model(tmp_path / "m.rw", "rank-svm", file.header, file.arrays)
    with pytest.raises(ModelFileError, match="unknown parameter"):
        rw.load(tmp_path / "m.rw")


class _Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_loading_executes_nothing(cancer: Data, tmp_path: Path) -> None:
    sprung, pickled, archive = tmp_path / "sprung", tmp_path / "model.rw", tmp_path / "archive.rw"
    trap = pickle.dumps(_Trap(sprung))
    pickled.write_bytes(trap)
    objects = np.empty(1, dtype=object)
    objects[0] = _Trap(sprung)
    with archive.open("wb") as file:
        np.savez(file, coef_=objects)
    for path in (pickled, archive):
        with pytest.raises(ModelFileError, match="not a rankwise model"):
            rw.load(path)
    assert not sprung.exists()
    pickle.loads(trap)
    assert sprung.exists()  # the trap works


def test_equal_models_are_equal_files(cancer: Data, linear: rw.LinearRanker, tmp_path: Path) -> None:
    for model in (rw.RankSVM().fit(*cancer), linear):
        model.save(tmp_path / "a.rw")
        rw.load(tmp_path / "a.rw").save(str(tmp_path / "b.rw"))
        assert (tmp_path / "a.rw").read_bytes() == (tmp_path / "b.rw").read_bytes()


KILLED = """
import os, signal, sys
import numpy as np, rankwise

models = {name: rankwise.load(name + ".rw") for name in "ab"}

# A moment is a call or a return while the file is being written: a busy machine changes nothing.
def save(act):
    count = [0]
    def note(frame, event, argument):
        count[0] += 1
        act(count[0])
    sys.setprofile(note)
    models["b"].save("m.rw")
    sys.setprofile(None)
    return count[0]

total, found = save(lambda count: None), []
for moment in np.linspace(1, total, 8).astype(int):
    models["a"].save("m.rw")
    child = os.fork()
    if child == 0:
        save(lambda count: count < moment or os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    os.waitpid(child, 0)
    coef = rankwise.load("m.rw").coef_
    found += [name for name, model in models.items() if np.array_equal(coef, model.coef_)]
print("".join(found))
"""


@pytest.mark.kill
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_kill_while_it_is_saved_leaves_the_old_file_or_the_new(
    few: Data, linear: rw.LinearRanker, tmp_path: Path
) -> None:
    linear.save(tmp_path / "a.rw")
    rw.LinearRanker(cv=StratifiedKFold(2)).fit(*few).save(tmp_path / "b.rw")
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    found = done.stdout.strip()
    assert len(found) == 8, f"a file that is neither: {done.stderr}"
    assert found == "".join(sorted(found))
    assert "ab" in found
