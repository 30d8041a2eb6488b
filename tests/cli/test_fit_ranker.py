"""Fitting LinearRanker, the default of `rankwise fit`: its model, and what is said of it."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from commands import ATOL, COMMAND, PNG, RTOL, Capture, Samples, draw, run, scores_of

import rankwise as rw
from rankwise.io import read_model, write_data
from rankwise.linear import candidates

pytestmark = pytest.mark.usefixtures("short_search")
FAST = ("--cv", 2, "--quiet")
N = 60


def small(seed: int) -> Samples:
    return draw(seed, n=N, d=3, n_queries=4)


class Fit(NamedTuple):
    """What `rankwise fit train.csv -o m.rw --cv 2 --json f.json` wrote and said, and the same model of Python."""

    folder: Path
    out: str
    err: str
    expected: rw.LinearRanker


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """As `folder`, of fewer samples, and fitted."""
    folder, out, err = tmp_path_factory.mktemp("fit"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, seed in (("train", 1), ("test", 2)):
            X, y, qid = small(seed)
            write_data(f"{name}.csv", X, y, qid)
            write_data(f"{name}.svm", X, y, qid)
            write_data(f"{name}-flat.csv", X, y >= 1)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run("fit", "train.csv", "-o", "m.rw", "--cv", 2, "--json", "f.json")
    X, y, qid = small(1)
    return Fit(folder, out.getvalue(), err.getvalue(), rw.LinearRanker("ap", cv=2).fit(X, y >= 1, qid))


@pytest.fixture
def files(fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the files that were fitted and written, in which commands are run."""
    shutil.copytree(fit.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "svm"])
