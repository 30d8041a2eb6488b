"""The command line of linear rankers: fit, predict, evaluate; what they write, say and refuse."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import random_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise.cli import evaluate, fit
from rankwise.cli.main import main
from rankwise.inference import METHODS
from rankwise.io import read_data, read_model, read_scores, write_data
from rankwise.linear.cross_validation import split
from rankwise.linear.rank_svm import RankSVM as LinearSVM
from rankwise.linear.solvers import SOLVERS
from rankwise.losses import _NAMES
from rankwise.metrics import bootstrap_interval

RTOL, ATOL = 1e-9, 1e-9
PNG = b"\x89PNG\r\n\x1a\n"
COMMAND = [sys.executable, "-m", "rankwise.cli.main"]
Samples = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
Capture = pytest.CaptureFixture[str]


def draw(seed: int, n: int = 240, d: int = 6, n_queries: int = 12) -> Samples:
    """Grades 0, 1, 2 that the features tell of, in queries of about equal size; offsets and scales differ."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    latent = Z @ np.linspace(-1.0, 2.0, d) + rng.normal(size=n)
    y = (latent > 1.0).astype(float) + (latent > 3.0)
    return Z * np.linspace(0.5, 4.0, d) + 2.0, y, np.sort(rng.integers(1, n_queries + 1, n))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of graded samples in queries, and of 0 and 1 without; commands are run in the folder."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 1), ("test", 2)):
        X, y, qid = draw(seed)
        write_data(f"{name}.svm", X, y, qid)
        write_data(f"{name}.csv", X, y, qid)
        write_data(f"{name}.npz", X, y, qid)
        write_data(f"{name}.txt.gz", X, y, qid)
        write_data(f"{name}-flat.svm", X, y >= 1)
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    """A model of train.csv, with names of features."""
    run("fit", "train.csv", "-o", "model.rw", "--C", 10, "--quiet")
    return folder / "model.rw"


