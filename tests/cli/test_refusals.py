"""What fit, predict and evaluate refuse: in one line, with what is wrong and what to do."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, draw, refused, run
from samples import write_samples

import rankwise as rw

LONG = "9" * 50_000
RANDOM = random.Random(0).randbytes(100_000)
DAMAGED: dict[str, tuple[bytes, str]] = {
    "random.svm": (RANDOM, "not text"),
    "random": (RANDOM, "not text"),
    "one.svm": (b"1 1:1\n1 1:2\n", "every label is 1; a ranking needs two classes"),
    "ones.svm": (b"1 1:1\n2 1:2\n", "the labels are 1, 2; use --relevant-from 2"),
    "apart.svm": (b"1 qid:1 1:1\n0 qid:2 1:2\n", "try --no-qid"),
    "unnamed.csv": (b"a,b\n1,2\n0,1\n", "name the label column with --label"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_data_that_cannot_be_trained_on_are_refused(name: str, tmp_path: Path, capsys: Capture) -> None:
    content, said = DAMAGED[name]
    (tmp_path / name).write_bytes(content)
    assert said in refused(capsys, "fit --quiet", tmp_path / name, "-o", tmp_path / "m.rw")
    assert not (tmp_path / "m.rw").exists()


# Options of RankSVM, which is trained in Python.
GONE = ["--model rank-svm", "--loss ndcg", "--C 1", "--scoring ap", "--tol 0.1", "--standardize", "--threads 2"]
FIT = "fit train.svm -o m.rw"
REFUSALS = {
    "fit no.svm -o m.rw": "no.svm: no such file",
    "fit . -o m.rw": "is a folder",
    "fit train.svm": "required: -o",
    f"{FIT} --cv 1": "'1' is not a whole number of at least 2",
    f"{FIT} --jobs 0": "or -1 for all processors",
    f"{FIT} --seed 9999999999": "is not a whole number from 0 to 4294967295",
    f"{FIT} --relevant-from inf": "'inf' is not a finite number",
    f"{FIT} {LONG}": "unrecognized arguments: 9999",
    LONG: "invalid choice: '9999",
    f"{FIT} --metric map@3": "unknown metric 'map@3'",
    f"{FIT} --metric precision": "precision needs the last place",
    "fit train-flat.svm -o m.rw --metric map": "has no queries, but map is the mean of AP",
    f"{FIT} --no-qid --metric map": "use ap instead",
    **{f"{FIT} {option}": f"unrecognized arguments: {option} (see" for option in GONE},
    f"{FIT} --format parquet": "train.svm",
    f"{FIT} --label f1": "--label, --query and --ignore name columns",
    "fit train.csv -o m.rw --label grade": "asked for by --label;",
    f"fit train.csv -o m.rw --label {LONG}": "no column '9999",
    "fit train.svm -o no/m.rw": "there is no folder no",
    "fit train.svm -o /proc/m.rw": "cannot be written",
    "fit train.svm -o -": "name a file",
    "fit train.svm -o train.svm": "would overwrite TRAIN",
    f"{FIT} --json m.rw": "--json would overwrite --output",
    "fit model.rw -o m.rw": "model.rw is a model, not data",
    "predict model.rw model.rw": "model.rw is a model, not data",
    "predict test.csv model.rw": "test.csv is not a rankwise model",
    "predict test.txt.gz test.csv": "test.txt.gz is not a rankwise model",
    "predict - -": "MODEL and DATA cannot both be '-'",
    "predict - test.csv": "cannot be read from standard input",
    "predict model.rw test.csv -o - --json -": "--output and --json cannot both be '-'",
    "predict model.rw test.csv --rank --labels": "not allowed with",
    "predict model.rw wide.svm": "feature 7, but the model's are 1 to 6",
    "predict nameless.rw narrow.csv": "has 5 features, but the model has 6",
    "predict model.rw renamed.csv": "no column 'f6'",
    "evaluate model.rw one.csv": "every label is 0",
    "evaluate model.rw unlabelled.csv": "name the label column with --label",
    "evaluate model.rw test.csv --metrics ap map@3": "unknown metric 'map@3'",
    "evaluate model.rw test.csv --level 95": "'95' is not between 0 and 1",
    "evaluate model.rw test.csv --plot pr.jpeg": "must end in .png",
    "evaluate model.rw test.csv --json model.rw": "--json would overwrite MODEL",
    "evaluate model.rw": "the following arguments are required: DATA",
    "evaluate model.rw model.rw": "model.rw is a model, not data; name a file of samples instead",
    "evaluate model.rw model.rw test.csv": "unrecognized arguments: test.csv",
    "evaluate model.rw test.csv --metrics map --no-qid": "map is the mean of AP over queries; use ap instead",
    "evaluate model.rw test.csv --empty drop": "invalid choice: 'drop'",
    "evaluate model.rw test.csv --metrics err@0": "the cut-off of 'err@0' must be a whole number",
    "fit train.csv -o ": "argument -o/--output: the name is empty; give that of a file or folder",
    "predict model.rw ": "argument DATA: the name is empty",
    "evaluate model.rw test.csv --plot ": "argument --plot: the name is empty",
}


@pytest.fixture(scope="module")
def wrong(samples: Path, fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of samples, a model, and samples that do not suit it."""
    folder = tmp_path_factory.mktemp("wrong")
    for path in (*samples.iterdir(), fitted):
        (folder / path.name).write_bytes(path.read_bytes())
    X, y, qid = draw(2)
    write_samples(folder / "wide.svm", np.hstack([X, X[:, :1]]), y, qid)
    write_samples(folder / "narrow.csv", X[:, :5], y, qid)
    run("fit --quiet", folder / "train.svm", "-o", folder / "nameless.rw")
    write_samples(folder / "renamed.csv", X, y, qid, ["f1", "f2", "f3", "f4", "f5", "g6"])
    write_samples(folder / "one.csv", X, 0.0 * y, qid)
    write_samples(folder / "unlabelled.csv", X, None, qid)
    return folder


@pytest.mark.parametrize("line", REFUSALS, ids=lambda line: line[:60])
def test_what_is_wrong_is_said_in_one_line(
    line: str, wrong: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(wrong)
    before = {path.name: path.read_bytes() for path in wrong.iterdir()}
    said = refused(capsys, line, *([""] if line.endswith(" ") else []))
    assert REFUSALS[line] in said
    assert len(said) < 500
    assert {path.name: path.read_bytes() for path in wrong.iterdir()} == before


@pytest.mark.parametrize(
    ("package", "extra", "line"),
    [
        ("pyarrow", "parquet", "fit data.parquet -o m.rw"),
        ("matplotlib", "plots", "evaluate model.rw test.csv --plot pr.png"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, package: str, extra: str, line: str
) -> None:
    Path("data.parquet").write_bytes(b"PAR1")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    hint = f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')"
    assert f"this needs {package}: {hint}" in refused(capsys, line)


def test_running_out_of_memory_is_one_line(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(rw.LinearRanker, "fit", exhausted)
    assert "out of memory (Unable to allocate 1 TiB)" in refused(capsys, f"{FIT} --quiet")
