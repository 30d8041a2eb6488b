"""`rankwise fit`: its model is that of the Python interface, from every kind of file and option; what is said of it."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from commands import ATOL, RTOL, Capture, Samples, document, draw, run
from samples import write_samples

import rankwise as rw
from rankwise.io import read_model
from rankwise.linear import candidates

pytestmark = pytest.mark.usefixtures("short_search")
FAST = "--cv 2 --quiet"
N = 60


def small(seed: int) -> Samples:
    return draw(seed, n=N, d=3, n_queries=4)


def written(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).read_text())
    return found


class Fit(NamedTuple):
    """What `rankwise fit train.csv -o m.rw --cv 2 --json f.json` wrote and said, and the same model of Python."""

    folder: Path
    out: str
    err: str
    expected: rw.LinearRanker


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Files of few samples, and a model."""
    folder, out, err = tmp_path_factory.mktemp("fit"), io.StringIO(), io.StringIO()
    for name, seed in (("train", 1), ("test", 2)):
        X, y, qid = small(seed)
        write_samples(folder / f"{name}.csv", X, y, qid)
        write_samples(folder / f"{name}-flat.csv", X, y >= 1)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        run("fit train.csv -o m.rw --cv 2 --json f.json")
    X, y, qid = small(1)
    return Fit(folder, out.getvalue(), err.getvalue(), rw.LinearRanker("ap", cv=2).fit(X, y >= 1, qid))


