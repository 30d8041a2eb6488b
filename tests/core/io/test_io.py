"""Samples in files: every format gives back what was written, and every bad file is refused by name and place."""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from rankwise.io import read_data, read_scores, write_data, write_scores
from rankwise.io import sources as sources_module
from rankwise.io.npy import read_npy

TEXT = (".svm", ".txt.gz", ".csv", ".tsv", ".csv.gz")
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet", ".npz")
ALL = (*TEXT, ".parquet", ".npz")
Y = np.array([2.0, 0.0, 1.0, 0.1, -1.0])
QID = {
    "none": None,
    "int": np.array([7, 7, -3, 2**62, 7]),
    "str": np.array(["a b", "é", 'q"1,2', "a b", "007"]),
}


def values(rng: np.random.Generator, dtype: type = np.float64) -> Any:
    """Numbers of all sizes, with zeros."""
    X = (rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-30, 30, (5, 4))).astype(dtype)
    X[1] = X[4, 3] = 0.0
    return X


def dense(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else X.toarray()


@pytest.mark.parametrize("qid", QID)
@pytest.mark.parametrize("suffix", ALL)
def test_arrays_are_read_as_they_were_written(suffix: str, qid: str, tmp_path: Path, rng: np.random.Generator) -> None:
    path, X, queries = tmp_path / f"data{suffix}", values(rng), QID[qid]
    if suffix in TEXT[:2] and qid == "str":
        with pytest.raises(ValueError, match=r"whole numbers as queries; number them, or write CSV"):
            write_data(path, X, Y, queries)
        assert not list(tmp_path.iterdir())
        return
    write_data(path, X, Y, queries)
    found = read_data(path)
    assert type(found.X) is np.ndarray
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, Y)
    assert found.X.dtype == found.y.dtype == np.float64
    assert found.X.flags.c_contiguous
    assert (found.qid is None) == (queries is None)
    if queries is not None:
        assert found.qid.dtype.kind == queries.dtype.kind
        assert found.qid.tolist() == queries.tolist()
    assert found.first_index == (1 if suffix in TEXT[:2] else None)
    assert found.feature_names == (["f1", "f2", "f3", "f4"] if suffix in TABLES[:4] else None)
    assert found.source == str(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".svm", ".svm.gz", ".npz"])
def test_sparse_matrices_are_read_as_they_were_written(suffix: str, tmp_path: Path, rng: np.random.Generator) -> None:
    X = sparse.random_array((30, 50), density=0.1, format="csr", rng=rng)
    X = sparse.hstack([sparse.csr_array((30, 1)), X, sparse.csr_array((30, 2))])  # the first and last are empty
    path = tmp_path / f"data{suffix}"
    for form in (X.tocsr(), X.tocoo(), sparse.csr_matrix(X)):
        write_data(path, form, np.arange(30), np.arange(30))
        found = read_data(path)
        assert (found.X.format, found.X.shape) == ("csr", (30, 53))
        np.testing.assert_array_equal(found.X.toarray(), X.toarray())
        assert found.qid.tolist() == list(range(30))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_refuse_sparse_matrices(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"every zero of a sparse X; write SVMlight or NPZ"):
        write_data(tmp_path / f"x{suffix}", sparse.csr_array(np.eye(2)), [0, 1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool])
