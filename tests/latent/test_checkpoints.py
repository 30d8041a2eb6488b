"""Checkpoints: a fit that is cut off, by Ctrl-C or kill -9, goes on to the same model; no other is mistaken for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_problems import ZEROS, planted
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import rankwise as rw
from rankwise.io import ModelFileError, read_model, write_model
from rankwise.latent import cccp, training

Array = NDArray[np.float64]
pytestmark = pytest.mark.filterwarnings(ZEROS)


def data() -> tuple[list[Array], NDArray[np.bool_]]:
    return planted(width=4, most=8)[:2]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("latent-*.rw"))


def assert_same(model: Any, other: Any) -> None:
    """The same to the last bit, but for the time it took."""
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    assert (model.objective_, model.dual_, model.gap_) == (other.objective_, other.dual_, other.gap_)
    assert (model.converged_, model.n_iter_) == (other.converged_, other.n_iter_)
    for name in set(model.history_) - {"seconds"}:
        np.testing.assert_array_equal(model.history_[name], other.history_[name], err_msg=name)


@pytest.mark.parametrize(("loss", "init"), [("ap", "random"), ("zero-one", "mean"), ("ndcg", "first")])
def test_a_fit_cut_off_anywhere_goes_on_to_the_same_model(
    loss: str, init: str, route: str, tmp_path: Path, interrupted: Any
) -> None:
    bags, y = data()
    model = rw.LatentRankSVM(loss, 30.0, checkpoint=tmp_path / "c", tol=1e-5, outer_tol=1e-9, init=init)
    whole = rw.LatentRankSVM(**model.get_params() | {"checkpoint": None}).fit(bags, y)
    cuts = 0
    for at in (7, 31, 3, 58, 40, 17):
        with interrupted(lambda k, at=at: k == at), suppress(KeyboardInterrupt):
            cuts += 1
            model.fit(bags, y)
            cuts -= 1
    model.fit(bags, y)
    assert cuts >= 3
    assert_same(model, whole)
    assert len(files(tmp_path / "c")) == len(list((tmp_path / "c").iterdir())) == 1
    assert model.timing_["calls"] >= whole.timing_["calls"] - 20  # the ranker of means is not learnt again


def test_a_finished_fit_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    model = rw.LatentRankSVM(C=3.0, checkpoint=str(tmp_path / "made" / "here"))
    first = rw.LatentRankSVM(**model.get_params()).fit(bags, y)
    before = {path: path.read_bytes() for path in files(tmp_path / "made" / "here")}

    def never(*args: Any) -> None:
        raise AssertionError("it was done already")

    monkeypatch.setattr(cccp, "_round", never)
    monkeypatch.setattr(training, "begin", never)
    assert_same(model.fit(bags, y), first)
    assert_same(rw.LatentRankSVM(**model.get_params() | {"n_threads": 2, "verbose": 1}).fit(bags, y), first)
    assert {path: path.read_bytes() for path in files(tmp_path / "made" / "here")} == before
    assert len(before) == 1


def root(power: float) -> rw.Loss:
    return rw.DiscountedLoss(discount=lambda m: m**-power, name="root")


def linear(k: int) -> LogisticRegression:
    return LogisticRegression().fit(np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % k == 0)


QID = np.arange(60) // 3 % 4
OTHERS: dict[str, dict[str, Any]] = {
    "C": {"C": 1.5},
    "loss": {"loss": "auc"},
    "own loss": {"loss": root(0.5)},
    "another own loss": {"loss": root(2.0)},
    "zero-one": {"loss": "zero-one"},
    "without intercept": {"loss": "zero-one", "fit_intercept": False},
    "scale": {"scale": 0.5},
    "init": {"init": "first"},
    "candidates": {"init": np.ones(60, int)},
    "other candidates": {"init": np.zeros(60, int)},
    "coefficients": {"init": np.ones(4)},
    "model": {"init": linear(2)},
    "other model": {"init": linear(3)},
    "tol": {"tol": 1e-4},
    "outer_tol": {"outer_tol": 1e-4},
    "max_outer": {"max_outer": 49},
    "max_iter": {"max_iter": 9999},
    "chance": {"init": "random"},
    "other chance": {"init": "random", "random_state": 1},
}


def test_another_problem_in_the_same_folder_is_another_file(tmp_path: Path) -> None:
    bags, y = data()
    rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    for known, (name, options) in enumerate(OTHERS.items(), 1):
        parameters = {"C": 1.0, **options}
        model = rw.LatentRankSVM(checkpoint=tmp_path, **parameters).fit(bags, y)
        assert len(files(tmp_path)) == known + 1, name
        assert_same(model, rw.LatentRankSVM(**parameters).fit(bags, y))
    known = len(files(tmp_path))
    moved = y.copy()
    moved[[0, 1]] = False, True
    changed = [bag.copy() for bag in bags]
    changed[17][-1, 3] += 1e-6
    regrouped = [np.concatenate(bags[:2])[:1], np.concatenate(bags[:2])[1:], *bags[2:]]
    weight = 1.0 + QID
    others = [(bags, moved), (changed, y), (regrouped, y), (bags, y, QID), (bags, y, QID, weight), (bags[1:], y[1:])]
    for given in others:
        model = rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(*given)
        known += 1
        assert len(files(tmp_path)) == known
        assert_same(model, rw.LatentRankSVM(C=1.0).fit(*given))


def test_equal_problems_are_one_file_whatever_they_are_made_of(tmp_path: Path) -> None:
    bags, y = data()
    names = [np.array([f"query {q}" for q in QID], dtype=object) for _ in range(2)]
    forms = [(bags, y, names[0]), (bags, y.astype(int), names[1]), ([bag.tolist() for bag in bags], y, QID)]
    models = [rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(*form) for form in forms]
    assert len(files(tmp_path)) == 1
    for model in models[1:]:
        assert_same(model, models[0])


@pytest.mark.parametrize("how", ["cut", "another kind", "without coef", "without working.rows"])
def test_a_damaged_checkpoint_is_refused_by_name(how: str, tmp_path: Path) -> None:
    bags, y = data()
    rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    (path,) = files(tmp_path)
    file, gone = read_model(path), how.removeprefix("without ")
    arrays = {name: part for name, part in file.arrays.items() if name != gone}
    write_model(path, "rank-svm" if how == "another kind" else file.kind, file.header, arrays)
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match=path.name.replace(".", r"\.")) as caught:
        rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    assert "\n" not in str(caught.value)


def test_a_file_is_no_folder_for_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        rw.LatentRankSVM(C=1.0, checkpoint=tmp_path / "file").fit(*data())


def test_a_search_keeps_every_fit_and_reads_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3, checkpoint=tmp_path)
    first = rw.LatentRankSVMCV(**model.get_params()).fit(bags, y)
    assert len(files(tmp_path)) == 7
    monkeypatch.setattr(cccp, "_round", None)
    assert_same(model.fit(bags, y), first)
    np.testing.assert_array_equal(model.scores_, first.scores_)


KILLED = """
import json, os, signal, sys
import numpy as np
import rankwise as rw
from rankwise.latent import Bags, cccp, training