def run(*arguments: Any, status: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == status


def refused(capsys: Capture, *arguments: Any) -> str:
    """The one line that a command refuses its arguments or input with."""
    capsys.readouterr()
    try:
        status: Any = main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        status = stopped.code
    printed = capsys.readouterr()
    (line,) = printed.err.strip().splitlines()
    assert status == 2, line
    assert printed.out == ""
    assert line.startswith("rankwise")
    return line


# Round trips


@pytest.mark.parametrize("name", ["svm", "csv", "npz", "txt.gz"])
def test_scores_are_those_of_the_python_interface(folder: Path, name: str) -> None:
    run("fit", f"train.{name}", "-o", "m.rw", "--C", 10, "--loss", "ndcg", "--quiet")
    run("predict", "m.rw", f"test.{name}", "-o", "scores.txt")
    X, y, qid = draw(1)
    test, _, test_qid = draw(2)
    expected = rw.RankSVM("ndcg", 10.0).fit(X, y >= 1, qid)
    np.testing.assert_allclose(read_scores("scores.txt"), expected.decision_function(test), RTOL, ATOL)
    run("predict", "m.rw", f"test.{name}", "-o", "ranks.txt", "--rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(test, test_qid)]
    run("predict", "m.rw", f"test.{name}", "-o", "labels.txt", "--labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(test)]


def test_data_come_through_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def give(path: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("train.txt.gz")
    run("fit", "-", "-o", "m.rw", "--C", 10)
    give("test.svm")
    capsys.readouterr()
    run("predict", "m.rw", "-")
    piped = capsys.readouterr().out
    run("predict", "m.rw", "test.csv")
    assert capsys.readouterr().out == piped
    assert read_model("m.rw").header["note"]["source"] == "standard input"


def test_C_is_chosen_as_by_cross_validation(folder: Path, capsys: Capture) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--cv", 3, "--scoring", "ndcg@5", "--seed", 7, "--json", "fit.json")
    X, y, qid = draw(1)
    expected = rw.RankSVMCV("ap", cv=3, scoring="ndcg@5", random_state=7).fit(X, y >= 1, qid, gains=y)
    stored = rw.load("m.rw")
    np.testing.assert_allclose(stored.C_, expected.C_, RTOL)
    np.testing.assert_allclose(stored.coef_, expected.coef_, RTOL, ATOL)
    document = json.loads(Path("fit.json").read_text())
    np.testing.assert_allclose(document["choice"]["scores"], expected.scores_[0], RTOL)
    printed = capsys.readouterr().out
    (marked,) = (line for line in printed.splitlines() if line.startswith("*"))
    best = np.argmax(expected.scores_[0].mean(axis=1))
    assert marked.split() == [
        "*",
        f"{expected.C_:.4g}",
        f"{expected.scores_[0, best].mean():.4f}",
        f"{expected.scores_[0, best].std():.4f}",
    ]


def test_options_reach_the_estimator(folder: Path) -> None:
    run(
        *("fit", "train.svm", "-o", "m.rw", "--loss", "auc", "--C", "5", "--solver", "frank-wolfe", "--tol", "0.02"),
        *("--method", "quicksort", "--max-iter", "400", "--threads", "2", "--seed", "3", "--quiet"),
    )
    params = rw.load("m.rw").get_params()
    expected = {"loss": "auc", "C": 5.0, "solver": "frank-wolfe", "tol": 0.02, "method": "quicksort"}
    expected |= {"max_iter": 400, "n_threads": 2, "random_state": 3, "verbose": 0}
    assert {name: params[name] for name in expected} == expected
    run(
        "fit", "train.svm", "-o", "m.rw", "--cv", 3, "--refit", "average", "--prior", "logistic", "--jobs", 2, "--quiet"
    )
    params = rw.load("m.rw").get_params()
    expected = {"cv": 3, "refit": "average", "prior": "logistic", "n_jobs": 2}
    assert {name: params[name] for name in expected} == expected


def test_a_prior_is_refined_with_a_given_C_too(folder: Path) -> None:
    run("fit", "train.svm", "-o", "plain.rw", "--C", 0.01, "--quiet")
    run("fit", "train.svm", "-o", "refined.rw", "--C", 0.01, "--prior", "logistic", "--quiet")
    X, y, qid = draw(1)
    plain, refined = (
        rw.metrics.average_precision(rw.load(name).decision_function(X), y >= 1, qid=qid)
        for name in ("plain.rw", "refined.rw")
    )
    assert refined > plain


def test_choices_are_all_there_are() -> None:
    assert set(_NAMES) == set(fit.LOSSES)
    assert set(fit.SOLVERS) == {"auto", *SOLVERS}
    assert set(METHODS) == set(fit.METHODS)


def test_queries_are_left_aside_if_asked(folder: Path) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 10, "--no-qid", "--quiet")
    run("fit", "train-flat.svm", "-o", "flat.rw", "--C", 10, "--quiet")
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.load("flat.rw").coef_, RTOL, ATOL)
    run("predict", "m.rw", "test.svm", "--rank", "--no-qid", "-o", "ranks.txt")
    assert sorted(map(int, Path("ranks.txt").read_text().split())) == list(range(1, 241))


@pytest.mark.parametrize("labels", [(-1.0, 1.0), (0.0, 1.0), (3.0, 7.0), (0.25, 0.75)])
def test_two_labels_are_the_classes_if_they_are_whole(folder: Path, labels: tuple[float, float]) -> None:
    X, y, _ = draw(1)
    write_data("two.svm", X, np.where(y >= 1, labels[1], labels[0]))
    run("fit", "two.svm", "-o", "m.rw", "--C", 10, "--relevant-from", labels[1], "--quiet")
    expected = [0, 1] if labels[0] == 0.25 else [int(label) for label in labels]
    assert rw.load("m.rw").classes_.tolist() == expected


def test_relevance_begins_where_it_is_told(folder: Path) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 10, "--relevant-from", 2, "--quiet", "--json", "fit.json")
    X, y, qid = draw(1)
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.RankSVM("ap", 10.0).fit(X, y >= 2, qid).coef_, RTOL, ATOL)
    run("evaluate", "m.rw", "test.svm", "--json", "test.json", "--resamples", 0)
    test = json.loads(Path("test.json").read_text())["data"]
    assert test["relevant_from"] == 2.0
    assert test["positives"] == int((draw(2)[1] >= 2).sum())


