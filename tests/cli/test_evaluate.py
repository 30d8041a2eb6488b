"""Predicting and evaluating: scores and metrics are those of the Python interface; what is said and written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import ATOL, PNG, RTOL, SVM, Capture, Samples, draw, run, scores_of

import rankwise as rw
from rankwise.cli import evaluate
from rankwise.cli.main import main
from rankwise.io import read_data, write_data
from rankwise.linear.cross_validation import split
from rankwise.linear.labels import Labels
from rankwise.metrics import bootstrap_interval


def test_documents_on_standard_output_are_alone_there(model: Path, folder: Path, capsys: Capture) -> None:
    keys = {}
    for arguments in (
        ("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10, "--json", "-"),
        ("predict", model, "test.csv", "--json", "-", "--rank"),
        ("evaluate", model, "test.csv", "--json", "-", "--resamples", 20),
    ):
        capsys.readouterr()
        run(*arguments)
        printed = capsys.readouterr()
        document = json.loads(printed.out)
        assert document["command"] == arguments[0]
        assert document["rankwise"] == rw.__version__
        assert ("test.csv: 240 samples" in printed.err) == (arguments[0] == "evaluate")
        keys[arguments[0]] = set(document) - {"command", "rankwise"}
    assert keys["predict"] == {"model", "data", "scores", "ranks"}
    assert keys["evaluate"] == {"model", "data", "empty", "gain", "max_grade", "bootstrap", "metrics", "figure"}
    assert keys["fit"] == {
        *(
            "model",
            "kind",
            "data",
            "loss",
            "C",
            "choice",
            "prior",
            "standardize",
            "solver",
            "objective",
            "dual",
            "gap",
            "tol",
        ),
        *("converged", "iterations", "inference_calls", "seconds", "interrupted", "notes"),
    }


def test_a_document_of_scores_may_be_beside_the_lines(model: Path, folder: Path, capsys: Capture) -> None:
    run("predict", model, "test.csv", "--json", "scores.json")
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(Path("scores.json").read_text())["scores"] == [float(line) for line in lines]


# Metrics


@pytest.mark.parametrize("name", ["test.svm", "test-flat.svm"])
def test_metrics_are_those_of_the_python_interface(model: Path, folder: Path, name: str, capsys: Capture) -> None:
    run("evaluate", model, name, "--json", "test.json", "--resamples", 50, "--level", 0.8, "--seed", 5)
    printed = capsys.readouterr().out
    document = json.loads(Path("test.json").read_text())
    data = read_data(name)
    scores = scores_of(model, data.X)
    assert [row["name"] for row in document["metrics"]] == evaluate.SHOWN
    for row in document["metrics"]:
        metric = rw.metrics.as_metric(row["name"])
        truth = data.y if metric.graded else data.y >= 1
        assert row["value"] == pytest.approx(metric(scores, truth, qid=data.qid), rel=RTOL)
        interval = bootstrap_interval(metric, scores, truth, data.qid, level=0.8, n_resamples=50, seed=5)
        assert (row["low"], row["high"]) == pytest.approx(interval, rel=RTOL)
        assert f"{row['name']:<14}{row['value']:8.4f}   {row['low']:.4f} to {row['high']:.4f}" in printed
    assert document["bootstrap"]["over"] == ("samples" if data.qid is None else "queries")
    assert f"80% interval over {document['bootstrap']['over']}" in printed


def test_queries_without_relevant_samples_are_left_out_and_counted(model: Path, folder: Path, capsys: Capture) -> None:
    X, y, qid = draw(2)
    y[qid <= 3] = 0.0
    y[qid == 4] = 1.0
    write_data("gaps.csv", X, y, qid)
    run("evaluate", model, "gaps.csv", "--metrics", "ap", "auc", "--resamples", 0, "--json", "test.json")
    printed = capsys.readouterr().out
    assert "12 queries (3 without relevant samples)\nqueries for which a metric is not defined are skipped\n" in printed
    assert "9 of 12 queries" in printed
    assert "8 of 12 queries" in printed
    assert "interval" not in printed
    document = json.loads(Path("test.json").read_text())
    assert [row["queries"] for row in document["metrics"]] == [9, 8]
    assert [row["low"] for row in document["metrics"]] == [None, None]
    assert document["data"]["queries_without_positives"] == 3


def test_negative_labels_are_no_gains(model: Path, folder: Path) -> None:
    X, y, qid = draw(2)
    values = []
    for negative in (-1.0, 0.0):
        write_data("signs.csv", X, np.where(y >= 1, 1.0, negative), qid)
        run("evaluate", model, "signs.csv", "--metrics", "ndcg", "--resamples", 0, "--json", "test.json")
        values.append(json.loads(Path("test.json").read_text())["metrics"][0]["value"])
    assert values[0] == values[1]


NAMES = ["ap", "ndcg", "ndcg@3", "mrr", "mrr@2", "auc", "precision@4"]


def tied(n_queries: int) -> Samples:
    """Grades 0 to 3 of samples of six kinds, which a linear model can but score alike: ties everywhere, exactly."""
    rng = np.random.default_rng(5)
    n = 20 * n_queries if n_queries > 1 else 120
    kind = rng.integers(6, size=n)
    y = np.clip(np.round(0.6 * kind - 1.5 + rng.normal(size=n)), 0.0, 3.0)
    qid = rng.permutation(np.repeat(np.arange(n_queries), n // n_queries))
    y[qid == 1] = 0.0  # a query that no metric can judge
    return np.eye(6)[kind], y, qid


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "n_queries", "relevant_from"), [("csv", 9, 1), ("svm", 9, 2), ("csv", 1, 2)])
def test_fit_and_evaluate_mean_the_same_by_the_same_name(
    folder: Path, suffix: str, n_queries: int, relevant_from: int
) -> None:
    X, y, qid = tied(n_queries)
    given = None if n_queries == 1 else qid
    write_data(f"all.{suffix}", X, y, given)
    grades = np.where(y >= relevant_from, y, 0.0)
    folds = split(Labels(y >= relevant_from, grades), given, 3, seed=4)
    for i, fold in enumerate(folds):
        for part, rows in (("train", fold.train), ("test", fold.test)):
            write_data(f"{part}{i}.{suffix}", X[rows], y[rows], None if given is None else qid[rows])
    common = ("--relevant-from", relevant_from, "--tol", 1e-2, "--quiet")
    models: dict[tuple[int, float], dict[str, float]] = {}
    for name in NAMES:
        run(
            "fit",
            *SVM,
            f"all.{suffix}",
            "-o",
            "m.rw",
            "--cv",
            3,
            "--seed",
            4,
            "--scoring",
            name,
            "--json",
            "f.json",
            *common,
        )
        choice = json.loads(Path("f.json").read_text())["choice"]
        assert choice["metric"] == name
        for i in range(3):
            C = choice["C"][0]  # where a fold's path begins, as one fit does
            if (i, C) not in models:
                run("fit", *SVM, f"train{i}.{suffix}", "-o", f"{i}.rw", "--C", C, *common)
                run(
                    "evaluate",
                    f"{i}.rw",
                    f"test{i}.{suffix}",
                    "--metrics",
                    *NAMES,
                    "--resamples",
                    0,
                    "--json",
                    "e.json",
                )
                rows = json.loads(Path("e.json").read_text())["metrics"]
                models[i, C] = {row["name"]: row["value"] for row in rows}
            assert choice["scores"][0][i] == pytest.approx(models[i, C][name], rel=RTOL), (name, i)
    assert len(models) == 3
    data = read_data(f"test2.{suffix}")
    scores = scores_of(Path("2.rw"), data.X)
    assert np.unique(scores).size <= 6
    for name, value in models[2, choice["C"][0]].items():
        worth = np.where(data.y >= relevant_from, data.y, 0.0)
        truth = worth if name.startswith("ndcg") else worth > 0
        assert value == pytest.approx(rw.metrics.as_metric(name)(scores, truth, qid=data.qid), rel=RTOL)


def test_grades_count_for_ndcg_in_fit(folder: Path) -> None:
    X, y, qid = tied(9)
    scores = []
    for grades in (y, np.minimum(y, 1.0)):
        write_data("graded.csv", X, grades, qid)
        run("fit", *SVM, "graded.csv", "-o", "m.rw", "--cv", 3, "--scoring", "ndcg@3", "--json", "f.json", "--quiet")
        scores.append(json.loads(Path("f.json").read_text())["choice"]["scores"])
    assert scores[0] != scores[1]


def test_the_loss_ndcg_is_judged_by_grades_unless_told(folder: Path) -> None:
    X, y, qid = draw(1)
    run("fit", *SVM, "train.csv", "-o", "m.rw", "--loss", "ndcg", "--cv", 3, "--json", "fit.json", "--quiet")
    choice = json.loads(Path("fit.json").read_text())["choice"]
    expected = rw.RankSVMCV("ndcg", cv=3).fit(X, y, qid)
    assert choice["metric"] == "ndcg"
    np.testing.assert_allclose(choice["scores"], expected.scores_[0], RTOL)


def test_a_plot_is_drawn(model: Path, folder: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    run("evaluate", model, "test.csv", "--plot", "pr.png", "--metrics", "ap", "--resamples", 0)
    assert Path("pr.png").read_bytes().startswith(PNG)
    assert "pr.png (precision and recall over all queries together)" in capsys.readouterr().out


# The command with a pipe to read and one to write, then with one that nobody reads.
PIPES = """
import os, sys
from rankwise.cli.main import main
status = main(["predict", "model.rw", "-"])
sys.stdout.flush()
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
sys.exit(status or main(["predict", "model.rw", "test.csv"]))
"""


@pytest.mark.slow
def test_pipes_and_broken_pipes(model: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    with gzip.open("test.txt.gz") as packed:
        text = packed.read()
    process = start(sys.executable, "-c", PIPES, stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=60)
    assert (process.returncode, err) == (141, b"")
    np.testing.assert_allclose(np.array(out.split(), float), scores_of(model, draw(2)[0]), RTOL, ATOL)


def test_help_has_examples(capsys: Capture) -> None:
    for command in ("fit", "predict", "evaluate"):
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        assert f"examples:\n  rankwise {command}" in capsys.readouterr().out