cccp._SMALL = 0
folder = sys.argv[1]
bags = Bags(np.load(folder + "/x.npy", mmap_mode="r"), np.arange(201) * 50)
y = np.arange(200) % 8 == 0
rng = np.random.default_rng(int(sys.argv[2]))

def fit(checkpoint):
    model = rw.LatentRankSVM("zero-one", 30.0, tol=1e-6, outer_tol=1e-9, checkpoint=checkpoint)
    model.fit(bags, y)
    return {"coef": model.coef_.tolist(), "passes": model.timing_["passes"], "converged": model.converged_,
            "history": {name: part.tolist() for name, part in model.history_.items() if name != "seconds"}}

# In this process: the signal, when a checkpoint has been written for the n-th time.
def after_saves(n, signal_):
    write, count = training.write_state, [0]

    def counted(path, state):
        write(path, state)
        count[0] += 1
        if count[0] == n:
            os.kill(os.getpid(), signal_)

    training.write_state = counted

# In this process: kill -9 when a new checkpoint is whole but not yet in the place of the old one.
def before_replacing():
    os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)

# How a process ends that is prepared so and fits; 7 after Ctrl-C.
def ended(prepare):
    pid = os.fork()
    if pid == 0:
        prepare()
        try:
            fit(folder)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

# In this process: kill -9 at some moment; it may come too late.
def at_random():
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.01, 0.3))

whole = fit(None)
ends = [ended(lambda n=n: after_saves(n, signal.SIGKILL)) for n in (1, 3)]
ends += [ended(before_replacing), ended(lambda: after_saves(2, signal.SIGINT))]
for _ in range(2):
    ended(at_random)
print(json.dumps({"whole": whole, "resumed": fit(folder), "ends": ends}))
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork here")
def test_a_fit_killed_at_any_moment_goes_on_to_the_same_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(10_000, 24)).astype(np.float32)
    features[np.arange(0, 10_000, 400) + 20, :2] += 4.0
    np.save(tmp_path / "x.npy", features)
    command = [sys.executable, "-c", KILLED, str(tmp_path), "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ends"] == [-signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, 7]
    assert found["whole"]["converged"]
    assert np.any(found["whole"]["coef"])
    assert len(found["whole"]["history"]["changed"]) > 1
    assert found["resumed"]["coef"] == found["whole"]["coef"]
    assert found["resumed"]["history"] == found["whole"]["history"]
    assert len(list(tmp_path.glob("latent-*.rw"))) == 1