def test_scores_are_those_of_the_python_interface(files: Path, fit: Fit, suffix: str) -> None:
    if suffix == "svm":
        run("fit", "train.svm", "-o", "m.rw", *FAST)
    run("predict", "m.rw", f"test.{suffix}", "-o", "scores.txt")
    test, _, test_qid = small(2)
    expected = fit.expected
    np.testing.assert_allclose(np.loadtxt("scores.txt"), expected.decision_function(test), RTOL, ATOL)
    run("predict", "m.rw", f"test.{suffix}", "-o", "ranks.txt", "--rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(test, test_qid)]
    run("predict", "m.rw", f"test.{suffix}", "-o", "labels.txt", "--labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(test)]


def test_naming_the_default_changes_nothing(files: Path) -> None:
    run("fit", "train-flat.csv", "-o", "a.rw", *FAST)
    run("fit", "train-flat.csv", "-o", "b.rw", "--model", "linear-ranker", "--metric", "ap", *FAST)
    np.testing.assert_array_equal(rw.load("a.rw").coef_, rw.load("b.rw").coef_)
    assert read_model("a.rw").kind == "linear-ranker"


def test_options_reach_the_estimator(files: Path) -> None:
    run("fit", "train.csv", "-o", "m.rw", "--metric", "mrr", "--cv", 3, "--jobs", 2, "--seed", 7, "--quiet")
    expected = {"metric": "mrr", "cv": 3, "n_jobs": 2, "random_state": 7, "verbose": 0}
    assert rw.load("m.rw").get_params() == {**expected, "surrogate": None}


def test_map_is_ap_of_data_with_queries(files: Path) -> None:
    run("fit", "train.csv", "-o", "map.rw", "--metric", "map", *FAST)
    np.testing.assert_array_equal(rw.load("m.rw").coef_, rw.load("map.rw").coef_)
    run("fit", "train.csv", "-o", "flat.rw", "--no-qid", *FAST)
    assert (rw.load("flat.rw").coef_ != rw.load("m.rw").coef_).all()


@pytest.mark.slow
def test_grades_count_for_ndcg_and_not_for_other_metrics(files: Path, fit: Fit) -> None:
    X, y, qid = small(1)
    run("fit", "train.csv", "-o", "m.rw", "--metric", "ndcg@5", "--json", "graded.json", *FAST)
    graded = rw.LinearRanker("ndcg@5", cv=2).fit(X, y, qid)
    for name, expected in (("graded.json", graded), ("f.json", fit.expected)):
        found = json.loads(Path(name).read_text())
        np.testing.assert_allclose([row["score"] for row in found["candidates"]], expected.report_.scores, RTOL)
    write_data("flat.csv", X, np.minimum(y, 1.0), qid)
    run("fit", "flat.csv", "-o", "m.rw", "--metric", "ndcg@5", "--json", "binary.json", *FAST)
    scores = [json.loads(Path(name).read_text())["best_score"] for name in ("binary.json", "graded.json")]
    assert scores[0] != scores[1]


def test_relevance_names_and_classes_are_kept(files: Path) -> None:
    run("fit", "train.csv", "-o", "m.rw", "--relevant-from", 2, *FAST)
    X, y, qid = small(1)
    stored = rw.load("m.rw")
    np.testing.assert_allclose(stored.coef_, rw.LinearRanker(cv=2).fit(X, y >= 2, qid).coef_, RTOL, ATOL)
    assert stored.feature_names_in_.tolist() == ["f1", "f2", "f3"]
    note = read_model("m.rw").header["note"]
    assert (note["relevant_from"], note["standardized"], note["interrupted"]) == (2.0, False, False)
    write_data("signs.csv", X, np.where(y >= 1, 1.0, -1.0))
    run("fit", "signs.csv", "-o", "signs.rw", *FAST)
    assert rw.load("signs.rw").classes_.tolist() == [-1, 1]


def test_one_relevant_sample_is_enough(files: Path, capsys: Capture) -> None:
    X, _, _ = small(1)
    write_data("one.csv", X, np.arange(N) == 7)
    run("fit", "one.csv", "-o", "m.rw", "--json", "f.json")
    printed = capsys.readouterr()
    assert "metric ap, not scored: too few samples for cross-validation" in printed.out
    assert json.loads(Path("f.json").read_text())["best_score"] is None
    run("predict", "m.rw", "one.csv", "-o", "scores.txt")
    assert np.isfinite(np.loadtxt("scores.txt")).all()


def test_the_summary_shows_what_was_tried(files: Path, fit: Fit, capsys: Capture) -> None:
    stored = rw.load("m.rw")
    lines = fit.out.splitlines()
    assert lines[0].startswith(f"train.csv: {N} samples with 3 features")
    assert lines[1] == "metric ap, scores by 6-fold cross-validation:"
    assert "\n".join(lines[2:-2]) == str(stored.report_)
    assert lines[-2].endswith("s of it for cross-validation")
    assert lines[-1] == "model: m.rw"
    assert "LinearRanker: " in fit.err
    found = json.loads(Path("f.json").read_text())
    assert set(found) == {
        *("command", "rankwise", "model", "kind", "data", "metric", "candidates", "best_score", "seconds"),
        *("interrupted", "notes"),
    }
    assert (found["kind"], found["metric"], found["interrupted"]) == ("linear-ranker", "ap", False)
    assert [row["name"] for row in found["candidates"]] == stored.report_.names
    assert sum(row["share"] for row in found["candidates"]) == pytest.approx(1.0)
    assert found["best_score"] == stored.best_score_
    run("fit", "train-flat.csv", "-o", "m.rw", *FAST)
    assert capsys.readouterr() == ("", "")


def test_a_document_on_standard_output_is_alone_there(files: Path, capsys: Capture) -> None:
    run("fit", "train-flat.csv", "-o", "m.rw", "--cv", 2, "--json", "-")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["command"] == "fit"
    assert "metric ap, scores by" in printed.err


def test_it_is_evaluated_and_drawn(files: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    run("evaluate", "m.rw", "test.csv", "--metrics", "ap", "--resamples", 0, "--plot", "pr.png", "--json", "e.json")
    X, y, qid = small(2)
    (row,) = json.loads(Path("e.json").read_text())["metrics"]
    assert row["value"] == pytest.approx(
        rw.metrics.average_precision(scores_of(Path("m.rw"), X), y >= 1, qid=qid), rel=RTOL
    )
    assert Path("pr.png").read_bytes().startswith(PNG)


# Interrupts


@pytest.fixture
def interrupted_fit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C at the k-th fit of a classifier."""

    def at(k: int) -> None:
        real, count = candidates.Classifier.fit, [0]

        def fit(self: Any, C: float) -> Any:
            count[0] += 1
            if count[0] == k:
                raise KeyboardInterrupt
            return real(self, C)

        monkeypatch.setattr(candidates.Classifier, "fit", fit)

    return at


@pytest.mark.parametrize("k", [1, 40])
def test_an_interrupt_of_the_search_leaves_a_model(
    files: Path, capsys: Capture, interrupted_fit: Callable[[int], None], k: int
) -> None:
    interrupted_fit(k)
    run("fit", "train-flat.csv", "-o", "m.rw", "--json", "f.json", *FAST, status=130)
    assert capsys.readouterr().err == "rankwise: interrupted: m.rw contains the best model so far\n"
    assert json.loads(Path("f.json").read_text())["interrupted"] is True
    assert read_model("m.rw").header["note"]["interrupted"] is True
    assert (rw.load("m.rw").report_.folds.size > 0) == (k > 1)
    run("predict", "m.rw", "test-flat.csv", "-o", "scores.txt")


def test_an_interrupt_before_anything_is_learnt_writes_nothing(
    files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(self: Any, C: float) -> Any:
        raise KeyboardInterrupt

    Path("m.rw").unlink()
    monkeypatch.setattr(candidates.Classifier, "fit", fit)
    run("fit", "train-flat.csv", "-o", "m.rw", *FAST, status=130)
    assert capsys.readouterr().err == "rankwise: interrupted before anything was learnt; m.rw was not written\n"
    assert not Path("m.rw").exists()


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals as POSIX has them")
def test_ctrl_c_in_a_long_fit_leaves_a_model(files: Path, at_a_terminal: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    write_data("long.npz", rng.normal(size=(6000, 60)), (rng.random(6000) < 0.3).astype(float))
    process, read = at_a_terminal(*COMMAND, "fit", "long.npz", "-o", "m.rw")
    read(until=b"LinearRanker")  # kernels may be compiled first
    process.send_signal(signal.SIGINT)
    err = read()
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert b"interrupted: m.rw contains the best model so far" in err
    assert out.endswith(b"model: m.rw\n")
    assert np.isfinite(rw.load("m.rw").coef_).all()
