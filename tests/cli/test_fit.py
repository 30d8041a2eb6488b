"""Fitting RankSVM: the model is that of the Python interface, from every kind of file and option."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import ATOL, RTOL, SVM, Capture, draw, refused, run
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise.cli import fit, parsing
from rankwise.inference import METHODS
from rankwise.io import read_model, write_data
from rankwise.linear.rank_svm import RankSVM as LinearSVM
from rankwise.linear.solvers import SOLVERS
from rankwise.metrics.registry import LOSSES

# Round trips


@pytest.mark.parametrize("name", ["svm", "csv", "npz", "txt.gz"])
def test_scores_are_those_of_the_python_interface(folder: Path, name: str) -> None:
    run("fit", *SVM, f"train.{name}", "-o", "m.rw", "--C", 10, "--loss", "ndcg", "--quiet")
    run("predict", "m.rw", f"test.{name}", "-o", "scores.txt")
    X, y, qid = draw(1)
    test, _, test_qid = draw(2)
    expected = rw.RankSVM("ndcg", 10.0).fit(X, y, qid)
    np.testing.assert_allclose(np.loadtxt("scores.txt"), expected.decision_function(test), RTOL, ATOL)
    run("predict", "m.rw", f"test.{name}", "-o", "ranks.txt", "--rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(test, test_qid)]
    run("predict", "m.rw", f"test.{name}", "-o", "labels.txt", "--labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(test)]


def test_data_come_through_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def give(path: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("train.txt.gz")
    run("fit", *SVM, "-", "-o", "m.rw", "--C", 10)
    give("test.svm")
    capsys.readouterr()
    run("predict", "m.rw", "-")
    piped = capsys.readouterr().out
    run("predict", "m.rw", "test.csv")
    assert capsys.readouterr().out == piped
    assert read_model("m.rw").header["note"]["source"] == "standard input"


def test_C_is_chosen_as_by_cross_validation(folder: Path, capsys: Capture) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--cv", 3, "--scoring", "ndcg@5", "--seed", 7, "--json", "fit.json")
    X, y, qid = draw(1)
    expected = rw.RankSVMCV("ap", cv=3, scoring="ndcg@5", random_state=7).fit(X, y, qid)
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
        *(
            "fit",
            *SVM,
            "train.svm",
            "-o",
            "m.rw",
            "--loss",
            "auc",
            "--C",
            "5",
            "--solver",
            "frank-wolfe",
            "--tol",
            "0.02",
        ),
        *("--method", "quicksort", "--max-iter", "400", "--threads", "2", "--seed", "3", "--quiet"),
    )
    params = rw.load("m.rw").get_params()
    expected = {"loss": "auc", "C": 5.0, "solver": "frank-wolfe", "tol": 0.02, "method": "quicksort"}
    expected |= {"max_iter": 400, "n_threads": 2, "random_state": 3, "verbose": 0}
    assert {name: params[name] for name in expected} == expected
    run(
        "fit",
        *SVM,
        "train.svm",
        "-o",
        "m.rw",
        "--cv",
        3,
        "--refit",
        "average",
        "--prior",
        "logistic",
        "--jobs",
        2,
        "--quiet",
    )
    params = rw.load("m.rw").get_params()
    expected = {"cv": 3, "refit": "average", "prior": "logistic", "n_jobs": 2}
    assert {name: params[name] for name in expected} == expected


def test_a_prior_is_refined_with_a_given_C_too(folder: Path) -> None:
    run("fit", *SVM, "train.svm", "-o", "plain.rw", "--C", 0.01, "--quiet")
    run("fit", *SVM, "train.svm", "-o", "refined.rw", "--C", 0.01, "--prior", "logistic", "--quiet")
    X, y, qid = draw(1)
    plain, refined = (
        rw.metrics.average_precision(rw.load(name).decision_function(X), y >= 1, qid=qid)
        for name in ("plain.rw", "refined.rw")
    )
    assert refined > plain


def test_choices_are_all_there_are() -> None:
    assert {name for name, loss in LOSSES.items() if loss.cut != "always"} == set(parsing.LOSSES)
    assert set(fit.SOLVERS) == {"auto", *SOLVERS}
    assert set(METHODS) == set(parsing.METHODS)


def test_queries_are_left_aside_if_asked(folder: Path) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10, "--no-qid", "--quiet")
    X, y, _ = draw(1)
    write_data("flat.svm", X, y)
    run("fit", *SVM, "flat.svm", "-o", "flat.rw", "--C", 10, "--quiet")
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.load("flat.rw").coef_, RTOL, ATOL)
    run("predict", "m.rw", "test.svm", "--rank", "--no-qid", "-o", "ranks.txt")
    assert sorted(map(int, Path("ranks.txt").read_text().split())) == list(range(1, 241))


@pytest.mark.parametrize("labels", [(-1.0, 1.0), (0.0, 1.0), (3.0, 7.0), (0.25, 0.75)])
def test_two_labels_are_the_classes_if_they_are_whole(folder: Path, labels: tuple[float, float]) -> None:
    X, y, _ = draw(1)
    write_data("two.svm", X, np.where(y >= 1, labels[1], labels[0]))
    run("fit", *SVM, "two.svm", "-o", "m.rw", "--C", 10, "--relevant-from", labels[1], "--quiet")
    expected = [0, 1] if labels[0] == 0.25 else [int(label) for label in labels]
    assert rw.load("m.rw").classes_.tolist() == expected


def test_relevance_begins_where_it_is_told(folder: Path) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10, "--relevant-from", 2, "--quiet", "--json", "fit.json")
    X, y, qid = draw(1)
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.RankSVM("ap", 10.0).fit(X, y >= 2, qid).coef_, RTOL, ATOL)
    run("evaluate", "m.rw", "test.svm", "--json", "test.json", "--resamples", 0)
    test = json.loads(Path("test.json").read_text())["data"]
    assert test["relevant_from"] == 2.0
    assert test["positives"] == int((draw(2)[1] >= 2).sum())


def test_indices_are_read_as_in_training(folder: Path) -> None:
    Path("from0.svm").write_text("1 0:1 1:2\n0 0:-1 1:1\n1 0:2\n0 1:3\n")
    Path("sparse.svm").write_text("0 1:1\n")
    run("fit", *SVM, "from0.svm", "-o", "m.rw", "--C", 10, "--quiet")
    run("predict", "m.rw", "sparse.svm", "-o", "scores.txt")
    model = rw.load("m.rw")
    assert np.loadtxt("scores.txt", ndmin=1)[0] == pytest.approx(model.coef_[0, 1] + model.intercept_[0])


def test_columns_are_found_by_name(model: Path, folder: Path) -> None:
    X, y, qid = draw(2)
    names = [f"f{k + 1}" for k in range(6)]
    write_data("turned.csv", X[:, ::-1], y, qid, names[::-1])
    run("predict", model, "test.csv", "-o", "a.txt")
    run("predict", model, "turned.csv", "-o", "b.txt")
    assert Path("a.txt").read_text() == Path("b.txt").read_text()


# Standardised features


def test_standardizing_is_folded_into_the_model(folder: Path) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    X, y, _ = draw(1)
    test = draw(2)[0]
    run("fit", *SVM, "train-flat.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    expected = make_pipeline(StandardScaler(), LinearSVM("ap", 10.0)).fit(X, y >= 1)
    found = rw.load("m.rw").decision_function(test)
    np.testing.assert_allclose(found, expected.decision_function(test), RTOL, ATOL)
    assert np.ptp(
        rw.load("m.rw").decision_function(test) - rw.RankSVM("ap", 10.0).fit(X, y >= 1).decision_function(test)
    )


def test_sparse_features_are_scaled_and_not_centred(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = csr_array(np.where(rng.random((150, 40)) < 0.1, 7.0 * rng.random((150, 40)), 0.0))
    y = (X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).astype(float)
    write_data("sparse.svm", X, y)
    run("fit", *SVM, "sparse.svm", "-o", "m.rw", "--C", 10, "--standardize", "--quiet")
    expected = make_pipeline(StandardScaler(with_mean=False), LinearSVM("ap", 10.0)).fit(X, y)
    np.testing.assert_allclose(rw.load("m.rw").decision_function(X), expected.decision_function(X), RTOL, ATOL)


def test_features_too_large_to_standardize_are_refused(folder: Path, capsys: Capture) -> None:
    Path("huge.svm").write_text("1 1:1 2:1e308\n0 1:2 2:-1e308\n1 1:3 2:1e308\n")
    assert "feature 2 is too large" in refused(
        capsys, "fit", *SVM, "huge.svm", "-o", "m.rw", "--C", 1, "--standardize", "--quiet"
    )
    assert not Path("m.rw").exists()


# What is said and written


def test_the_summary_tells_what_was_learnt(folder: Path, capsys: Capture) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10)
    printed = capsys.readouterr()
    stored = rw.load("m.rw")
    y, qid = draw(1)[1:]
    assert f"240 samples with 6 features, {int((y >= 1).sum())} relevant" in printed.out
    assert f"{np.unique(qid).size} queries" in printed.out
    assert "loss ap, C = 10\n" in printed.out
    assert f"objective {stored.objective_:.6g}, within {stored.gap_:.1e} of the minimum" in printed.out
    assert f"{stored.n_iter_} iterations, {stored.timing_['calls']:,} inference calls" in printed.out
    assert re.search(r"\d+\.\d\d s \(\d+% in inference\)", printed.out)
    assert printed.out.endswith("model: m.rw\n")
    assert re.search(r"gap \S+, \d+ planes", printed.err)


def test_quiet_is_quiet(folder: Path, capsys: Capture) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 10, "--quiet")
    assert capsys.readouterr() == ("", "")


def test_stopping_short_is_noted_in_one_line(folder: Path, capsys: Capture) -> None:
    run("fit", *SVM, "train.svm", "-o", "m.rw", "--C", 1000, "--max-iter", 2, "--quiet", "--json", "fit.json")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rankwise: RankSVM stopped at a relative duality gap of")
    document = json.loads(Path("fit.json").read_text())
    assert not document["converged"]
    assert [f"rankwise: {note}" for note in document["notes"]] == [line]
