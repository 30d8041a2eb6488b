"""What fit, predict and evaluate refuse: in one line, with what is wrong and what to do."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import COMMAND, SVM, Capture, draw, refused

import rankwise as rw
from rankwise.io import write_data


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
        ("one.svm", "every label is 1; a ranking needs two classes"),
        ("ones.svm", "the labels are 1, 2; use --relevant-from 2"),
        ("below.svm", "the labels are -1, 0; use --relevant-from 0"),
        ("apart.svm", "try --no-qid"),
        ("nan.csv", "line 2, column 'a'"),
        ("unnamed.csv", "name the label column with --label"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(folder: Path, capsys: Capture, name: str, said: str) -> None:
    _damaged(name)()
    assert said in refused(capsys, "fit", name, "-o", "m.rw", "--quiet")
    assert not Path("m.rw").exists()


def test_a_damaged_parquet_file_is_refused(folder: Path, capsys: Capture) -> None:
    pytest.importorskip("pyarrow")
    _damaged("random.parquet")()
    assert "not a complete Parquet file" in refused(capsys, "fit", "random.parquet", "-o", "m.rw", "--quiet")


OF_RANK_SVM = [
    *(("--loss", "ap"), ("--C", "1"), ("--C", "auto"), ("--scoring", "ap"), ("--refit", "last"), ("--prior", "none")),
    *(("--standardize",), ("--no-standardize",), ("--solver", "auto"), ("--method", "auto"), ("--tol", "0.001")),
    *(("--max-iter", "10"), ("--threads", "1")),
]


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
        (["fit", "train.svm", "-o", "m.rw", *SVM, "--scoring", "map"], "unknown metric 'map'"),
        (
            ["fit", "train.svm", "-o", "m.rw", *SVM, "--C", "1", "--cv", "3"],
            "--cv controls how C is chosen, but --C is 1",
        ),
        (
            ["fit", "train.svm", "-o", "m.rw", *SVM, "--cv", "100"],
            "only 12 queries with both classes for 100 folds; use --cv 12 or lower",
        ),
        (["fit", "train.svm", "-o", "m.rw", "--metric", "map@3"], "unknown metric 'map@3'"),
        (["fit", "train.svm", "-o", "m.rw", "--metric", "precision"], "precision needs the last place"),
        (["fit", "train-flat.svm", "-o", "m.rw", "--metric", "map"], "has no queries, but map is the mean of AP"),
        (["fit", "train.svm", "-o", "m.rw", "--no-qid", "--metric", "map"], "use --metric ap"),
        (["fit", "train.svm", "-o", "m.rw", "--model", "svm"], "'svm'"),
        (
            ["fit", "train.svm", "-o", "m.rw", *SVM, "--metric", "ap"],
            "--metric is an option of --model linear-ranker; with rank-svm, use --loss, and --scoring to choose C",
        ),
        *[
            (
                ["fit", "train.svm", "-o", "m.rw", option, *value],
                f"{option.replace('no-', '')} is an option of --model rank-svm; add --model rank-svm, or remove",
            )
            for option, *value in OF_RANK_SVM
        ],
        (["fit", "train.svm", "-o", "m.rw", "--format", "npz"], "train.svm"),
        (["fit", "train.npz", "-o", "m.rw", "--format", "svmlight"], "pass --format 'npz'"),
        (["fit", "train.svm", "-o", "m.rw", "--label", "f1"], "--label, --query and --ignore name columns"),
        (["fit", "train.csv", "-o", "m.rw", "--label", "grade"], "asked for by --label;"),
        (["fit", "train.svm", "-o", "no/m.rw"], "there is no folder no"),
        (["fit", "train.svm", "-o", "."], "is a folder"),
        (["fit", "train.svm", "-o", "/proc/m.rw"], "cannot be written"),
        (["fit", "train.svm", "-o", "-"], "name a file"),
        (["fit", "train.svm", "-o", "train.svm"], "would overwrite TRAIN"),
        (["fit", "train.svm", "-o", "m.rw", "--json", "m.rw"], "--json would overwrite --output"),
        (["fit", "model.rw", "-o", "m.rw"], "model.rw is a model, not data"),
        (["predict", "model.rw", "model.rw"], "model.rw is a model, not data"),
        (["predict", "no.rw", "test.csv"], "no.rw: no such file"),
        (["predict", "test.csv", "model.rw"], "test.csv is not a rankwise model"),
        (["predict", "test.npz", "test.csv"], "test.npz is not a rankwise model"),
        (["predict", "-", "-"], "MODEL and DATA cannot both be '-'"),
        (["predict", "-", "test.csv"], "cannot be read from standard input"),
        (["predict", "model.rw", "test.csv", "-o", "-", "--json", "-"], "--output and --json cannot both be '-'"),
        (["predict", "model.rw", "test.csv", "--rank", "--labels"], "not allowed with"),
        (["predict", "model.rw", "wide.svm"], "feature 7, but the model's are 1 to 6"),
        (["predict", "model.rw", "narrow.npz"], "has 5 features, but the model has 6"),
        (["predict", "model.rw", "renamed.csv"], "no column 'f6'"),
        (["evaluate", "model.rw", "one.csv"], "every label is 0"),
        (["evaluate", "model.rw", "unlabelled.npz"], "no array 'y'"),
        (["evaluate", "model.rw", "test.csv", "--metrics", "ap", "map@3"], "unknown metric 'map@3'"),
        (["evaluate", "model.rw", "test.csv", "--metrics", "precision"], "precision needs the last place"),
        (["evaluate", "model.rw", "test.csv", "--level", "95"], "'95' is not between 0 and 1"),
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
    hint = f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')"
    assert f"this needs {package}: {hint}" in refused(capsys, *arguments)


def test_running_out_of_memory_is_one_line(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(rw.RankSVM, "fit", exhausted)
    said = refused(capsys, "fit", "train.svm", "-o", "m.rw", *SVM, "--C", 1, "--quiet")
    assert "out of memory (Unable to allocate 1 TiB)" in said


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
