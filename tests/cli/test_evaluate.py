"""Predicting and evaluating one model: scores and metrics are those of the Python interface; documents, pipes, help."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import ATOL, PNG, RTOL, Capture, document, draw, refused, run, scores_of
from samples import write_samples

import rankwise as rw
from rankwise.cli import evaluate
from rankwise.cli.main import main
from rankwise.io import read_data
from rankwise.metrics import bootstrap_interval

DOCUMENTS = {
    "fit train.svm -o m.rw": "model kind data metric candidates best_score seconds interrupted notes",
    "predict model.rw test.csv --rank": "model data scores ranks",
    "evaluate model.rw test.csv --resamples 20": "model data empty gain bootstrap metrics figure",
}


@pytest.mark.parametrize("line", DOCUMENTS, ids=lambda line: line.split()[0])
def test_documents_on_standard_output_are_alone_there(model: Path, line: str, capsys: Capture) -> None:
    run(f"{line} --json -")
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert set(found) == {"command", "rankwise", *DOCUMENTS[line].split()}
    assert (found["command"], found["rankwise"]) == (line.split()[0], rw.__version__)
    assert ("test.csv: 240 samples" in printed.err) == (found["command"] == "evaluate")


# Metrics


@pytest.mark.parametrize("name", ["test.svm", "test-flat.svm"])
def test_metrics_are_those_of_the_python_interface(model: Path, name: str, capsys: Capture) -> None:
    found = document(f"evaluate model.rw {name} --resamples 50 --level 0.8 --seed 5")
    printed = capsys.readouterr().out
    data = read_data(name)
    scores = scores_of(model, data.X)
    assert [row["name"] for row in found["metrics"]] == evaluate.SHOWN
    for row in found["metrics"]:
        metric = rw.metrics.as_metric(row["name"])
        truth = data.y if metric.graded else data.y >= 1
        assert row["value"] == pytest.approx(metric(scores, truth, qid=data.qid), rel=RTOL)
        interval = bootstrap_interval(metric, scores, truth, data.qid, level=0.8, n_resamples=50, seed=5)
        assert (row["low"], row["high"]) == pytest.approx(interval, rel=RTOL)
        assert f"{row['name']:<14}{row['value']:8.4f}   {row['low']:.4f} to {row['high']:.4f}" in printed
    assert found["bootstrap"]["over"] == ("samples" if data.qid is None else "queries")
    assert f"80% interval over {found['bootstrap']['over']}" in printed


def test_empty_queries_count_as_is_said(model: Path, capsys: Capture) -> None:
    X, y, qid = draw(2)
    y[qid <= 3] = 0.0
    y[qid == 4] = 1.0
    write_samples("gaps.csv", X, y, qid)
    line, values = "evaluate model.rw gaps.csv --metrics ndcg@5 ap auc --resamples 0", {}
    for empty, said in (("skip", "are skipped"), ("zero", "count as 0"), ("one", "count as 1")):
        found = document(f"{line} --empty {empty}")
        printed = capsys.readouterr().out
        assert f"12 queries (3 without relevant samples)\nqueries for which a metric is not defined {said}\n" in printed
        assert all(words in printed for words in ("9 of 12 queries", "8 of 12 queries"))
        assert (found["empty"], found["data"]["queries_without_positives"]) == (empty, 3)
        assert [(row["queries"], row["low"]) for row in found["metrics"]] == [(9, None), (9, None), (8, None)]
        values[empty] = np.array([row["value"] for row in found["metrics"]])
    judged = np.array([9, 9, 8])
    np.testing.assert_allclose(values["zero"], values["skip"] * judged / 12, RTOL)
    np.testing.assert_allclose(values["one"], (values["skip"] * judged + 12 - judged) / 12, RTOL)
    said = refused(capsys, f"{line} --empty error")
    assert "query 1 has 0 positives" in said
    assert "pass --empty 'skip', 'zero' or 'one'" in said


def test_labels_are_grades_with_the_gain_that_is_asked_for(model: Path, capsys: Capture) -> None:
    X, y, qid = draw(2)
    scores = scores_of(model, X)

    def value(name: str, options: str) -> float:
        (row,) = document(f"evaluate model.rw {name} --resamples 0 --metrics {options}")["metrics"]
        return float(row["value"])

    for gain in ("exp2", "linear"):
        expected = rw.metrics.as_metric("ndcg", gain=gain)(scores, y, qid=qid)  # type: ignore[arg-type]
        assert value("test.csv", f"ndcg --gain {gain}") == pytest.approx(expected, rel=RTOL)
    expected = rw.metrics.expected_reciprocal_rank(scores, y, k=3, qid=qid)
    assert value("test.csv", "err@3") == pytest.approx(expected, rel=RTOL)
    # Negative labels are no gains, and huge ones have linear gains only.
    write_samples("signs.csv", X, np.where(y >= 1, 1.0, -1.0), qid)
    write_samples("zeros.csv", X, np.where(y >= 1, 1.0, 0.0), qid)
    assert value("signs.csv", "ndcg") == value("zeros.csv", "ndcg")
    write_samples("huge.csv", X, y * 1000.0, qid)
    linear = [value(name, "ndcg --gain linear") for name in ("huge.csv", "test.csv")]
    assert linear[0] == pytest.approx(linear[1], rel=RTOL)
    said = "2^2000, the gain of grade 2000, is beyond float64; pass gain='linear'"
    assert said in refused(capsys, "evaluate model.rw huge.csv --metrics ndcg")
    # Without a zero, there is one class, which metrics of grades can judge.
    write_samples("high.csv", X, y + 1.0, qid)
    assert value("high.csv", "ndcg@5") == pytest.approx(rw.metrics.ndcg(scores, y + 1.0, k=5, qid=qid), rel=RTOL)
    assert "only one class" in refused(capsys, "evaluate model.rw high.csv --metrics ndcg@5 ap")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_is_drawn(model: Path, suffix: str, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    run(f"evaluate model.rw test.csv --plot pr.{suffix} --metrics ap --resamples 0")
    assert Path(f"pr.{suffix}").read_bytes().startswith(PNG if suffix == "png" else b"<?xml")
    assert f"pr.{suffix} (precision and recall over all queries together)" in capsys.readouterr().out


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