def test_single_precision_stays_and_whole_numbers_become_double(suffix: str, dtype: type, tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    path = tmp_path / f"x{suffix}"
    if suffix == ".npz":
        np.savez(path, X=np.asfortranarray(X), y=X[:, 0].astype(">f4"))
    else:
        pd.DataFrame({"y": X[:, 0], "a": X[:, 0], "b": X[:, 1]}).to_parquet(path, index=False)
    found = read_data(path)
    assert found.X.dtype == (np.float32 if dtype in (np.float32, np.float16) else np.float64)
    assert found.X.tolist() == X.astype(float).tolist()
    assert found.y.dtype == np.float64


def test_text_is_dense_where_most_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    for stored, kind in ((9, np.ndarray), (8, sparse.csr_array)):
        row = " ".join(f"{k}:1" for k in [*range(1, stored), 20])
        path.write_text(f"1 {row}\n" * 100)
        found = read_data(path)
        assert (type(found.X), found.X.shape) == (kind, (100, 20))


def test_letor_text_with_comments_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "letor"
    text = "# a file\n\n2 qid:10 1:0.5 3:-1e-3 #docid = GX_1 inc = 1:2\r\n  +0\tqid:10 2:.5#c\n1 qid:9 \n"
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        path.write_bytes(content)
        found = read_data(path)
        assert dense(found.X).tolist() == [[0.5, 0, -1e-3], [0, 0.5, 0], [0, 0, 0]]
        assert (found.y.tolist(), found.qid.tolist(), found.first_index) == ([2, 0, 1], [10, 10, 9], 1)


def test_the_first_index_is_seen_or_told(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("1 0:5 2:7\n0 1:6\n")
    assert (read_data(path).first_index, dense(read_data(path).X).tolist()) == (0, [[5, 0, 7], [0, 6, 0]])
    path.write_text("1 1:5 2:7\n0 1:6\n")
    assert (read_data(path).first_index, dense(read_data(path).X).tolist()) == (1, [[5, 7], [6, 0]])
    told = read_data(path, first_index=0, n_features=4)
    assert (told.first_index, dense(told.X).tolist()) == (0, [[0, 5, 7, 0], [0, 6, 0, 0]])
    path.write_text("0\n1\n")
    assert dense(read_data(path, n_features=2).X).tolist() == [[0, 0], [0, 0]]


def test_columns_are_found_by_name_and_put_in_order(tmp_path: Path) -> None:
    frame = pd.DataFrame({"b": [1.0, 2.0], "group": ["u", "v"], "relevance": [0, 1], "a": [3.0, 4.0]})
    csv, parquet, npz = (tmp_path / f"x.{form}" for form in ("csv", "parquet", "npz"))
    frame.to_csv(csv, index=False)
    frame.to_parquet(parquet, index=False)
    np.savez(npz, X=frame[["b", "a"]], y=[0, 1], qid=["u", "v"], feature_names=["b", "a"])
    for path in (csv, parquet, npz):
        found = read_data(path)
        assert (found.feature_names, found.X.tolist()) == (["b", "a"], [[1, 3], [2, 4]])
        assert (found.y.tolist(), found.qid.tolist()) == ([0, 1], ["u", "v"])
        found = read_data(path, feature_names=["a", "b"])
        assert (found.feature_names, found.X.tolist()) == (["a", "b"], [[3, 1], [4, 2]])
        with pytest.raises(ValueError, match=rf"{path.name}.*no column 'c', 'd'; give every feature"):
            read_data(path, feature_names=["a", "c", "b", "d"])
        with pytest.raises(ValueError, match=rf"{path.name}.*the model has no feature 'b'; remove it"):
            read_data(path, feature_names=["a"])
        with pytest.raises(ValueError, match=rf"{path.name} has 2 features and the model 3"):
            read_data(path, n_features=3)
    for path in (csv, parquet):
        with pytest.raises(ValueError, match=r"column 'b' cannot be both the label and the query"):
            read_data(path, label="b", query="b")
        with pytest.raises(ValueError, match=r"no column 'z', asked for by label=; there are 'b', 'group'"):
            read_data(path, label="z")


def test_columns_may_be_asked_for_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0], "session": [8, 9], "grade": [0, 1], "label": [3.0, 4.0]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet", index=False)
    for name in ("x.csv", "x.parquet"):
        found = read_data(tmp_path / name, label="grade", query="session")
        assert (found.y.tolist(), found.qid.tolist(), found.feature_names) == ([0, 1], [8, 9], ["y", "label"])


@pytest.mark.parametrize("suffix", TABLES)
def test_labels_may_be_absent_where_they_are_not_needed(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    write_data(path, np.eye(2), None, feature_names=["a", "b"])
    with pytest.raises(ValueError, match=rf"{path.name}.*(no column 'label' or 'y'|no array 'y')"):
        read_data(path)
    found = read_data(path, require_labels=False)
    assert found.y is None
    assert found.X.tolist() == [[1, 0], [0, 1]]


def test_a_feature_of_the_model_is_not_taken_for_the_label(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    found = read_data(path, feature_names=["x", "y"], require_labels=False)
    assert (found.X.tolist(), found.y) == ([[1, 2], [3, 4]], None)


def test_delimited_text_may_be_quoted_spaced_or_of_another_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text in (
        '\ufeff"label", qid ,"a,b",c\r\n1, 7,0.5,2\r\n\r\n0,"8",1e3,-.25\r\n',
        "label;qid;a,b;c\n1;7;0.5;2\n0;8;1000;-0.25",
        "\n\nlabel\tqid\ta,b\tc\n1\t7\t0.5\t2\n0\t8\t1000\t-0.25\n",
    ):
        path.write_text(text, encoding="utf-8", newline="")
        found = read_data(path)
        assert (found.X.tolist(), found.y.tolist(), found.qid.tolist()) == ([[0.5, 2], [1000, -0.25]], [1, 0], [7, 8])
        assert found.feature_names == ["a,b", "c"]


FORMS = {
    "svmlight": b"1 qid:3 1:0.5\n0 qid:3 1:0.25\n",
    "label only": b"-1 \n1 1:0.5\n",
    "csv": b"label,a\n1,0.5\n0,0.25\n",
    "tsv": b"label\ta\n1\t0.5\n0\t0.25\n",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_says_nothing_is_read_by_its_content(form: str, packed: bool, tmp_path: Path) -> None:
    content = gzip.compress(FORMS[form]) if packed else FORMS[form]
    (tmp_path / "data").write_bytes(content)
    assert read_data(tmp_path / "data").X.shape == (2, 1)


class Standard(io.TextIOWrapper):
    """Standard input of given bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


@pytest.mark.parametrize("suffix", ALL)
def test_standard_input_is_read_in_every_format(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"x{suffix}"
    write_data(path, np.eye(3), [1, 0, 1], [1, 1, 2])
    monkeypatch.setattr("sys.stdin", Standard(path.read_bytes()))
    found = read_data("-")
    assert (dense(found.X).tolist(), found.source) == (np.eye(3).tolist(), "standard input")


def test_bad_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, said in ((b"", r"standard input is empty"), (b"1 1:x\n", r"standard input, line 1: .*'1:x'")):
        monkeypatch.setattr("sys.stdin", Standard(content))
        with pytest.raises(ValueError, match=said):
            read_data("-")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_endless_standard_input_is_refused_at_once() -> None:
    code = "from rankwise.io import read_data; read_data('-')"
    with open("/dev/zero", "rb") as zeros:
        run = subprocess.run([sys.executable, "-c", code], stdin=zeros, capture_output=True, text=True, timeout=60)
    assert "ValueError: standard input is not text: byte 0x00 at offset 0" in run.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"1 1:0.5\n" * 20_000,))
    writer.start()
    assert read_data(pipe).X.shape == (20_000, 1)
    writer.join()


BAD_SVMLIGHT: dict[str, tuple[str, str]] = {
    "no label": ("1 1:2\n1:0.5 2:1\n", r"line 2: no label before '1:0\.5'; begin the line with one"),
    "no label but a qid": ("qid:1 1:2\n", r"line 1: no label before 'qid:1'"),
    "label a word": ("1 1:2\n\nspam 1:2\n", r"line 3: the label 'spam' is not a number"),
    "label nan": ("#c\n1 1:2\nnan 1:2\n", r"line 3: the label is nan; give every sample a finite one"),
    "no colon": ("1 1:2 3\n", r"line 1: '3' is not index:value"),
    "empty value": ("1 1:2\n1 1: 2:3\n", r"line 2: the value in '1:' is not a number"),
    "value a word": ("1 1:2\n1 1:x\n", r"line 2: the value in '1:x' is not a number"),
    "value nan": ("1 1:2\n\n# c\n1 1:2 2:nan\n", r"line 4: feature 2 is nan; remove or replace it"),
    "value inf": ("1 1:2\n1 1:1e999\n", r"line 2: feature 1 is inf"),
    "index a word": ("1 a:2\n", r"line 1: 'a:2' does not begin with the number of a feature"),
    "index negative": ("1 -1:2\n", r"line 1: '-1:2' does not begin with the number of a feature"),
    "index too large": ("1 99999999999:2\n", r"line 1: the index in '99999999999:2' is too large"),
    "index of many digits": (f"1 {'9' * 9000}:2\n", r"line 1: the index in '9{40}'… is too large"),
    "indices descend": ("1 1:2\n1 2:1 1:2\n", r"line 2: index 1 comes after 2; put the features in ascending order"),
    "index twice": ("1 2:1 2:2\n", r"line 1: index 2 comes after 2"),
    "underscores": ("1 1:1_0\n", r"line 1: the value in '1:1_0' is not a number"),
    "qid later": ("1 1:2\n1 qid:1 1:2\n", r"line 2: a qid, and none on the lines before; give every line one, or none"),
    "qid not on all": ("1 qid:1 1:2\n1 1:2\n", r"line 2: no qid, and one on the lines before"),
    "qid a word": ("1 qid:a 1:2\n", r"line 1: 'qid:a' is not qid: and a whole number; number the queries, or use CSV"),
    "qid misspelt": ("1 qidd:1 1:2\n", r"line 1: 'qidd:1' is not qid: and a whole number"),
    "qid too large": ("1 qid:99999999999999999999 1:2\n", r"line 1: .* is beyond 64 bits"),
    "qid of many digits": (f"1 qid:{'9' * 9000} 1:2\n", r"line 1: .* is beyond 64 bits"),
    "qid late": ("1 1:2 qid:3\n", r"line 1: 'qid:3' does not begin with the number"),
    "no features": ("1\n0\n", r"x\.svm holds no features"),
    "no lines": ("\n \n# c\n", r"x\.svm holds no samples"),
    "control characters": ("1 1:2\n" * 20_000 + "1 \0\x1b:2\n", r"line 20001: '\\x00\\x1b:2' does not begin"),
    "other text": ("The quick brown fox\n", r"line 1: the label 'The' is not a number"),
    "csv": ("label,a\n1,2\n", r"line 1: the label 'label,a' is not a number"),
}
BAD_CSV: dict[str, tuple[str, str]] = {
    "no header": ("1,2,3\n4,5,6\n", r"line 1: numbers where the columns' names should be; add a line of names"),
    "only a header": ("label,a\n", r"x\.csv holds no samples"),
    "nothing": ("\n\n", r"x\.csv holds no samples; begin it with a line of the columns' names"),
    "no label": ("a,b\n1,2\n", r"line 1: no column 'label' or 'y' or 'target' or 'relevance'; name the labels'"),
    "two labels": ("y,label,a\n1,2,3\n", r"line 1: columns 'label', 'y' could each be the label; name it with label="),
    "two queries": ("y,qid,group\n1,2,3\n", r"line 1: columns 'qid', 'group' could each be the query"),
    "no features": ("label,qid\n1,2\n", r"x\.csv holds no features"),
    "a name twice": ("label,a,a\n1,2,3\n", r"line 1: two columns are called 'a'; rename one"),
    "an index of pandas": (",label,a\n0,1,2\n", r"line 1: column 1 has no name; with pandas, write with index=False"),
    "a word": ("label,a,b\n1,2,3\n\n1,x,3\n", r"line 4, column 'a': 'x' is not a number"),
    "a label a word": ("label,a\n1,2\nyes,3\n", r"line 3, column 'label': 'yes' is not a number"),
    "underscores": ("label,a\n1,1_0\n", r"line 2, column 'a': '1_0' is not a number"),
    "a comma for a point": ("label;a\n1;0,5\n", r"line 2, column 'a': '0,5' is not a number"),
    "a missing cell": ("label,a,b\n1,,3\n", r"line 2, column 'a': missing \(''\); fill it in, or remove the line"),
    "only missing cells": ("label\ta\tb\n1\t2\t3\n\t\t\n", r"line 3, column 'label': missing"),
    "NA": ("label,a\n1,2\n1,NA\n", r"line 3, column 'a': missing \('NA'\)"),
    "nan": ("label,a\n1,nan\n", r"line 2, column 'a': missing \('nan'\)"),
    "inf": ("label,a\n1,2\n1,-inf\n", r"line 3, column 'a': '-inf' is not finite"),
    "overflow": ("label,a\n1,1e999\n", r"line 2, column 'a': '1e999' is not finite"),
    "a missing query": ("label,qid,a\n1,u,3\n1, ,3\n", r"line 3, column 'qid': missing"),
    "a short line": ("label,a,b\n1,2,3\n1,2\n", r"line 3: 2 cells, but the header has 3; mend the line"),
    "long lines": ("label,a\n1,2,3\n1,2,3\n", r"line 2: 3 cells, but the header has 2"),
    "a comment": ("label,a\n1,2 # two\n", r"line 2, column 'a': '2 # two' is not a number"),
    "an open quote": ('label,qid\n1,"2\n1,3\n', r"line 2: a quote is not closed; close it, or take it out"),
    "an open quote in the header": ('label,"a\n1,2\n', r"line 1: a quote is not closed"),
    "a long cell": (f"label,a\n1,{'z' * 200_000}\n", r"line 2"),
    "control characters": ("label,a\n" + "1,2\n" * 20_000 + "1,\0\n", r"line 20002"),
}
BAD_BYTES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("x.svm", b"", r"x\.svm is empty; SVMlight/LETOR, CSV and TSV"),
    "empty csv": ("x.csv", b"", r"x\.csv is empty"),
    "empty npz": ("x.npz", b"", r"x\.npz: .*write it again"),
    "empty parquet": ("x.parquet", b"", r"x\.parquet is not a whole Parquet file"),
    "nul": ("x.svm", b"1 1:\x002\n", r"x\.svm is not text: byte 0x00 at offset 4"),
    "random": ("x", bytes(range(256)) * 999, r"x is not text: byte 0x00 at offset 0; .* and Parquet are read"),
    "prose": ("x", b"hello world\n", r"x: its format is not clear from 'hello world'; SVMlight/LETOR.*pass format="),
    "utf-16": ("x.csv", "label,a\n1,2\n".encode("utf-16"), r"x\.csv is UTF-16 text; save it as UTF-8"),
    "latin-1": ("x.csv", "label,a\n1,2\n1,é\n".encode("latin-1"), r"line 3: byte 0xe9 is not UTF-8"),
    "latin-1 header": ("x.csv", "label,é\n1,2\n".encode("latin-1"), r"line 1: byte 0xe9 is not UTF-8"),
    "zip as text": ("x.txt", b"PK\x03\x04....", r"x\.txt is not text but npz; .*pass format='npz'"),
    "parquet as text": ("x.csv", b"PAR1....", r"x\.csv is not text but parquet"),
    "parquet gzipped": ("x.parquet.gz", gzip.compress(b"PAR1...."), r"is not text but parquet; unpack it"),
    "gzip cut": ("x.svm.gz", gzip.compress(b"1 1:2\n" * 99)[:-9], r"x\.svm\.gz: the gzip data end too early; fetch"),
    "gzip cut late": (
        "x.csv.gz",
        gzip.compress(os.urandom(99).hex().encode() * 9)[:-3],
        r"the gzip data end too early",
    ),
    "gzip damaged": ("x.svm.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff", r"x\.svm\.gz: the gzip data are damaged"),
    "gzip header only": ("x.svm.gz", b"\x1f\x8b", r"x\.svm\.gz: the gzip data end too early"),
    "gzip, then garbage": ("x.svm.gz", gzip.compress(b"1 1:2\n") + b"zz", r"the gzip data are damaged"),
    "gzip of binary": ("x.svm.gz", gzip.compress(bytes(9)), r"x\.svm\.gz is not text: byte 0x00 at offset 0"),
    "gzip of nothing": ("x.svm.gz", gzip.compress(b""), r"x\.svm\.gz is empty"),
    "text as npz": ("x.npz", b"1 1:2\n", r"x\.npz: File is not a zip file"),
    "text as parquet": ("x.parquet", b"1 1:2\n", r"x\.parquet is not a whole Parquet file"),
    "cut parquet": ("x.pq", b"PAR1" + bytes(20) + b"\x10\0\0\0PAR1", r"x\.pq is not a whole Parquet file"),
}
BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    **{f"svmlight: {kind}": ("x.svm", text.encode(), said) for kind, (text, said) in BAD_SVMLIGHT.items()},
    **{f"csv: {kind}": ("x.csv", text.encode(), said) for kind, (text, said) in BAD_CSV.items()},
    **BAD_BYTES,
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_are_refused_in_one_line_with_their_place(kind: str, tmp_path: Path) -> None:
    name, content, said = BAD_FILES[kind]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said) as caught:
        read_data(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < len(str(path)) + 250


def test_places_that_hold_no_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.svm: no such file; check the name"):
        read_data(tmp_path / "absent.svm")
    with pytest.raises(IsADirectoryError, match=r"is a folder: name a file in it"):
        read_data(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(ValueError, match=r"/dev/zero is neither a file nor a pipe"):
            read_data("/dev/zero")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "LONGEST_LINE", 1 << 20)
    for name, start in (("x.svm", b"1 1:2\n1 1:"), ("y.csv", b"label,a\n1,")):
        (tmp_path / name).write_bytes(start + b"1" * (1 << 21))
        with pytest.raises(ValueError, match=rf"{name}, line 2: longer than 1 MB"):
            read_data(tmp_path / name)


def test_data_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("# c\n1 1:2\n1 1:1 4:3\n")
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 1 to 3; give the data"):
        read_data(path, n_features=3)
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 0 to 3"):
        read_data(path, n_features=4, first_index=0)
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 1 to 2"):
        read_data(path, feature_names=["a", "b"])
    path.write_text("1 1:2\n1 0:1 4:3\n")
    with pytest.raises(ValueError, match=r"line 2: index 0, but indices are from 1 here"):
        read_data(path, first_index=1)
    with pytest.raises(ValueError, match=r"label= and query= name columns, and svmlight data have none"):
        read_data(path, label="y")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xlsx"}, r"unknown format='xlsx'; use one of 'svmlight', 'csv', 'parquet', 'npz'"),
        ({"n_features": 0}, r"n_features must be a whole number, at least 1, got 0"),
        ({"n_features": 2.0}, r"n_features must be a whole number"),
        ({"first_index": 2}, r"first_index must be 0 or 1, got 2"),
        ({"first_index": True}, r"first_index must be 0 or 1, got True"),
        ({"feature_names": ["a", "a"]}, r"feature_names: two columns are called 'a'"),
        ({"feature_names": ["a"], "n_features": 2}, r"n_features is 2 and feature_names has 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_data("absent.svm", **options)


BAD_FRAMES: dict[str, tuple[dict[str, Any], str]] = {
    "null": ({"label": [1, 0], "a": [1.0, None]}, r"row 2, column 'a': missing; fill it in, or remove the row"),
    "null label": ({"label": [1, None], "a": [1.0, 2]}, r"row 2, column 'label': missing"),
    "null query": ({"label": [1, 0], "qid": ["u", None], "a": [1, 2]}, r"row 2, column 'qid': missing"),
    "inf": ({"label": [1, 0], "a": [1.0, np.inf]}, r"row 2, column 'a': inf is not finite"),
    "inf label": ({"label": [-np.inf, 0], "a": [1, 2]}, r"row 1, column 'label': -inf is not finite"),
    "strings": ({"label": [1, 0], "a": ["u", "v"]}, r"column 'a': its type is .*string, not a number's; drop it"),
    "dates": ({"label": [1, 0], "a": pd.to_datetime(["2020-01-01"] * 2)}, r"column 'a': its type is timestamp"),
    "float queries": (
        {"label": [1, 0], "qid": [0.5, 1], "a": [1, 2]},
        r"column 'qid': its type is double; queries are",
    ),
    "no rows": ({"label": [], "a": []}, r"x\.parquet holds no samples"),
    "no features": ({"label": [1, 0]}, r"x\.parquet holds no features"),
    "two labels": ({"label": [1, 0], "y": [1, 0]}, r"could each be the label"),
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_bad_parquet_columns_are_refused(kind: str, tmp_path: Path) -> None:
    frame, said = BAD_FRAMES[kind]
    path = tmp_path / "x.parquet"
    pd.DataFrame(frame).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=said) as caught:
        read_data(path)
    assert str(caught.value).startswith(str(path))


def test_parquet_indices_of_pandas_are_refused_and_categories_are_queries(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [1, 0], "qid": pd.Categorical(["u", "v"]), "a": [1, 2]})
    frame.to_parquet(tmp_path / "x.parquet", index=False)
    assert read_data(tmp_path / "x.parquet").qid.tolist() == ["u", "v"]
    frame.set_index(pd.Index(["k", "l"])).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"column '__index_level_0__' is an index of pandas; write with index=False"):
        read_data(tmp_path / "x.parquet")


def test_damaged_parquet_pages_are_refused(tmp_path: Path) -> None:
    path, X = tmp_path / "x.parquet", np.array([[np.pi], [np.e], [2**0.5]])
    write_data(path, X, [1, 0, 1])
    content = path.read_bytes()
    assert X[1].tobytes() in content
    path.write_bytes(content.replace(X[1].tobytes(), np.array([0.5]).tobytes()))
    with pytest.raises(ValueError, match=r"x\.parquet is not a whole Parquet file .*; write it again"):
        read_data(path)


CSR = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
}
BAD_NPZ: dict[str, tuple[dict[str, Any], str]] = {
    "objects": ({"X": np.array([[None]])}, r"array 'X': an array of dtype '\|O'; numbers of up to 64 bits and strings"),
    "structured": ({"X": np.zeros(2, "f8,f8")}, r"array 'X': an array of dtype '\|V16'"),
    "complex": ({"X": np.zeros((2, 2), complex)}, r"array 'X': an array of dtype '<c16'"),
    "strings": ({"X": np.array([["a"]])}, r"X has dtype <U1; it must hold numbers"),
    "a vector": ({"X": np.zeros(2)}, r"X has shape \(2,\); it must have rows and columns"),
    "no X": ({"y": np.zeros(2)}, r"no array 'X', nor X_data, X_indices, X_indptr, X_shape; store the samples as X"),
    "nan": ({"X": np.array([[1, 2], [3, np.nan]]), "y": np.zeros(2)}, r"X\[1, 1\] is nan; remove or replace it"),
    "y too short": ({"X": np.eye(2), "y": np.zeros(1)}, r"X has 2 rows and y has shape \(1,\)"),
    "y inf": ({"X": np.eye(2), "y": np.array([0, np.inf])}, r"y\[1\] is inf; give every sample a finite label"),
    "y strings": ({"X": np.eye(2), "y": np.array(["a", "b"])}, r"y has dtype <U1; it must hold numbers"),
    "qid too long": ({"X": np.eye(2), "y": np.zeros(2), "qid": np.zeros(3, int)}, r"qid has shape \(3,\)"),
    "qid floats": ({"X": np.eye(2), "y": np.zeros(2), "qid": np.zeros(2)}, r"qid has dtype float64; queries are whole"),
    "few names": (
        {"X": np.eye(2), "y": np.zeros(2), "feature_names": np.array(["a"])},
        r"feature_names must be 2 strin",
    ),
    "unknown": ({"X": np.eye(2), "weights": np.zeros(2)}, r"array 'weights': unknown, or there twice; an archive of"),
    "no rows": ({"X": np.empty((0, 2)), "y": np.empty(0)}, r"x\.npz holds no samples"),
    "no columns": ({"X": np.empty((2, 0)), "y": np.zeros(2)}, r"x\.npz holds no features"),
    "csr nan": (CSR | {"X_data": np.array([1, np.nan]), "y": np.zeros(2)}, r"X\[1, 1\] is nan"),
    "csr column": (CSR | {"X_indices": np.array([0, 2])}, r"are no CSR matrix"),
    "csr negative": (CSR | {"X_indices": np.array([0, -1])}, r"are no CSR matrix"),
    "csr pointers": (CSR | {"X_indptr": np.array([0, 3, 2])}, r"are no CSR matrix"),
    "csr lengths": (CSR | {"X_data": np.ones(3)}, r"are no CSR matrix"),
    "csr floats": (CSR | {"X_indices": np.zeros(2)}, r"must be whole numbers"),
    "csr shape": (CSR | {"X_shape": np.array([2])}, r"X_shape \(two\) must be whole numbers"),
    "csr a matrix": (CSR | {"X_data": np.ones((2, 1))}, r"are no CSR matrix"),
}


@pytest.mark.parametrize("kind", BAD_NPZ)
def test_bad_npz_arrays_are_refused(kind: str, tmp_path: Path) -> None:
    arrays, said = BAD_NPZ[kind]
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=said) as caught:
        read_data(tmp_path / "x.npz")
    assert str(caught.value).startswith(str(tmp_path / "x.npz"))


def test_an_npz_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2), }\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", member + bytes(16))
    with pytest.raises(ValueError, match=r"array 'X': \d+ bytes are not those of an array of float64"):
        read_data(path)
    # The directory lies as well.
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"array 'X': its size cannot be"):
        read_data(path)


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }"
NO_HEADERS: dict[str, tuple[str, str]] = {
    "a call": (HEADER.replace("(2, 1)", "tuple([2, 1])"), "not the header of a plain array"),
    "deep": (HEADER.replace("2", "-" * 9000 + "2"), "not the header of a plain array"),
    "very deep": (HEADER.replace("2", "(" * 9000), "not the header of a plain array"),
    "keys of two kinds": (HEADER.replace("'descr'", "1"), "not the header of a plain array"),
    "a key that cannot be": (HEADER.replace("'descr'", "[]"), "not the header of a plain array"),
    "a long number": (HEADER.replace("2", "9" * 9000), "not the header of a plain array"),
    "no dtype": (HEADER.replace("<f8", "float65"), "not the header of a plain array"),
    "padded without end": (HEADER + " " * 20_000, "not the header of a plain array"),
    "below zero": (HEADER.replace("(2, 1)", "(-2, -1)"), "bytes are not those of an array of float64"),
    "many axes": (HEADER.replace("(2, 1)", f"(2, {'1, ' * 40})"), "bytes are not those of an array of float64"),
    "arrays of arrays": (HEADER.replace("<f8", "(2,)f8").replace("(2, 1)", "(1, 1)"), r"dtype '\|V16'"),
    "pointers": (HEADER.replace("<f8", "|O"), r"dtype '\|O'"),
}


def stored(header: str, version: int) -> bytes:
    """Two numbers after a header, in NumPy's format 1.0 or 2.0."""
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + np.array([1.0, 2.0]).tobytes()


@pytest.mark.parametrize("kind", NO_HEADERS)
@pytest.mark.parametrize("version", [1, 2])
def test_headers_of_no_plain_array_are_refused(kind: str, version: int) -> None:
    good = stored(HEADER, version)
    assert read_npy(io.BytesIO(good), len(good)).tolist() == [[1.0], [2.0]]
    text, said = NO_HEADERS[kind]
    content = stored(text, version)
    with pytest.raises(ValueError, match=said):
        read_npy(io.BytesIO(content), len(content))


def test_a_header_that_claims_to_be_long_is_not_read() -> None:
    class Endless:
        largest = 0

        def read(self, size: int, /) -> bytes:
            self.largest = max(self.largest, size)
            return (b"\x93NUMPY\x02\x00" if size == 8 else b"\xff\xff\xff\xff")[:size]

    stream = Endless()
    with pytest.raises(ValueError, match="not the header of a plain array"):
        read_npy(stream, 2**33)
    assert stream.largest == 8


def test_damaged_npz_is_refused_or_read_as_it_was(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=np.arange(60.0).reshape(20, 3), y=np.arange(20), qid=np.arange(20))
    content = bytearray(path.read_bytes())
    for at in rng.integers(0, len(content), 300):
        content[at] ^= 0x55
        path.write_bytes(content)
        content[at] ^= 0x55
        try:
            found = read_data(path)
        except ValueError:
            continue
        assert found.X.tolist() == np.arange(60.0).reshape(20, 3).tolist()
        assert found.y.tolist() == found.qid.tolist() == list(range(20))
    for cut in rng.integers(0, len(content), 30):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=r"x\.npz"):
            read_data(path)


NAMES = ("x", "x.svm", "x.csv", "x.npz", "x.parquet", "x.svm.gz")
TOKENS = st.sampled_from(
    [
        b"1",
        b"0",
        b"qid:1",
        b"qid:2",
        b"1:0.5",
        b"2:1",
        b"nan",
        b":",
        b"#",
        b",",
        b"\t",
        b'"',
        b"\n",
        b"label",
        b"a",
        b" ",
    ]
)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.one_of(
        st.binary(max_size=200), st.lists(TOKENS, max_size=30).map(b"".join), st.text(max_size=99).map(str.encode)
    ),
    st.sampled_from([b"", b"PAR1", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"label,a\n", b"1 1:2\n"]),
    st.booleans(),
)
def test_random_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, start: bytes, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(gzip.compress(start + content) if packed else start + content)
    try:
        found = read_data(path)
    except ValueError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert message.startswith(str(path))
        assert "\n" not in message
        return
    n, d = found.X.shape
    assert min(n, d) >= 1
    assert found.y.shape == (n,)
    assert found.qid is None or found.qid.shape == (n,)
    assert np.isfinite(dense(found.X)).all()


BAD_ARGUMENTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "vector": ((np.zeros(3), np.zeros(3)), r"X must be numbers in rows and columns, got float64 of shape \(3,\)"),
    "strings": ((np.array([["a"]]), [1]), r"X must be numbers"),
    "nan": ((np.array([[1.0, np.nan]]), [1]), r"X\[0, 1\] is nan"),
    "short y": ((np.eye(2), [1]), r"y must be 2 numbers, as X has rows, got int64 of shape \(1,\)"),
    "inf y": ((np.eye(2), [1, np.inf]), r"y\[1\] is inf"),
    "float qid": ((np.eye(2), [1, 0], [0.5, 1.0]), r"qid must be 2 whole numbers or strings"),
    "short names": ((np.eye(2), [1, 0], None, ["a"]), r"feature_names has 1 and X has 2 columns"),
    "a name taken": ((np.eye(2), [1, 0], None, ["a", "label"]), r"two columns are called 'label'"),
    "blank query": ((np.eye(2), [1, 0], ["a", " b"]), r"query ' b' does not fit in CSV; rename it, or write NPZ"),
    "line in a query": ((np.eye(2), [1, 0], ["a", "b\nc"]), r"query 'b\\nc' does not fit in CSV"),
    "nothing": ((np.empty((0, 2)), []), r"holds no samples"),
}


@pytest.mark.parametrize("kind", BAD_ARGUMENTS)
def test_what_could_not_be_read_again_is_not_written(kind: str, tmp_path: Path) -> None:
    arguments, said = BAD_ARGUMENTS[kind]
    for name in ("x.csv", "x.csv.gz"):
        with pytest.raises(ValueError, match=said):
            write_data(tmp_path / name, *arguments)
    assert not list(tmp_path.iterdir())


def test_the_name_says_the_format_that_is_written(tmp_path: Path) -> None:
    for name in ("x", "x.xlsx", "x.npz.gz", "x.gz"):
        with pytest.raises(ValueError, match=r"end the name in one of \.txt, \.svm"):
            write_data(tmp_path / name, np.eye(2), [0, 1])
    with pytest.raises(ValueError, match=r"SVMlight text needs labels; pass y"):
        write_data(tmp_path / "x.svm", np.eye(2), None)


def test_scores_keep_every_digit(tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: np.random.Generator) -> None:
    scores = rng.normal(size=100) * 10.0 ** rng.integers(-300, 300, 100)
    for path in (tmp_path / "scores.txt", tmp_path / "again"):
        write_scores(path, scores)
        assert read_scores(path).tolist() == scores.tolist()
    write_scores("-", np.array([0.1, -2.5], np.float32))
    assert capsys.readouterr().out == "0.10000000149011612\n-2.5\n"
    with pytest.raises(ValueError, match=r"scores\[1\] is nan: not finite, so not written"):
        write_scores(tmp_path / "scores.txt", [1.0, np.nan])
    with pytest.raises(ValueError, match=r"one-dimensional"):
        write_scores(tmp_path / "scores.txt", np.eye(2))


def test_bad_scores_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    for text, said in (
        ("1\nx\n", r"scores, line 2: 'x' is not a finite number; give one score a line"),
        ("1\n\n2\n", r"scores, line 2: ''"),
        ("1 2\n", r"scores, line 1: '1 2'"),
        ("nan\n", r"scores, line 1: 'nan'"),
        ("", r"scores is empty"),
        ("\0", r"scores is not text"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_scores(path)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, rankwise.io; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" in run.stdout.split()
    assert not {"sklearn", "scipy", "pyarrow", "pandas", "numba"} & set(run.stdout.split())


@pytest.mark.parametrize(
    ("name", "shape", "n_queries", "kind"),
    [
        ("w8a.gz", (49_749, 300), 0, sparse.csr_array),
        ("mq2008-fold1/train.txt.gz", (9_630, 46), 471, np.ndarray),
        ("mq2008-fold1/test.txt.gz", (2_874, 46), 156, np.ndarray),
    ],
)
def test_real_data_are_read_as_scikit_learn_reads_them(
    data_file: Callable[[str], Path], name: str, shape: tuple[int, int], n_queries: int, kind: type
) -> None:
    path = data_file(name)
    found = read_data(path)
    X, y, qid = load_svmlight_file(str(path), query_id=True, zero_based=False)
    assert (type(found.X), found.X.shape, found.first_index) == (kind, shape, 1)
    assert abs(X - sparse.csr_array(found.X)).nnz == 0
    np.testing.assert_array_equal(found.y, y)
    assert (found.qid is None) == (n_queries == 0)
    if n_queries:
        np.testing.assert_array_equal(found.qid, qid)
        assert np.unique(found.qid).size == n_queries
