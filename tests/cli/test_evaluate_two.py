"""Two models of the same data, compared: what is said, written and drawn is `metrics.compare`; what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import PNG, RTOL, SVM, Capture, draw, refused, run, scores_of

from rankwise import metrics
from rankwise.io import read_data, write_data

NAMES = ["ndcg@5", "err@5", "recall@3", "map"]


@pytest.fixture
def two(model: Path, folder: Path) -> tuple[Path, Path]:
    """model.rw, and another of the same data."""
    run("fit", *SVM, "train.csv", "-o", "other.rw", "--loss", "auc", "--C", 0.001, "--quiet")
    return model, folder / "other.rw"


def document(*arguments: Any) -> dict[str, Any]:
    run("evaluate", *arguments, "--json", "found.json")
    found: dict[str, Any] = json.loads(Path("found.json").read_text())
    return found


def test_two_models_are_compared_as_the_python_interface_does(two: Any, capsys: Capture) -> None:
    found = document("model.rw", "other.rw", "test.csv", "--metrics", *NAMES, "--resamples", 60, "--level", 0.8)
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
    found = document("model.rw", "other.rw", "test.csv", "--no-qid", "--metrics", "ap", "--resamples", 30)
    printed = capsys.readouterr().out
    assert "intervals over samples" in printed
    assert "Wilcoxon" not in printed
    assert "better" not in printed
    assert found["bootstrap"]["over"] == "samples"
    (row,) = found["metrics"]
    assert (row["p_wilcoxon"], row["p_sign_flip"]) == (None, None)
    assert row["difference"]["low"] <= row["difference"]["high"]


def test_without_resamples_there_are_no_intervals(two: Any, capsys: Capture) -> None:
    found = document("model.rw", "other.rw", "test.csv", "--metrics", "ap", "--resamples", 0)
    printed = capsys.readouterr().out
    assert "interval" not in printed
    assert " to " not in printed
    assert "Wilcoxon p " in printed
    (row,) = found["metrics"]
    assert row["a"]["low"] is row["difference"]["low"] is None


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_differences_are_drawn_of_the_first_metric(two: Any, suffix: str, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    figure = f"differences.{suffix}"
    run("evaluate", "model.rw", "other.rw", "test.csv", "--metrics", "err@5", "ap", "--plot", figure, "--resamples", 9)
    assert f"figure: {figure} (difference in err@5 per query)" in capsys.readouterr().out
    assert Path(figure).read_bytes().startswith(PNG if suffix == "png" else b"<?xml")
    run("evaluate", "model.rw", "test.csv", "--plot", figure, "--metrics", "ap", "--resamples", 0)
    assert Path(figure).read_bytes().startswith(PNG if suffix == "png" else b"<?xml")


# Empty queries, grades


def test_empty_queries_count_as_is_said(two: Any, capsys: Capture) -> None:
    X, y, qid = draw(2)
    y[qid <= 3] = 0.0
    write_data("gaps.csv", X, y, qid)
    arguments = ("gaps.csv", "--metrics", "ndcg@5", "ap", "--resamples", 0)
    values = {}
    for empty, said in (("skip", "are skipped"), ("zero", "count as 0"), ("one", "count as 1")):
        found = document("model.rw", *arguments, "--empty", empty)
        assert found["empty"] == empty
        printed = capsys.readouterr().out
        assert f"12 queries (3 without relevant samples)\nqueries for which a metric is not defined {said}\n" in printed
        assert "9 of 12 queries" in printed
        values[empty] = np.array([row["value"] for row in found["metrics"]])
        assert [row["queries"] for row in found["metrics"]] == [9, 9]
    np.testing.assert_allclose(values["zero"], values["skip"] * 9 / 12, RTOL)
    np.testing.assert_allclose(values["one"], (values["skip"] * 9 + 3) / 12, RTOL)
    both = document("model.rw", "other.rw", *arguments, "--empty", "one")["metrics"][0]
    assert both["a"]["value"] == pytest.approx(values["one"][0], rel=RTOL)
    assert len(both["by_query"]["qid"]) == 12
    said = refused(capsys, "evaluate", "model.rw", *arguments, "--empty", "error")
    assert "query 1 has 0 positives" in said
    assert "pass --empty 'skip', 'zero' or 'one'" in said


def test_labels_are_grades_with_the_gain_that_is_asked_for(two: Any) -> None:
    data = read_data("test.csv")
    assert np.unique(data.y).tolist() == [0.0, 1.0, 2.0]
    scores = scores_of(two[0], data.X)
    by_gain = {
        gain: document("model.rw", "test.csv", "--metrics", "ndcg", "--gain", gain)["metrics"][0]["value"]
        for gain in ("exp2", "linear")
    }
    for gain, value in by_gain.items():
        assert value == pytest.approx(metrics.as_metric("ndcg", gain=gain)(scores, data.y, qid=data.qid), rel=RTOL)  # type: ignore[arg-type]
    assert by_gain["exp2"] != by_gain["linear"]
    (row,) = document("model.rw", "test.csv", "--metrics", "err@3", "--max-grade", 4)["metrics"]
    expected = metrics.expected_reciprocal_rank(scores, data.y, k=3, max_grade=4, qid=data.qid)
    assert row["value"] == pytest.approx(expected, rel=RTOL)


def test_grades_without_a_zero_are_judged_by_metrics_of_grades(two: Any, capsys: Capture) -> None:
    X, y, qid = draw(2)
    write_data("high.csv", X, y + 1.0, qid)
    (row,) = document("model.rw", "high.csv", "--metrics", "ndcg@5")["metrics"]
    expected = metrics.ndcg(scores_of(two[0], X), y + 1.0, k=5, qid=qid)
    assert row["value"] == pytest.approx(expected, rel=RTOL)
    assert "only one class" in refused(capsys, "evaluate", "model.rw", "high.csv", "--metrics", "ndcg@5", "ap")


# Refusals


def test_models_that_are_not_of_the_same_data_are_refused(two: Any, folder: Path, capsys: Capture) -> None:
    X, y, qid = draw(1)
    write_data("narrow.csv", X[:, :4], y, qid)
    write_data("zero-based.npz", X, y, qid)
    renamed = Path("train.csv").read_text().replace("f2", "g2", 1).replace("x2", "g2", 1)
    Path("renamed.csv").write_text(renamed)
    for name, options in (("narrow.csv", ()), ("renamed.csv", ()), ("train.csv", ("--relevant-from", 2))):
        run("fit", *SVM, name, "-o", f"{name}.rw", "--C", 1, "--quiet", *options)
    said = refused(capsys, "evaluate", "model.rw", "narrow.csv.rw", "test.csv")
    assert "model.rw was trained on 6 features, narrow.csv.rw on 4; compare models with the same features" in said
    said = refused(capsys, "evaluate", "model.rw", "renamed.csv.rw", "test.csv")
    assert re.search(r"model.rw has a feature '\w+' where renamed.csv.rw has 'g2'", said)
    said = refused(capsys, "evaluate", "model.rw", "train.csv.rw", "test.csv")
    assert "model.rw was trained with --relevant-from 1 and train.csv.rw with 2; " in said
    assert "; choose one with --relevant-from" in said
    run("evaluate", "model.rw", "train.csv.rw", "test.csv", "--relevant-from", 1, "--resamples", 0)


def test_a_model_with_names_and_one_without_are_compared(two: Any) -> None:
    run("fit", *SVM, "train.svm", "-o", "nameless.rw", "--C", 10, "--quiet")
    one, other = (document(*pair, "test.csv", "--metrics", "ap") for pair in PAIRS)
    first, second = one["metrics"][0], other["metrics"][0]
    assert first["a"]["value"] == second["b"]["value"]
    assert first["difference"]["value"] == -second["difference"]["value"]


def test_options_may_stand_between_the_files(two: Any) -> None:
    usual = document("model.rw", "other.rw", "test.csv", "--metrics", "ap", "--resamples", 0)
    run("evaluate", "model.rw", "--resamples", 0, "other.rw", "--metrics", "ap", "--json", "found.json", "test.csv")
    assert json.loads(Path("found.json").read_text()) == usual


PAIRS = [("model.rw", "nameless.rw"), ("nameless.rw", "model.rw")]
REFUSALS: list[tuple[list[Any], str]] = [
    (["model.rw"], "the following arguments are required: FILE"),
    (["model.rw", "other.rw"], "other.rw is a model, not data; name a file of samples instead"),
    (["model.rw", "other.rw", "model.rw", "test.csv"], "3 models before test.csv; name one model, or two to compare"),
    (["model.rw", "test.csv", "test.csv"], "test.csv"),
    (["model.rw", "-", "test.csv"], "a model cannot be read from standard input"),
    (["model.rw", "other.rw", "test.csv", "--json", "other.rw"], "--json would overwrite MODEL B"),
    (["model.rw", "other.rw", "test.csv", "--plot", "d.pdf"], "must end in .png or .svg"),
    (
        ["model.rw", "other.rw", "test.csv", "--plot", "d.png", "--no-qid"],
        "only one query, so there are no differences per query to",
    ),
    (["model.rw", "test.csv", "--metrics", "map", "--no-qid"], "map is the mean of AP over queries; use ap instead"),
    (["model.rw", "test.csv", "--empty", "drop"], "invalid choice: 'drop'"),
    (["model.rw", "test.csv", "--gain", "cubic"], "invalid choice: 'cubic'"),
    (["model.rw", "test.csv", "--metrics", "err@0"], "the cut-off of 'err@0' must be a whole number"),
    (["model.rw", "test.csv", "--metrics", "err", "--max-grade", 1], "a label is 2, above --max-grade 1"),
    (["model.rw", "huge.csv", "--metrics", "ndcg"], "a label is 2000, so the gain in ndcg, 2^label - 1, is too large"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSALS)
def test_what_makes_no_sense_is_refused_in_a_line(two: Any, arguments: list[Any], said: str, capsys: Capture) -> None:
    X, y, qid = draw(2)
    write_data("huge.csv", X, y * 1000.0, qid)
    assert said in refused(capsys, "evaluate", *arguments)


def test_huge_labels_are_judged_with_linear_gains(two: Any) -> None:
    X, y, qid = draw(2)
    write_data("huge.csv", X, y * 1000.0, qid)
    huge, small = (
        document("model.rw", name, "--metrics", "ndcg", "--gain", "linear", "--resamples", 0)["metrics"]
        for name in ("huge.csv", "test.csv")
    )
    assert huge[0]["value"] == pytest.approx(small[0]["value"], rel=RTOL)
