"""Samples in files: every format gives back what was written, from a file, a pipe or standard input."""

from __future__ import annotations

import gzip
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import write_samples, write_table
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from rankwise.io import read_data, write_data

TEXT = (".svm", ".txt.gz", ".csv", ".tsv", ".csv.gz")
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet")
ALL = (*TEXT, ".parquet")
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
        with pytest.raises(ValueError, match=r"qid must be 5 whole numbers, one per row of X"):
            write_data(path, X, Y, queries)
        assert not list(tmp_path.iterdir())
        return
    write_samples(path, X, Y, queries)
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
    assert found.feature_names == (["f1", "f2", "f3", "f4"] if suffix in TABLES else None)
    assert found.source == str(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".svm", ".svm.gz"])
def test_sparse_matrices_are_read_as_they_were_written(suffix: str, tmp_path: Path, rng: np.random.Generator) -> None:
    X = sparse.csr_array(np.maximum(rng.random((30, 50)) - 0.9, 0.0))
    X = sparse.hstack([sparse.csr_array((30, 1)), X, sparse.csr_array((30, 2))])  # the first and last are empty
    path = tmp_path / f"data{suffix}"
    for form in (X.tocsr(), X.tocoo(), sparse.csr_matrix(X)):
        write_data(path, form, np.arange(30), np.arange(30))
        found = read_data(path)
        assert (found.X.format, found.X.shape) == ("csr", (30, 53))
        np.testing.assert_array_equal(found.X.toarray(), X.toarray())
        assert found.qid.tolist() == list(range(30))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool])
def test_single_precision_stays_and_whole_numbers_become_double(dtype: type, tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    path = tmp_path / "x.parquet"
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
    path.write_text("-1 \n1 1:0.5\n")
    assert read_data(path).X.shape == (2, 1)
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


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_columns_are_found_by_name_and_put_in_order(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    write_table(path, {"b": [1.0, 2.0], "group": ["u", "v"], "relevance": [0, 1], "a": [3.0, 4.0]})
    found = read_data(path)
    assert (found.feature_names, found.X.tolist()) == (["b", "a"], [[1, 3], [2, 4]])
    assert (found.y.tolist(), found.qid.tolist()) == ([0, 1], ["u", "v"])
    found = read_data(path, feature_names=["a", "b"])
    assert (found.feature_names, found.X.tolist()) == (["a", "b"], [[3, 1], [4, 2]])
    for options, said in (
        ({"feature_names": ["a", "c", "b", "d"]}, "no column 'c', 'd'; the data must have every feature"),
        ({"feature_names": ["a"]}, "the model has no feature 'b'; remove it"),
        ({"n_features": 3}, "has 2 features, but the model has 3"),
    ):
        with pytest.raises(ValueError, match=rf"{path.name}.*{said}"):
            read_data(path, **options)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_columns_may_be_asked_for_by_name_and_ignored_whatever_they_hold(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    ignored: dict[str, Any] = {"id": ["C1", 'C,"3"'], "note": ["nan", "é"]}
    if suffix == ".parquet":
        ignored = {"id": [[1], []], "note": pd.Timestamp("2026-01-01")}
    write_table(path, {"y": [1.0, 2.0], "session": [8, 9], "grade": [0, 1], "label": [3.0, 4.0], **ignored})
    for names in (None, ["label", "y"]):
        found = read_data(path, label="grade", query="session", ignore=["note", "id"], feature_names=names)
        assert (found.y.tolist(), found.qid.tolist()) == ([0, 1], [8, 9])
        assert found.feature_names == (names or ["y", "label"])
        assert found.X.tolist() == ([[3, 1], [4, 2]] if names else [[1, 3], [2, 4]])


def test_categories_are_queries(tmp_path: Path) -> None:
    write_table(tmp_path / "x.parquet", {"label": [1, 0], "qid": pd.Categorical(["u", "v"]), "a": [1, 2]})
    assert read_data(tmp_path / "x.parquet").qid.tolist() == ["u", "v"]


@pytest.mark.parametrize("suffix", TABLES)
def test_labels_may_be_absent_where_they_are_not_needed(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    write_samples(path, np.eye(2))
    with pytest.raises(ValueError, match=rf"{path.name}.*no column 'label' or 'y'"):
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
        '"label",qid,"a,b",c\r\r1,7,0.5,2\r0,8,1e3,-.25\r',
        "label;qid;a,b;c\n1;7;0.5;2\n0;8;1000;-0.25",
        "\n\nlabel\tqid\ta,b\tc\n1\t7\t0.5\t2\n0\t8\t1000\t-0.25\n",
    ):
        path.write_text(text, encoding="utf-8", newline="")
        found = read_data(path)
        assert (found.X.tolist(), found.y.tolist(), found.qid.tolist()) == ([[0.5, 2], [1000, -0.25]], [1, 0], [7, 8])
        assert found.feature_names == ["a,b", "c"]


class Standard(io.TextIOWrapper):
    """Standard input of given bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


@pytest.mark.parametrize("suffix", ALL)
def test_standard_input_is_read_in_every_format(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"x{suffix}"
    write_samples(path, np.eye(3), [1, 0, 1], [1, 1, 2])
    monkeypatch.setattr("sys.stdin", Standard(path.read_bytes()))
    found = read_data("-")
    assert (dense(found.X).tolist(), found.source) == (np.eye(3).tolist(), "standard input")


def test_bad_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, said in (
        (b"", r"standard input is empty"),
        (b"1 1:x\n", r"standard input, line 1: .*'1:x'"),
    ):
        monkeypatch.setattr("sys.stdin", Standard(content))
        with pytest.raises(ValueError, match=said):
            read_data("-")
    if Path("/dev/zero").exists():
        with open("/dev/zero", encoding="ascii") as endless:
            monkeypatch.setattr("sys.stdin", endless)
            with pytest.raises(ValueError, match="standard input is not text: byte 0x00 at offset 0"):
                read_data("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"1 1:0.5\n" * 20_000,))
    writer.start()
    assert read_data(pipe).X.shape == (20_000, 1)
    writer.join()


BAD_ARGUMENTS: list[tuple[tuple[Any, ...], str]] = [
    ((np.zeros(3), np.zeros(3)), r"X must be a two-dimensional array of numbers, got float64 of shape \(3,\)"),
    ((np.array([["a"]]), [1]), r"X must be a two-dimensional array of numbers"),
    ((np.array([[1.0, np.nan]]), [1]), r"X\[0, 1\] is nan"),
    ((np.eye(2), [1]), r"y must be 2 numbers, one per row of X, got int64 of shape \(1,\)"),
    ((np.eye(2), [1, np.inf]), r"y\[1\] is inf"),
    ((np.eye(2), [1, 0], [0.5, 1.0]), r"qid must be 2 whole numbers"),
    ((np.empty((0, 2)), []), r"holds no samples"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_ARGUMENTS, ids=lambda part: part if type(part) is str else "")
def test_what_could_not_be_read_again_is_not_written(arguments: tuple[Any, ...], said: str, tmp_path: Path) -> None:
    for name in ("x.svm", "x.svm.gz"):
        with pytest.raises(ValueError, match=said):
            write_data(tmp_path / name, *arguments)
    for name in ("x", "x.csv", "x.npz", "x.parquet", "x.gz"):
        with pytest.raises(ValueError, match=r"end the name in one of \.txt, \.svm.*; write tables with pandas"):
            write_data(tmp_path / name, np.eye(2), [0, 1])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
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
