"""LinearRanker in files: what is written is read, what does not hold together is refused, a kill does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold

import rankwise as rw
from rankwise.io import ModelFileError, read_model, write_model

pytestmark = pytest.mark.usefixtures("short_search")
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0.8).astype(int)


@pytest.fixture(scope="module")
def model(data: Data) -> rw.LinearRanker:
    return rw.LinearRanker("ndcg@10", cv=2, random_state=4).fit(*data)


def test_a_model_comes_back_whole(data: Data, model: rw.LinearRanker, tmp_path: Path) -> None:
    model.save(tmp_path / "m.rw")
    found = rw.load(tmp_path / "m.rw")
    assert type(found) is rw.LinearRanker
    assert found.get_params() == model.get_params()
    for method in ("decision_function", "predict", "rank"):
        np.testing.assert_array_equal(getattr(found, method)(data[0]), getattr(model, method)(data[0]))
    assert (found.metric_, found.best_score_, found.timing_) == (model.metric_, model.best_score_, model.timing_)
    assert set(found.history_) == set(model.history_)
    for name, column in model.history_.items():
        np.testing.assert_array_equal(found.history_[name], column)
    assert str(found.report_) == str(model.report_)
    assert repr(found.report_) == repr(model.report_)
    found.save(tmp_path / "again.rw")
    assert (tmp_path / "m.rw").read_bytes() == (tmp_path / "again.rw").read_bytes()


def test_the_report_of_a_loaded_model_is_drawn(model: rw.LinearRanker, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model.save(tmp_path / "m.rw")
    assert len(rw.load(tmp_path / "m.rw").report_.plot().axes) == 2


def test_a_model_without_folds_comes_back(data: Data, tmp_path: Path) -> None:
    X, _ = data
    model = rw.LinearRanker().fit(X, np.arange(60) == 3)
    model.save(tmp_path / "m.rw")
    found = rw.load(tmp_path / "m.rw")
    assert np.isnan(found.best_score_)
    assert str(found.report_) == str(model.report_)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))


def test_a_scorer_and_a_splitter_are_left_out_and_listed(data: Data, tmp_path: Path) -> None:
    model = rw.LinearRanker(get_scorer("roc_auc"), cv=StratifiedKFold(2)).fit(*data)
    model.save(tmp_path / "m.rw")
    assert read_model(tmp_path / "m.rw").header["left_out"] == ["cv", "metric"]
    found = rw.load(tmp_path / "m.rw")
    assert (found.metric, found.cv, found.metric_) == ("ap", 5, "score")
    assert str(found.report_) == str(model.report_)


def test_what_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        rw.LinearRanker().save(tmp_path / "m.rw")
    assert list(tmp_path.iterdir()) == []


Change = Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]


def column(name: str, change: Callable[[NDArray[Any]], Any]) -> Change:
    return lambda h, a: (h, a | {f"history.{name}": change(a[f"history.{name}"])})


TAMPERED: dict[str, Change] = {
    "model-unknown": column("model", lambda c: c + 4),
    "model-negative": column("model", lambda c: c - 1),
    "model-floats": column("model", lambda c: c + 0.5),
    "pull-unknown": column("pull", lambda c: c + 3),
    "share-nan": column("share", lambda c: c * np.nan),
    "share-float32": column("share", lambda c: c.astype(np.float32)),
    "at-infinite": column("at", lambda c: c * np.inf),
    "fold-infinite": column("fold0", lambda c: c + np.inf),
    "fold-integers": column("fold1", lambda c: np.zeros(c.size, int)),
    "fold-short": column("fold1", lambda c: c[1:]),
    "no-rows": lambda h, a: (h, {name: v[:0] if name.startswith("history") else v for name, v in a.items()}),
    "no-history": lambda h, a: (h, {name: v for name, v in a.items() if not name.startswith("history")}),
    "no-shares": lambda h, a: (h, {name: v for name, v in a.items() if name != "history.share"}),
    "no-metric": lambda h, a: (h | {"learnt": {k: v for k, v in h["learnt"].items() if k != "metric_"}}, a),
    "metric-number": lambda h, a: (h | {"learnt": h["learnt"] | {"metric_": 3}}, a),
    "coef-nan": lambda h, a: (h, a | {"coef_": a["coef_"] * np.nan}),
    "coef-short": lambda h, a: (h, a | {"coef_": a["coef_"][:, 1:]}),
    "strange-param": lambda h, a: (h | {"params": h["params"] | {"C": 1.0}}, a),
}


@pytest.mark.parametrize("change", TAMPERED)
def test_a_file_that_does_not_hold_together_is_refused(model: rw.LinearRanker, tmp_path: Path, change: str) -> None:
    path = tmp_path / "model.rw"
    model.save(path)
    file = read_model(path)
    write_model(path, file.kind, *TAMPERED[change](file.header, file.arrays))
    with pytest.raises(ModelFileError, match=r"model\.rw: .*again|model\.rw: unknown parameter"):
        rw.load(path)


def test_the_file_of_one_class_is_not_taken_for_that_of_another(model: rw.LinearRanker, tmp_path: Path) -> None:
    model.save(tmp_path / "m.rw")
    file = read_model(tmp_path / "m.rw")
    write_model(tmp_path / "m.rw", "rank-svm", file.header, file.arrays)
    with pytest.raises(ModelFileError, match="unknown parameter"):
        rw.load(tmp_path / "m.rw")


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
    data: Data, model: rw.LinearRanker, tmp_path: Path
) -> None:
    model.save(tmp_path / "a.rw")
    rw.LinearRanker(cv=StratifiedKFold(2)).fit(data[0], data[1]).save(tmp_path / "b.rw")
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    found = done.stdout.strip()
    assert len(found) == 8, f"a file that is neither: {done.stderr}"
    assert found == "".join(sorted(found))
    assert "ab" in found