def test_indices_are_read_as_in_training(folder: Path) -> None:
    Path("from0.svm").write_text("1 0:1 1:2\n0 0:-1 1:1\n1 0:2\n0 1:3\n")
    Path("sparse.svm").write_text("0 1:1\n")
    run("fit", "from0.svm", "-o", "m.rw", "--C", 10, "--quiet")
    run("predict", "m.rw", "sparse.svm", "-o", "scores.txt")
    model = rw.load("m.rw")
    assert read_scores("scores.txt")[0] == pytest.approx(model.coef_[0, 1] + model.intercept_[0])


def test_columns_are_found_by_name(model: Path, folder: Path) -> None:
    X, y, qid = draw(2)
    names = [f"f{k + 1}" for k in range(6)]
    write_data("turned.csv", X[:, ::-1], y, qid, names[::-1])
    run("predict", model, "test.csv", "-o", "a.txt")
    run("predict", model, "turned.csv", "-o", "b.txt")
    assert Path("a.txt").read_text() == Path("b.txt").read_text()


# Standardised features


def test_standardizing_is_folded_into_the_model(folder: Path) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    X, y, _ = draw(1)
    test = draw(2)[0]
    run("fit", "train-flat.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    expected = make_pipeline(StandardScaler(), LinearSVM("ap", 10.0)).fit(X, y >= 1)
    found = rw.load("m.rw").decision_function(test)
    np.testing.assert_allclose(found, expected.decision_function(test), RTOL, ATOL)
    assert np.ptp(
        rw.load("m.rw").decision_function(test) - rw.RankSVM("ap", 10.0).fit(X, y >= 1).decision_function(test)
    )


def test_sparse_features_are_scaled_and_not_centred(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = random_array((150, 40), density=0.1, rng=rng, format="csr") * 7.0
    y = (X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).astype(float)
    write_data("sparse.svm", X, y)
    run("fit", "sparse.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    expected = make_pipeline(StandardScaler(with_mean=False), LinearSVM("ap", 10.0)).fit(X, y)
    np.testing.assert_allclose(rw.load("m.rw").decision_function(X), expected.decision_function(X), RTOL, ATOL)


def test_features_too_large_to_standardize_are_refused(folder: Path, capsys: Capture) -> None:
    Path("huge.svm").write_text("1 1:1 2:1e308\n0 1:2 2:-1e308\n1 1:3 2:1e308\n")
    assert "feature 2 is too large" in refused(
        capsys, "fit", "huge.svm", "-o", "m.rw", "--C", 1, "--standardize", "--quiet"
    )
    assert not Path("m.rw").exists()


# What is said and written


def test_the_summary_tells_what_was_learnt(folder: Path, capsys: Capture) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 10)
    printed = capsys.readouterr()
    stored = rw.load("m.rw")
    y, qid = draw(1)[1:]
    assert f"240 samples of 6 features, {int((y >= 1).sum())} relevant" in printed.out
    assert f"{np.unique(qid).size} queries" in printed.out
    assert "loss ap, C = 10\n" in printed.out
    assert f"objective {stored.objective_:.6g}, at most {stored.gap_:.1e} of it" in printed.out
    assert f"{stored.n_iter_} iterations, {stored.timing_['calls']:,} inference calls" in printed.out
    assert re.search(r"\d+\.\d\d s \(\d+% in inference\)", printed.out)
    assert printed.out.endswith("model: m.rw\n")
    assert re.search(r"gap \S+, \d+ planes", printed.err)


def test_quiet_is_quiet(folder: Path, capsys: Capture) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 10, "--quiet")
    assert capsys.readouterr() == ("", "")


def test_stopping_short_is_noted_in_one_line(folder: Path, capsys: Capture) -> None:
    run("fit", "train.svm", "-o", "m.rw", "--C", 1000, "--max-iter", 2, "--quiet", "--json", "fit.json")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rankwise: RankSVM stopped at a relative duality gap of")
    document = json.loads(Path("fit.json").read_text())
    assert not document["converged"]
    assert [f"rankwise: {note}" for note in document["notes"]] == [line]


def test_documents_on_standard_output_are_alone_there(model: Path, folder: Path, capsys: Capture) -> None:
    keys = {}
    for arguments in (
        ("fit", "train.svm", "-o", "m.rw", "--C", 10, "--json", "-"),
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
    assert keys["evaluate"] == {"model", "data", "bootstrap", "metrics", "figure"}
    assert keys["fit"] == {
        *("model", "data", "loss", "C", "choice", "prior", "standardize", "solver", "objective", "dual", "gap", "tol"),
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
    scores = _scores(model, data.X)
    assert [row["name"] for row in document["metrics"]] == evaluate.SHOWN
    for row in document["metrics"]:
        metric = rw.metrics.as_metric(row["name"])
        truth = data.y if metric.graded else data.y >= 1
        assert row["value"] == pytest.approx(metric(scores, truth, qid=data.qid), rel=RTOL)
        interval = bootstrap_interval(metric, scores, truth, data.qid, level=0.8, n_resamples=50, seed=5)
        assert (row["low"], row["high"]) == pytest.approx(interval, rel=RTOL)
        assert f"{row['name']:<14}{row['value']:8.4f}   {row['low']:.4f} to {row['high']:.4f}" in printed
    assert document["bootstrap"]["over"] == ("samples" if data.qid is None else "queries")
    assert f"80% interval, over {document['bootstrap']['over']}" in printed


def _scores(model: Path, X: Any) -> NDArray[np.float64]:
    stored = rw.load(model)
    return np.asarray(X @ stored.coef_[0] + stored.intercept_[0])


def test_queries_without_relevant_samples_are_left_out_and_counted(model: Path, folder: Path, capsys: Capture) -> None:
    X, y, qid = draw(2)
    y[qid <= 3] = 0.0
    y[qid == 4] = 1.0
    write_data("gaps.csv", X, y, qid)
    run("evaluate", model, "gaps.csv", "--metrics", "ap", "auc", "--resamples", 0, "--json", "test.json")
    printed = capsys.readouterr().out
    assert "12 queries (3 without a relevant sample, left out)" in printed
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
    n = 40 * n_queries if n_queries > 1 else 240
    kind = rng.integers(6, size=n)
    y = np.clip(np.round(0.6 * kind - 1.5 + rng.normal(size=n)), 0.0, 3.0)
    qid = rng.permutation(np.repeat(np.arange(n_queries), n // n_queries))
    y[qid == 1] = 0.0  # a query that no metric can judge
    return np.eye(6)[kind], y, qid


@pytest.mark.parametrize(("suffix", "n_queries", "relevant_from"), [("csv", 9, 1), ("svm", 9, 2), ("csv", 1, 2)])
def test_fit_and_evaluate_mean_the_same_by_the_same_name(
    folder: Path, suffix: str, n_queries: int, relevant_from: int
) -> None:
    X, y, qid = tied(n_queries)
    given = None if n_queries == 1 else qid
    write_data(f"all.{suffix}", X, y, given)
    folds = split(y >= relevant_from, given, 3, seed=4)
    for i, fold in enumerate(folds):
        for part, rows in (("train", fold.train), ("test", fold.test)):
            write_data(f"{part}{i}.{suffix}", X[rows], y[rows], None if given is None else qid[rows])
    common = ("--relevant-from", relevant_from, "--tol", 1e-6, "--quiet")
    models: dict[tuple[int, float], dict[str, float]] = {}
    for name in NAMES:
        run(
            "fit", f"all.{suffix}", "-o", "m.rw", "--cv", 3, "--seed", 4, "--scoring", name, "--json", "f.json", *common
        )
        choice = json.loads(Path("f.json").read_text())["choice"]
        assert choice["metric"] == name
        for i in range(3):
            C = choice["C"][0]  # where a fold's path begins, as one fit does
            if (i, C) not in models:
                run("fit", f"train{i}.{suffix}", "-o", f"{i}.rw", "--C", C, *common)
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
    scores = _scores(Path("2.rw"), data.X)
    assert np.unique(scores).size <= 6
    for name, value in models[2, choice["C"][0]].items():
        truth = data.y if name.startswith("ndcg") else data.y >= relevant_from
        assert value == pytest.approx(rw.metrics.as_metric(name)(scores, truth, qid=data.qid), rel=RTOL)


def test_grades_count_for_ndcg_in_fit_and_not_for_other_metrics(folder: Path) -> None:
    X, y, qid = tied(9)
    scores = []
    for grades in (y, np.minimum(y, 1.0)):
        write_data("graded.csv", X, grades, qid)
        for name in ("ndcg@3", "ap"):
            run("fit", "graded.csv", "-o", "m.rw", "--cv", 3, "--scoring", name, "--json", "f.json", "--quiet")
            scores.append(json.loads(Path("f.json").read_text())["choice"]["scores"])
    assert scores[1] == scores[3]
    assert scores[0] != scores[2]


def test_the_loss_ndcg_is_judged_by_grades_unless_told(folder: Path) -> None:
    X, y, qid = draw(1)
    run("fit", "train.csv", "-o", "m.rw", "--loss", "ndcg", "--cv", 3, "--json", "fit.json", "--quiet")
    choice = json.loads(Path("fit.json").read_text())["choice"]
    expected = rw.RankSVMCV("ndcg", cv=3).fit(X, y >= 1, qid, gains=y)
    assert choice["metric"] == "ndcg"
    np.testing.assert_allclose(choice["scores"], expected.scores_[0], RTOL)


def test_a_plot_is_drawn(model: Path, folder: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    run("evaluate", model, "test.csv", "--plot", "pr.png", "--metrics", "ap", "--resamples", 0)
    assert Path("pr.png").read_bytes().startswith(PNG)
    assert "pr.png (precision and recall of all queries pooled)" in capsys.readouterr().out


# Refusals


def _damaged(name: str) -> Callable[[], None]:
    def make() -> None:
        whole = Path("train.txt.gz").read_bytes()
        content = {
            "short.txt.gz": whole[: len(whole) // 2],
            "random.svm": random.Random(0).randbytes(100_000),
            "random.csv": random.Random(0).randbytes(100_000),
            "random.npz": random.Random(0).randbytes(100_000),
            "random.parquet": random.Random(0).randbytes(100_000),
            "random": random.Random(0).randbytes(100_000),
            "empty.svm": b"",
            "words.txt": b"once upon a time\n",
            "one.svm": b"1 1:1\n1 1:2\n",
            "ones.svm": b"1 1:1\n2 1:2\n",
            "below.svm": b"-1 1:1\n0 1:2\n",
            "apart.svm": b"1 qid:1 1:1\n0 qid:2 1:2\n",
            "nan.csv": b"label,a\n1,nan\n0,1\n",
            "unnamed.csv": b"a,b\n1,2\n0,1\n",
        }
        Path(name).write_bytes(content[name])

    return make


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("short.txt.gz", "end too early"),
        ("random.svm", "not text"),
        ("random.csv", "not text"),
        ("random.npz", "write it again"),
        ("random", "not text"),
        ("empty.svm", "is empty"),
        ("words.txt", "line 1"),
        ("one.svm", "every label is 1; a ranking needs samples of two classes"),
        ("ones.svm", "labels are 1, 2: pass --relevant-from 2"),
        ("below.svm", "labels are -1, 0: pass --relevant-from 0"),
        ("apart.svm", "try --no-qid"),
        ("nan.csv", "line 2, column 'a'"),
        ("unnamed.csv", "name the labels' with --label"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(folder: Path, capsys: Capture, name: str, said: str) -> None:
    _damaged(name)()
    assert said in refused(capsys, "fit", name, "-o", "m.rw", "--quiet")
    assert not Path("m.rw").exists()


def test_a_damaged_parquet_file_is_refused(folder: Path, capsys: Capture) -> None:
    pytest.importorskip("pyarrow")
    _damaged("random.parquet")()
    assert "not a whole Parquet file" in refused(capsys, "fit", "random.parquet", "-o", "m.rw", "--quiet")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "no.svm", "-o", "m.rw"], "no.svm: no such file"),
        (["fit", ".", "-o", "m.rw"], "is a folder"),
        (["fit", "train.svm"], "required: -o"),
        (["fit", "train.svm", "-o", "m.rw", "--C", "abc"], "'abc' is not a positive number"),
        (["fit", "train.svm", "-o", "m.rw", "--C", "-1"], "'-1' is not a positive number"),
        (["fit", "train.svm", "-o", "m.rw", "--C", "nan"], "'nan' is not a positive number"),
        (["fit", "train.svm", "-o", "m.rw", "--tol", "0"], "'0' is not a positive number"),
        (["fit", "train.svm", "-o", "m.rw", "--max-iter", "0"], "'0' is not a whole number of at least 1"),
        (["fit", "train.svm", "-o", "m.rw", "--jobs", "0"], "or -1 for all processors"),
        (["fit", "train.svm", "-o", "m.rw", "--seed", "9999999999"], "is above"),
        (["fit", "train.svm", "-o", "m.rw", "--relevant-from", "inf"], "'inf' is not a finite number"),
        (["fit", "train.svm", "-o", "m.rw", "--loss", "map"], "'map'"),
        (["fit", "train.svm", "-o", "m.rw", "--scoring", "map"], "unknown metric 'map'"),
        (["fit", "train.svm", "-o", "m.rw", "--C", "1", "--cv", "3"], "--cv is for choosing C, and --C is 1"),
        (
            ["fit", "train.svm", "-o", "m.rw", "--cv", "100"],
            "12 queries with both classes for 100 folds; pass --cv 12, or lower",
        ),
        (["fit", "train.svm", "-o", "m.rw", "--format", "npz"], "train.svm"),
        (["fit", "train.npz", "-o", "m.rw", "--format", "svmlight"], "pass --format 'npz'"),
        (["fit", "train.svm", "-o", "m.rw", "--label", "f1"], "--label and --query name columns"),
        (["fit", "train.csv", "-o", "m.rw", "--label", "grade"], "asked for by --label;"),
        (["fit", "train.svm", "-o", "no/m.rw"], "no folder no"),
        (["fit", "train.svm", "-o", "."], "is a folder"),
        (["fit", "train.svm", "-o", "/proc/m.rw"], "cannot write there"),
        (["fit", "train.svm", "-o", "-"], "name a file"),
        (["fit", "train.svm", "-o", "train.svm"], "would overwrite TRAIN"),
        (["fit", "train.svm", "-o", "m.rw", "--json", "m.rw"], "--json would overwrite --output"),
        (["fit", "model.rw", "-o", "m.rw"], "model.rw is a model, not data"),
        (["predict", "model.rw", "model.rw"], "model.rw is a model, not data"),
        (["predict", "no.rw", "test.csv"], "no.rw: no such file"),
        (["predict", "test.csv", "model.rw"], "test.csv is not a model of rankwise"),
        (["predict", "test.npz", "test.csv"], "test.npz is not a model of rankwise"),
        (["predict", "-", "-"], "MODEL and DATA cannot both be '-'"),
        (["predict", "-", "test.csv"], "not read from standard input"),
        (["predict", "model.rw", "test.csv", "-o", "-", "--json", "-"], "--output and --json cannot both be '-'"),
        (["predict", "model.rw", "test.csv", "--rank", "--labels"], "not allowed with"),
        (["predict", "model.rw", "wide.svm"], "feature 7, but the model's are 1 to 6"),
        (["predict", "model.rw", "narrow.npz"], "has 5 features and the model 6"),
        (["predict", "model.rw", "renamed.csv"], "no column 'f6'"),
        (["evaluate", "model.rw", "one.csv"], "every label is 0"),
        (["evaluate", "model.rw", "unlabelled.npz"], "no array 'y'"),
        (["evaluate", "model.rw", "test.csv", "--metrics", "ap", "map@3"], "unknown metric 'map@3'"),
        (["evaluate", "model.rw", "test.csv", "--metrics", "precision"], "precision needs the last place"),
        (["evaluate", "model.rw", "test.csv", "--level", "95"], "'95' does not lie between 0 and 1"),
        (["evaluate", "model.rw", "test.csv", "--plot", "pr.jpeg"], "must end in .png"),
        (["evaluate", "model.rw", "test.csv", "--json", "model.rw"], "--json would overwrite MODEL"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_what_is_wrong_is_said_in_one_line(model: Path, capsys: Capture, arguments: list[str], said: str) -> None:
    X, y, qid = draw(2)
    write_data("wide.svm", np.hstack([X, X[:, :1]]), y, qid)
    write_data("narrow.npz", X[:, :5], y, qid)
    write_data("renamed.csv", X, y, qid, ["f1", "f2", "f3", "f4", "f5", "g6"])
    write_data("one.csv", X, 0.0 * y, qid)
    write_data("unlabelled.npz", X, None, qid)
    before = {path.name: path.read_bytes() for path in model.parent.iterdir()}
    assert said in refused(capsys, *arguments)
    assert {path.name: path.read_bytes() for path in model.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("pyarrow", "parquet", ["fit", "data.parquet", "-o", "m.rw"]),
        ("matplotlib", "plots", ["evaluate", "model.rw", "test.csv", "--plot", "pr.png"]),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, package: str, extra: str, arguments: list[str]
) -> None:
    Path("data.parquet").write_bytes(b"PAR1")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert f"this needs {package}: pip install '.[{extra}]' in a checkout of rankwise" in refused(capsys, *arguments)


def test_running_out_of_memory_is_one_line(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(rw.RankSVM, "fit", exhausted)
    said = refused(capsys, "fit", "train.svm", "-o", "m.rw", "--C", 1, "--quiet")
    assert "out of memory (Unable to allocate 1 TiB)" in said


# Interrupts


def _interrupt_at(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the k-th evaluation."""
    from rankwise.linear import objective

    count, real = [0], objective.solve

    def hinge(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        if count[0] == k:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(objective, "solve", hinge)


@pytest.mark.parametrize("options", [[], ["--standardize"]])
def test_an_interrupt_keeps_the_best_model_so_far(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    _interrupt_at(5, monkeypatch)
    arguments = ("fit", "train.svm", "-o", "m.rw", "--C", 10, "--quiet", "--json", "fit.json", *options)
    run(*arguments, status=130)
    stored = rw.load("m.rw")
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"rankwise: interrupted: m.rw holds the best model so far, of relative gap {stored.gap_:.1e}"
    assert not stored.converged_
    assert json.loads(Path("fit.json").read_text())["interrupted"] is True
    assert read_model("m.rw").header["note"]["interrupted"] is True
    run("predict", "m.rw", "test.svm", "-o", "scores.txt")


@pytest.mark.parametrize("C", ["10", "auto"])
def test_an_interrupt_before_anything_is_learnt_writes_nothing(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, C: str
) -> None:
    _interrupt_at(1, monkeypatch)
    run("fit", "train.svm", "-o", "m.rw", "--C", C, "--quiet", status=130)
    assert capsys.readouterr().err == "rankwise: interrupted before anything was learnt; m.rw is not written\n"
    assert not Path("m.rw").exists()


def test_an_interrupt_while_C_is_chosen_ends_the_choice(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt_at(40, monkeypatch)
    run("fit", "train.svm", "-o", "m.rw", "--cv", 2, status=130)
    stored, printed = rw.load("m.rw"), capsys.readouterr()
    assert np.isnan(stored.scores_).any()
    assert stored.converged_
    assert printed.out.count("\n*") == 1
    assert "interrupted: m.rw holds the best model so far" in printed.err


# In a process of its own


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process in which Ctrl-C works, whatever this one was started by; it does not outlive the test."""
    started = []

    def begin(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(
            [str(part) for part in command],
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **options,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


@posix
def test_ctrl_c_in_a_long_fit_leaves_a_model(folder: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    rng = np.random.default_rng(0)
    write_data("hard.npz", rng.normal(size=(8000, 300)), (rng.random(8000) < 0.3).astype(float))
    options = ["--C", "1e6", "--tol", "1e-12", "--max-iter", "1000000000"]
    process = start(*COMMAND, "fit", "hard.npz", "-o", "m.rw", *options)
    assert process.stderr is not None
    first = process.stderr.readline().decode()
    assert "planes" in first
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    stored = rw.load("m.rw")
    assert stored.gap_ > 1e-12
    assert f"best model so far, of relative gap {stored.gap_:.1e}" in err.decode()
    assert b"Traceback" not in err
    assert out.endswith(b"model: m.rw\n")


KILLED = """
import os, signal, sys
import numpy as np, rankwise
from rankwise.cli.main import main

def fit(name):
    main(["fit", name + ".npz", "-o", "m.rw", "--C", "1", "--max-iter", "3", "--quiet"])

# A moment is a call or a return in the fit, or in its writing of the file alone: a busy machine changes nothing.
def at_each_moment(act):
    counts = {"fit": 0, "file": 0}
    def note(frame, event, argument):
        counts["fit"] += 1
        if counts["file"] or frame.f_code.co_name == "open_atomic":
            counts["file"] += 1
        act(counts)
    sys.setprofile(note)
    fit("b")
    sys.setprofile(None)
    return counts

models = {}
for name in "ab":
    fit(name)
    models[name] = rankwise.load("m.rw").coef_
total, found = at_each_moment(lambda counts: None), []
for part in "fit", "file":
    for moment in np.linspace(1, total[part], 15).astype(int):
        fit("a")
        child = os.fork()
        if child == 0:
            at_each_moment(lambda counts: counts[part] < moment or os.kill(os.getpid(), signal.SIGKILL))
            os._exit(0)
        os.waitpid(child, 0)
        coef = rankwise.load("m.rw").coef_
        found += [name for name, whole in models.items() if np.array_equal(coef, whole)]
print("".join(found))
"""


@posix
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_model(
    folder: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    X = random_array((40, 50_000), density=0.01, rng=np.random.default_rng(0), format="csr")
    for k, name in enumerate("ab"):
        write_data(f"{name}.npz", X, (np.arange(40) % 3 == k).astype(float))
    process = start(sys.executable, "-c", KILLED, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    found = out.decode().strip()
    assert len(found) == 30, f"a file that is neither: {err.decode()}"
    assert "ab" in found[:15]
    assert "ab" in found[15:]


def test_pipes_and_broken_pipes(model: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    with gzip.open("test.txt.gz") as packed:
        text = packed.read()
    process = start(*COMMAND, "predict", "model.rw", "-", stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=60)
    assert (process.returncode, err) == (0, b"")
    np.testing.assert_allclose(np.array(out.split(), float), _scores(model, draw(2)[0]), RTOL, ATOL)

    process = start(*COMMAND, "predict", "model.rw", "test.csv")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_much_random_is_refused_at_once(folder: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    block = random.Random(0).randbytes(1 << 20)
    with Path("random.bin").open("wb") as file:
        for _ in range(64):
            file.write(block)
    begun = time.perf_counter()
    process = start(*COMMAND, "fit", "random.bin", "-o", "m.rw")
    out, err = process.communicate(timeout=60)
    assert time.perf_counter() - begun < 30
    assert (process.returncode, out, err.count(b"\n")) == (2, b"", 1)
    assert b"random.bin is not text" in err


def test_help_has_examples(capsys: Capture) -> None:
    for command in ("fit", "predict", "evaluate"):
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        assert f"examples:\n  rankwise {command}" in capsys.readouterr().out
