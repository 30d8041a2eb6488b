"""`rankwise fit`: its model is that of the Python interface, from every kind of file and option; what is said of it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import ATOL, RTOL, Capture, document, draw, run
from samples import write_samples

import rankwise as rw
from rankwise.io import read_data, read_model
from rankwise.linear import candidates

pytestmark = pytest.mark.usefixtures("short_search")
FAST = "--cv 2 --quiet"


def ranker(metric: str = "ap", relevant_from: float = 1.0) -> rw.LinearRanker:
    """The model that train.csv should give."""
    X, y, qid = draw(1)
    return rw.LinearRanker(metric, cv=2).fit(X, y if "ndcg" in metric else y >= relevant_from, qid)


def test_scores_are_those_of_the_python_interface(folder: Path) -> None:
    run(f"fit train.csv -o m.rw {FAST}")
    expected, (X, _, qid) = ranker(), draw(2)
    run("predict m.rw test.csv -o scores.txt")
    np.testing.assert_allclose(np.loadtxt("scores.txt"), expected.decision_function(X), RTOL, ATOL)
    run("predict m.rw test.csv -o ranks.txt --rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(X, qid)]
    run("predict m.rw test.csv -o labels.txt --labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(X)]


def test_options_reach_the_estimator(folder: Path) -> None:
    run("fit train.csv -o m.rw --metric mrr --cv 3 --jobs 2 --seed 7 --quiet")
    expected = {"metric": "mrr", "cv": 3, "n_jobs": 2, "random_state": 7, "verbose": 0}
    assert rw.load("m.rw").get_params().items() >= expected.items()


def test_data_come_through_standard_input(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def give(path: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("train.txt.gz")
    run(f"fit - -o m.rw {FAST}")
    np.testing.assert_allclose(rw.load("m.rw").coef_, ranker().coef_, RTOL, ATOL)
    assert read_model("m.rw").header["note"]["source"] == "standard input"
    give("test.svm")
    run("predict m.rw -")
    piped = capsys.readouterr().out
    run("predict m.rw test.svm")
    assert capsys.readouterr().out == piped


def test_queries_are_left_aside_if_asked_and_map_needs_them(folder: Path) -> None:
    run(f"fit train.csv -o map.rw --metric map {FAST}")
    run(f"fit train.csv -o flat.rw --no-qid {FAST}")
    np.testing.assert_allclose(rw.load("map.rw").coef_, ranker().coef_, RTOL, ATOL)
    assert (rw.load("flat.rw").coef_ != rw.load("map.rw").coef_).all()
    run("predict map.rw test.csv --rank --no-qid -o ranks.txt")
    assert sorted(map(int, Path("ranks.txt").read_text().split())) == list(range(1, 241))


@pytest.mark.parametrize("metric", ["ap", "ndcg@5"])
def test_grades_count_for_ndcg_and_not_for_other_metrics(folder: Path, metric: str) -> None:
    found = document(f"fit train.csv -o m.rw --metric {metric} {FAST}")["candidates"]
    np.testing.assert_allclose([row["score"] for row in found], ranker(metric).report_.scores, RTOL)


def test_relevance_names_and_classes_are_kept(folder: Path) -> None:
    run(f"fit train.csv -o m.rw --relevant-from 2 {FAST}")
    stored = rw.load("m.rw")
    np.testing.assert_allclose(stored.coef_, ranker(relevant_from=2.0).coef_, RTOL, ATOL)
    assert stored.feature_names_in_.tolist() == [f"f{k + 1}" for k in range(6)]
    assert read_model("m.rw").header["note"]["interrupted"] is False
    test = document("evaluate m.rw test.csv --metrics ap --resamples 0")["data"]
    assert (test["relevant_from"], test["positives"]) == (2.0, int((draw(2)[1] >= 2).sum()))


def test_features_are_those_of_training_by_index_and_by_name(model: Path) -> None:
    Path("from0.svm").write_text("1 0:1 1:2\n0 0:-1 1:1\n1 0:2\n0 1:3\n")
    Path("sparse.svm").write_text("0 1:1\n")
    run("fit from0.svm -o m.rw --quiet")
    run("predict m.rw sparse.svm -o scores.txt")
    stored = rw.load("m.rw")
    assert np.loadtxt("scores.txt", ndmin=1)[0] == pytest.approx(stored.coef_[0, 1] + stored.intercept_[0])
    X, y, qid = draw(2)
    write_samples("turned.csv", X[:, ::-1], y, qid, [f"f{k}" for k in range(6, 0, -1)])
    for name in ("test", "turned"):
        run(f"predict model.rw {name}.csv -o {name}.txt")
    assert Path("test.txt").read_text() == Path("turned.txt").read_text()


def test_a_file_with_its_ids_is_taken(model: Path, capsys: Capture) -> None:
    lines = Path("test.csv").read_text().splitlines()
    Path("ids.csv").write_text("\n".join(f"{'id' if k == 0 else f'C{k}'},{line}" for k, line in enumerate(lines)))
    run(f"fit ids.csv -o m.rw --ignore id {FAST}")
    run("evaluate model.rw ids.csv --ignore id --resamples 0")
    run("predict model.rw ids.csv --ignore id -o scores.txt")
    assert len(Path("scores.txt").read_text().splitlines()) == len(lines) - 1
    capsys.readouterr()
    run("predict model.rw ids.csv", status=2)
    said = "the model has no feature 'id'; remove it, or name it with --label, --query or --ignore"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("labels", [(-1.0, 1.0), (3.0, 7.0), (0.25, 0.75)])
def test_two_labels_are_the_classes_if_they_are_whole(folder: Path, labels: tuple[float, float]) -> None:
    X, y, _ = draw(1)
    write_samples("two.svm", X, np.where(y >= 1, labels[1], labels[0]))
    run(f"fit two.svm -o m.rw {FAST} --relevant-from {labels[1]}")
    expected = [0, 1] if labels[0] == 0.25 else [int(label) for label in labels]
    assert rw.load("m.rw").classes_.tolist() == expected


@pytest.mark.parametrize("n", [2, 240])
def test_one_relevant_sample_is_enough(folder: Path, capsys: Capture, n: int) -> None:
    write_samples("one.csv", draw(1)[0][:n], np.arange(n) == 1)
    found = document("fit one.csv -o m.rw")
    printed = capsys.readouterr()
    assert "metric ap, not scored: too few samples for cross-validation" in printed.out
    assert found["best_score"] is None
    said = "one.csv: too few samples for cross-validation, so it is not known how well the model ranks; add"
    assert found["notes"][0].startswith(said)
    assert f"rankwise: {said}" in printed.err
    run("predict m.rw one.csv -o scores.txt")
    assert np.isfinite(np.loadtxt("scores.txt")).all()


def test_the_summary_shows_what_was_tried(folder: Path, capsys: Capture) -> None:
    found = document("fit train.csv -o m.rw --cv 2")
    printed, stored = capsys.readouterr(), rw.load("m.rw")
    lines = printed.out.splitlines()
    n = int((read_data("train.csv").y >= 1).sum())  # type: ignore[operator]
    assert lines[0].startswith(f"train.csv: 240 samples with 6 features, {n} relevant")
    assert "12 queries" in lines[0]
    assert lines[1] == "metric ap, scores by 6-fold cross-validation:"
    assert "\n".join(lines[2:-2]) == str(stored.report_)
    assert lines[-2].endswith("s of it for cross-validation")
    assert lines[-1] == "model: m.rw"
    assert "LinearRanker: " in printed.err
    assert (found["kind"], found["metric"], found["interrupted"]) == ("linear-ranker", "ap", False)
    assert [row["name"] for row in found["candidates"]] == stored.report_.names
    assert sum(row["share"] for row in found["candidates"]) == pytest.approx(1.0)
    assert found["best_score"] == stored.best_score_
    run(f"fit train-flat.svm -o m.rw {FAST}")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("k", [0, 1, 40])
def test_an_interrupt_of_the_search_leaves_a_model_if_anything_was_learnt(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    real, count = candidates.Classifier.fit, [0]

    def fit(self: Any, C: float) -> Any:
        count[0] += 1
        if k in (0, count[0]):  # Ctrl-C at the k-th fit of a classifier, or at every one
            raise KeyboardInterrupt
        return real(self, C)

    monkeypatch.setattr(candidates.Classifier, "fit", fit)
    run(f"fit train-flat.svm -o m.rw --json f.json {FAST}", status=130)
    said = capsys.readouterr().err
    if k == 0:
        assert said == "rankwise: interrupted before anything was learnt; m.rw was not written\n"
        assert not Path("m.rw").exists()
        return
    assert said == "rankwise: interrupted: m.rw contains the best model so far\n"
    assert json.loads(Path("f.json").read_text())["interrupted"] is True
    assert read_model("m.rw").header["note"]["interrupted"] is True
    assert (rw.load("m.rw").report_.folds.size > 0) == (k > 1)
    run("predict m.rw test-flat.svm -o scores.txt")
