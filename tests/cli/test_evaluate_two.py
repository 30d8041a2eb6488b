"""Two models of the same data, compared: what is said, written and drawn is `metrics.compare`; what is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import PNG, RTOL, Capture, document, draw, refused, run, scores_of

from rankwise import metrics
from rankwise.io import read_data, write_data

NAMES = ["ndcg@5", "err@5", "recall@3", "map"]
SVM = "--model rank-svm --quiet"
TWO = "evaluate model.rw other.rw test.csv"


@pytest.fixture(scope="module")
def fitted_other(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("other") / "other.rw"
    run(f"fit {SVM} --loss auc --C 0.001", samples / "train.csv", "-o", path)
    return path


@pytest.fixture
def two(model: Path, fitted_other: Path) -> tuple[Path, Path]:
    """model.rw, and another of the same data."""
    return model, Path(shutil.copy(fitted_other, model.with_name("other.rw")))


def test_two_models_are_compared_as_the_python_interface_does(two: Any, capsys: Capture) -> None:
    found = document(f"{TWO} --metrics {' '.join(NAMES)} --resamples 60 --level 0.8")
    printed = capsys.readouterr().out
    data = read_data("test.csv")
    a, b = (scores_of(path, data.X) for path in two)
    assert found["models"] == ["model.rw", "other.rw"]
    assert [row["name"] for row in found["metrics"]] == NAMES
    for row in found["metrics"]:
        metric = metrics.as_metric("ap" if row["name"] == "map" else row["name"])
        expected = metrics.compare(metric, a, b, data.y, data.qid, n_resamples=60, level=0.8)
        assert (row["a"]["value"], row["b"]["value"]) == pytest.approx((expected.mean_a, expected.mean_b), rel=RTOL)
        alone = metrics.bootstrap_interval(metric, b, data.y, data.qid, n_resamples=60, level=0.8)
        assert (row["b"]["low"], row["b"]["high"]) == pytest.approx(alone, rel=RTOL)
        difference = (expected.difference, *expected.interval)
        assert tuple(row["difference"].values()) == pytest.approx(difference, rel=RTOL, abs=RTOL)
        assert (row["p_wilcoxon"], row["p_sign_flip"]) == (expected.p_wilcoxon, expected.p_sign_flip)
        assert (row["better"], row["worse"], row["equal"]) == (expected.better, expected.worse, expected.equal)
        assert row["by_query"]["qid"] == expected.ids.tolist()
        np.testing.assert_allclose(row["by_query"]["difference"], expected.differences, atol=RTOL)
        low, high = expected.interval
        assert f"  B - A  {expected.difference:+.4f}  {low:+.4f} to {high:+.4f}   Wilcoxon p " in printed
        said = rf"B is better on {row['better']} quer(y|ies), worse on {row['worse']}, equal on {row['equal']}\n"
        assert re.search(said, printed)
    assert "A: model.rw (RankSVM, ap)\nB: other.rw (RankSVM, auc)\n80% intervals over queries\n" in printed
    assert "ndcg@5   12 of 12 queries\n" in printed


def test_one_query_has_intervals_over_samples_and_no_test(two: Any, capsys: Capture) -> None:
    found = document(f"{TWO} --no-qid --metrics ap --resamples 30")
    printed = capsys.readouterr().out
    assert "intervals over samples" in printed
    assert "Wilcoxon" not in printed
    assert "better" not in printed
    assert found["bootstrap"]["over"] == "samples"
    (row,) = found["metrics"]
    assert (row["p_wilcoxon"], row["p_sign_flip"]) == (None, None)
    assert row["difference"]["low"] <= row["difference"]["high"]


def test_without_resamples_there_are_no_intervals(two: Any, capsys: Capture) -> None:
    (row,) = document(f"{TWO} --metrics ap --resamples 0")["metrics"]
    printed = capsys.readouterr().out
    assert "interval" not in printed
    assert " to " not in printed
    assert "Wilcoxon p " in printed
    assert row["a"]["low"] is row["difference"]["low"] is None


def test_empty_queries_count_for_both(two: Any) -> None:
    X, y, qid = draw(2)
    y[qid <= 3] = 0.0
    write_data("gaps.csv", X, y, qid)
    options = "gaps.csv --metrics ap --resamples 0 --empty one"
    (alone,) = document(f"evaluate model.rw {options}")["metrics"]
    (both,) = document(f"evaluate model.rw other.rw {options}")["metrics"]
    assert both["a"]["value"] == pytest.approx(alone["value"], rel=RTOL)
    assert len(both["by_query"]["qid"]) == 12


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_differences_are_drawn_of_the_first_metric(two: Any, suffix: str, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    figure = f"differences.{suffix}"
    run(f"{TWO} --metrics err@5 ap --plot {figure} --resamples 9")
    assert f"figure: {figure} (difference in err@5 per query)" in capsys.readouterr().out
    assert Path(figure).read_bytes().startswith(PNG if suffix == "png" else b"<?xml")


def test_a_model_with_names_and_one_without_are_compared_and_options_stand_anywhere(two: Any) -> None:
    run(f"fit {SVM} train.svm -o nameless.rw --C 10")
    (first,) = document("evaluate model.rw nameless.rw test.csv --metrics ap --resamples 0")["metrics"]
    (second,) = document("evaluate nameless.rw --resamples 0 model.rw test.csv --metrics ap")["metrics"]
    assert first["a"]["value"] == second["b"]["value"]
    assert first["difference"]["value"] == -second["difference"]["value"]


# Refusals


def test_models_that_are_not_of_the_same_data_are_refused(two: Any, capsys: Capture) -> None:
    X, y, qid = draw(1)
    write_data("narrow.csv", X[:, :4], y, qid)
    Path("renamed.csv").write_text(Path("train.csv").read_text().replace("f2", "g2", 1))
    Path("zero.svm").write_text("1 0:1 5:2\n0 0:2 5:1\n1 0:3 5:1\n")
    Path("one.svm").write_text("1 1:1 6:2\n0 1:2 6:1\n1 1:3 6:1\n")
    for name, options in (("narrow.csv", ""), ("renamed.csv", ""), ("zero.svm", ""), ("one.svm", "")):
        run(f"fit {SVM} {name} -o {name}.rw --C 1 {options}")
    run(f"fit {SVM} train.csv -o two.rw --C 1 --relevant-from 2")
    for pair, said in {
        "model.rw narrow.csv.rw": r"model.rw was trained on 6 features, narrow.csv.rw on 4; compare models with the sa",
        "model.rw renamed.csv.rw": r"model.rw has a feature '\w+' where renamed.csv.rw has 'g2'",
        "zero.svm.rw one.svm.rw": r"the first feature has index 0 for zero.svm.rw and 1 for one.svm.rw; train both on",
        "model.rw two.rw": r"model.rw was trained with --relevant-from 1 and two.rw with 2; choose one with --relevant",
    }.items():
        assert re.search(said, refused(capsys, f"evaluate {pair} test.csv"))
    run("evaluate model.rw two.rw test.csv --relevant-from 1 --resamples 0")


REFUSALS = {
    "model.rw": "the following arguments are required: FILE",
    "model.rw other.rw": "other.rw is a model, not data; name a file of samples instead",
    "model.rw other.rw model.rw test.csv": "3 models before test.csv; name one model, or two to compare",
    "model.rw test.csv test.csv": "test.csv",
    "model.rw - test.csv": "a model cannot be read from standard input",
    "model.rw other.rw test.csv --json other.rw": "--json would overwrite MODEL B",
    "model.rw other.rw test.csv --plot d.pdf": "must end in .png or .svg",
    "model.rw other.rw test.csv --plot d.png --no-qid": "only one query, so there are no differences per query to",
    "model.rw test.csv --metrics map --no-qid": "map is the mean of AP over queries; use ap instead",
    "model.rw test.csv --empty drop": "invalid choice: 'drop'",
    "model.rw test.csv --gain cubic": "invalid choice: 'cubic'",
    "model.rw test.csv --metrics err@0": "the cut-off of 'err@0' must be a whole number",
    "model.rw test.csv --metrics err --max-grade 1": "a label is 2, above --max-grade 1",
}


@pytest.mark.parametrize("line", REFUSALS)
def test_what_makes_no_sense_is_refused_in_a_line(two: Any, line: str, capsys: Capture) -> None:
    assert REFUSALS[line] in refused(capsys, f"evaluate {line}")