@pytest.fixture
def files(fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the files that were fitted and written, in which commands are run."""
    shutil.copytree(fit.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_scores_are_those_of_the_python_interface(files: Path, fit: Fit) -> None:
    test, _, test_qid = small(2)
    expected = fit.expected
    run("predict m.rw test.csv -o scores.txt")
    np.testing.assert_allclose(np.loadtxt("scores.txt"), expected.decision_function(test), RTOL, ATOL)
    run("predict m.rw test.csv -o ranks.txt --rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(test, test_qid)]
    run("predict m.rw test.csv -o labels.txt --labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(test)]


def test_options_reach_the_estimator(files: Path) -> None:
    run("fit train.csv -o m.rw --metric mrr --cv 3 --jobs 2 --seed 7 --quiet")
    expected = {"metric": "mrr", "cv": 3, "n_jobs": 2, "random_state": 7, "verbose": 0}
    assert rw.load("m.rw").get_params().items() >= expected.items()


def test_data_come_through_standard_input(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    write_samples("train.txt.gz", *small(1))
    write_samples("test.svm", *small(2))

    def give(path: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("train.txt.gz")
    run(f"fit - -o piped.rw {FAST}")
    np.testing.assert_allclose(rw.load("piped.rw").coef_, rw.load("m.rw").coef_, RTOL, ATOL)
    assert read_model("piped.rw").header["note"]["source"] == "standard input"
    give("test.svm")
    run("predict m.rw -")
    piped = capsys.readouterr().out
    run("predict m.rw test.csv")
    assert capsys.readouterr().out == piped


def test_map_is_ap_of_data_with_queries(files: Path) -> None:
    run(f"fit train.csv -o map.rw --metric map {FAST}")
    np.testing.assert_array_equal(rw.load("m.rw").coef_, rw.load("map.rw").coef_)
    run(f"fit train.csv -o flat.rw --no-qid {FAST}")
    assert (rw.load("flat.rw").coef_ != rw.load("m.rw").coef_).all()
    run("predict m.rw test.csv --rank --no-qid -o ranks.txt")
    assert sorted(map(int, Path("ranks.txt").read_text().split())) == list(range(1, N + 1))


def test_grades_count_for_ndcg_and_not_for_other_metrics(files: Path, fit: Fit) -> None:
    X, y, qid = small(1)
    run(f"fit train.csv -o m.rw --metric ndcg@5 --json graded.json {FAST}")
    graded = rw.LinearRanker("ndcg@5", cv=2).fit(X, y, qid)
    for name, expected in (("graded.json", graded), ("f.json", fit.expected)):
        scores = [row["score"] for row in written(name)["candidates"]]
        np.testing.assert_allclose(scores, expected.report_.scores, RTOL)


def test_relevance_names_and_classes_are_kept(files: Path) -> None:
    run(f"fit train.csv -o m.rw --relevant-from 2 {FAST}")
    X, y, qid = small(1)
    stored, note = rw.load("m.rw"), read_model("m.rw").header["note"]
    np.testing.assert_allclose(stored.coef_, rw.LinearRanker(cv=2).fit(X, y >= 2, qid).coef_, RTOL, ATOL)
    assert stored.feature_names_in_.tolist() == ["f1", "f2", "f3"]
    assert (note["relevant_from"], note["interrupted"]) == (2.0, False)
    test = document("evaluate m.rw test.csv --metrics ap --resamples 0")["data"]
    assert (test["relevant_from"], test["positives"]) == (2.0, int((small(2)[1] >= 2).sum()))


def test_features_are_those_of_training_by_index_and_by_name(files: Path) -> None:
    Path("from0.svm").write_text("1 0:1 1:2\n0 0:-1 1:1\n1 0:2\n0 1:3\n")
    Path("sparse.svm").write_text("0 1:1\n")
    run("fit from0.svm -o m0.rw --quiet")
    run("predict m0.rw sparse.svm -o scores.txt")
    stored = rw.load("m0.rw")
    assert np.loadtxt("scores.txt", ndmin=1)[0] == pytest.approx(stored.coef_[0, 1] + stored.intercept_[0])
    X, y, qid = small(2)
    write_samples("turned.csv", X[:, ::-1], y, qid, ["f3", "f2", "f1"])
    for name in ("test", "turned"):
        run(f"predict m.rw {name}.csv -o {name}.txt")
    assert Path("test.txt").read_text() == Path("turned.txt").read_text()


def test_a_file_with_its_ids_is_taken(files: Path, capsys: Capture) -> None:
    lines = Path("test.csv").read_text().splitlines()
    Path("ids.csv").write_text("\n".join(f"{'id' if k == 0 else f'C{k}'},{line}" for k, line in enumerate(lines)))
    run(f"fit ids.csv -o ids.rw --ignore id {FAST}")
    run("evaluate ids.rw ids.csv --ignore id --resamples 0")
    run("predict ids.rw ids.csv --ignore id -o scores.txt")
    assert len(Path("scores.txt").read_text().splitlines()) == N
    capsys.readouterr()
    run("predict ids.rw ids.csv", status=2)
    said = "the model has no feature 'id'; remove it, or name it with --label, --query or --ignore"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("labels", [(-1.0, 1.0), (3.0, 7.0), (0.25, 0.75)])
def test_two_labels_are_the_classes_if_they_are_whole(files: Path, labels: tuple[float, float]) -> None:
    X, y, _ = small(1)
    write_samples("two.svm", X, np.where(y >= 1, labels[1], labels[0]))
    run(f"fit two.svm -o m.rw --cv 2 --quiet --relevant-from {labels[1]}")
    expected = [0, 1] if labels[0] == 0.25 else [int(label) for label in labels]
    assert rw.load("m.rw").classes_.tolist() == expected


def test_one_relevant_sample_is_enough(files: Path, capsys: Capture) -> None:
    write_samples("one.csv", small(1)[0], np.arange(N) == 7)
    run("fit one.csv -o m.rw --json f.json")
    assert "metric ap, not scored: too few samples for cross-validation" in capsys.readouterr().out
    found = written("f.json")
    assert found["best_score"] is None
    assert found["notes"][0].startswith("one.csv: too few samples for cross-validation")
    run("predict m.rw one.csv -o scores.txt")
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
    found = written("f.json")
    keys = "command rankwise model kind data metric candidates best_score seconds interrupted notes"
    assert set(found) == set(keys.split())
    assert (found["kind"], found["metric"], found["interrupted"]) == ("linear-ranker", "ap", False)
    assert [row["name"] for row in found["candidates"]] == stored.report_.names
    assert sum(row["share"] for row in found["candidates"]) == pytest.approx(1.0)
    assert found["best_score"] == stored.best_score_
    run(f"fit train-flat.csv -o m.rw {FAST}")
    assert capsys.readouterr() == ("", "")


# Interrupts


@pytest.mark.parametrize("k", [0, 1, 40])
def test_an_interrupt_of_the_search_leaves_a_model_if_anything_was_learnt(
    files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    real, count = candidates.Classifier.fit, [0]

    def fit(self: Any, C: float) -> Any:
        count[0] += 1
        if k in (0, count[0]):  # Ctrl-C at the k-th fit of a classifier, or at every one
            raise KeyboardInterrupt
        return real(self, C)

    Path("m.rw").unlink()
    monkeypatch.setattr(candidates.Classifier, "fit", fit)
    run(f"fit train-flat.csv -o m.rw --json f.json {FAST}", status=130)
    said = capsys.readouterr().err
    if k == 0:
        assert said == "rankwise: interrupted before anything was learnt; m.rw was not written\n"
        assert not Path("m.rw").exists()
        return
    assert said == "rankwise: interrupted: m.rw contains the best model so far\n"
    assert written("f.json")["interrupted"] is True
    assert read_model("m.rw").header["note"]["interrupted"] is True
    assert (rw.load("m.rw").report_.folds.size > 0) == (k > 1)
    run("predict m.rw test-flat.csv -o scores.txt")
