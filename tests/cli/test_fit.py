"""Fitting RankSVM: the model is that of the Python interface, from every kind of file and option."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import ATOL, RTOL, Capture, document, draw, refused, run
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise.io import read_data, read_model, write_data

SVM = "--model rank-svm --quiet"


# Round trips


@pytest.mark.parametrize("name", ["svm", "csv", "txt.gz"])
def test_scores_are_those_of_the_python_interface(folder: Path, name: str) -> None:
    run(f"fit {SVM} train.{name} -o m.rw --C 10 --loss ndcg")
    X, y, qid = draw(1)
    test, _, test_qid = draw(2)
    expected = rw.RankSVM("ndcg", 10.0).fit(X, y, qid)
    run(f"predict m.rw test.{name} -o scores.txt")
    np.testing.assert_allclose(np.loadtxt("scores.txt"), expected.decision_function(test), RTOL, ATOL)
    run(f"predict m.rw test.{name} -o ranks.txt --rank")
    assert Path("ranks.txt").read_text().split() == [str(k) for k in expected.rank(test, test_qid)]
    run(f"predict m.rw test.{name} -o labels.txt --labels")
    assert Path("labels.txt").read_text().split() == [str(int(k)) for k in expected.predict(test)]


def test_data_come_through_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def give(path: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("train.txt.gz")
    run(f"fit {SVM} - -o m.rw --C 10")
    give("test.svm")
    run("predict m.rw -")
    piped = capsys.readouterr().out
    run("predict m.rw test.csv")
    assert capsys.readouterr().out == piped
    assert read_model("m.rw").header["note"]["source"] == "standard input"


def test_C_is_chosen_as_by_cross_validation(folder: Path, capsys: Capture) -> None:
    choice = document("fit --model rank-svm train.svm -o m.rw --cv 3 --scoring ndcg@5 --seed 7")["choice"]
    X, y, qid = draw(1)
    expected = rw.RankSVMCV("ap", cv=3, scoring="ndcg@5", random_state=7).fit(X, y, qid)
    stored = rw.load("m.rw")
    np.testing.assert_allclose(stored.C_, expected.C_, RTOL)
    np.testing.assert_allclose(stored.coef_, expected.coef_, RTOL, ATOL)
    np.testing.assert_allclose(choice["scores"], expected.scores_, RTOL)
    (marked,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("*"))
    best = expected.scores_[np.argmax(expected.scores_.mean(axis=1))]
    assert marked.split() == ["*", f"{expected.C_:.4g}", f"{best.mean():.4f}", f"{best.std():.4f}"]
    # The loss ndcg is judged by grades unless told.
    choice = document(f"fit {SVM} train.csv -o m.rw --loss ndcg --cv 3")["choice"]
    assert choice["metric"] == "ndcg"
    np.testing.assert_allclose(choice["scores"], rw.RankSVMCV("ndcg", cv=3).fit(X, y, qid).scores_, RTOL)


def test_options_reach_the_estimator(folder: Path) -> None:
    run(f"fit {SVM} train.svm -o m.rw --loss auc --C 5 --tol 0.02 --threads 2")
    expected = {"loss": "auc", "C": 5.0, "tol": 0.02, "n_threads": 2, "verbose": 0}
    assert rw.load("m.rw").get_params().items() >= expected.items()
    run(f"fit {SVM} train.svm -o m.rw --loss ndcg@5 --cv 3 --jobs 2 --seed 3")
    expected = {"loss": "ndcg@5", "cv": 3, "n_jobs": 2, "random_state": 3}
    assert rw.load("m.rw").get_params().items() >= expected.items()


def test_queries_are_left_aside_if_asked(folder: Path) -> None:
    run(f"fit {SVM} train.svm -o m.rw --C 10 --no-qid")
    X, y, _ = draw(1)
    write_data("flat.svm", X, y)
    run(f"fit {SVM} flat.svm -o flat.rw --C 10")
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.load("flat.rw").coef_, RTOL, ATOL)
    run("predict m.rw test.svm --rank --no-qid -o ranks.txt")
    assert sorted(map(int, Path("ranks.txt").read_text().split())) == list(range(1, 241))


def test_relevance_begins_where_it_is_told(folder: Path) -> None:
    run(f"fit {SVM} train.svm -o m.rw --C 10 --relevant-from 2")
    X, y, qid = draw(1)
    np.testing.assert_allclose(rw.load("m.rw").coef_, rw.RankSVM("ap", 10.0).fit(X, y >= 2, qid).coef_, RTOL, ATOL)
    test = document("evaluate m.rw test.svm --metrics ap --resamples 0")["data"]
    assert (test["relevant_from"], test["positives"]) == (2.0, int((draw(2)[1] >= 2).sum()))


def test_features_are_those_of_training_by_index_and_by_name(model: Path, folder: Path) -> None:
    Path("from0.svm").write_text("1 0:1 1:2\n0 0:-1 1:1\n1 0:2\n0 1:3\n")
    Path("sparse.svm").write_text("0 1:1\n")
    run(f"fit {SVM} from0.svm -o m.rw --C 10")
    run("predict m.rw sparse.svm -o scores.txt")
    stored = rw.load("m.rw")
    assert np.loadtxt("scores.txt", ndmin=1)[0] == pytest.approx(stored.coef_[0, 1] + stored.intercept_[0])
    X, y, qid = draw(2)
    names = read_data("test.csv").feature_names
    assert names is not None
    write_data("turned.csv", X[:, ::-1], y, qid, names[::-1])
    run("predict model.rw test.csv -o a.txt")
    run("predict model.rw turned.csv -o b.txt")
    assert Path("a.txt").read_text() == Path("b.txt").read_text()


def test_a_file_with_its_ids_is_taken(model: Path, capsys: Capture) -> None:
    lines = Path("test.csv").read_text().splitlines()
    Path("ids.csv").write_text("\n".join(f"{'id' if k == 0 else f'C{k}'},{line}" for k, line in enumerate(lines)))
    run(f"fit {SVM} ids.csv -o m.rw --C 1 --ignore id")
    run("evaluate model.rw ids.csv --ignore id --resamples 0")
    run("predict model.rw ids.csv --ignore id -o scores.txt")
    assert len(Path("scores.txt").read_text().splitlines()) == len(lines) - 1
    capsys.readouterr()
    run("predict model.rw ids.csv", status=2)
    said = "the model has no feature 'id'; remove it, or name it with --label, --query or --ignore"
    assert said in capsys.readouterr().err


def test_standardizing_is_folded_into_the_model(folder: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    X, y, _ = draw(1)
    sparse = csr_array(np.where(rng.random((240, 40)) < 0.1, 7.0 * rng.random((240, 40)), 0.0))
    for features in (X, sparse):
        write_data("flat.svm", features, y >= 1)
        run(f"fit {SVM} flat.svm -o m.rw --C 10 --standardize")
        scaler = StandardScaler(with_mean=features is X)
        expected = make_pipeline(scaler, rw.RankSVM("ap", 10.0)).fit(features, y >= 1).decision_function(features)
        np.testing.assert_allclose(rw.load("m.rw").decision_function(features), expected, RTOL, ATOL)
        assert np.ptp(expected - rw.RankSVM("ap", 10.0).fit(features, y >= 1).decision_function(features)) > 0.01
    Path("huge.svm").write_text("1 1:1 2:1e308\n0 1:2 2:-1e308\n1 1:3 2:1e308\n")
    said = "huge.svm: feature 2 is too large to standardize; rescale it"
    assert said in refused(capsys, f"fit {SVM} huge.svm -o none.rw --C 1 --standardize")
    assert not Path("none.rw").exists()


# What is said and written


def test_the_summary_tells_what_was_learnt(folder: Path, capsys: Capture) -> None:
    run("fit --model rank-svm train.svm -o m.rw --C 10")
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


def test_quiet_is_quiet_but_for_notes(folder: Path, capsys: Capture) -> None:
    run(f"fit {SVM} train.svm -o m.rw --C 10")
    assert capsys.readouterr() == ("", "")
    found = document(f"fit {SVM} train.svm -o m.rw --C 1e20")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rankwise: RankSVM stopped at a relative duality gap of")
    assert not found["converged"]
    assert [f"rankwise: {note}" for note in found["notes"]] == [line]
