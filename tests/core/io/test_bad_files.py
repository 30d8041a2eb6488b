"""Files that hold no samples are refused in one line, by name and place: text, tables, and random bytes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankwise.io import files as files_module
from rankwise.io import read_data, write_data

BAD_SVMLIGHT: dict[str, tuple[str, str]] = {
    "no label": ("1 1:2\n1:0.5 2:1\n", r"line 2: no label before '1:0\.5'; begin the line with one"),
    "no label but a qid": ("qid:1 1:2\n", r"line 1: no label before 'qid:1'"),
    "label a word": ("1 1:2\n\nspam 1:2\n", r"line 3: the label 'spam' is not a number"),
    "label nan": ("#c\n1 1:2\nnan 1:2\n", r"line 3: the label is nan; give every sample a finite one"),
    "no colon": ("1 1:2 3\n", r"line 1: '3' is not of the form index:value"),
    "empty value": ("1 1:2\n1 1: 2:3\n", r"line 2: the value in '1:' is not a number"),
    "value a word": ("1 1:2\n1 1:x\n", r"line 2: the value in '1:x' is not a number"),
    "value nan": ("1 1:2\n\n# c\n1 1:2 2:nan\n", r"line 4: feature 2 is nan; remove or replace it"),
    "value inf": ("1 1:2\n1 1:1e999\n", r"line 2: feature 1 is inf"),
    "index a word": ("1 a:2\n", r"line 1: 'a:2' does not begin with a feature number"),
    "index negative": ("1 -1:2\n", r"line 1: '-1:2' does not begin with a feature number"),
    "index too large": ("1 99999999999:2\n", r"line 1: the index in '99999999999:2' is too large"),
    "index of many digits": (f"1 {'9' * 9000}:2\n", r"line 1: the index in '9{40}'… is too large"),
    "indices descend": ("1 1:2\n1 2:1 1:2\n", r"line 2: index 1 comes after 2; put the features in ascending order"),
    "index twice": ("1 2:1 2:2\n", r"line 1: index 2 comes after 2"),
    "underscores": ("1 1:1_0\n", r"line 1: the value in '1:1_0' is not a number"),
    "qid later": (
        "1 1:2\n1 qid:1 1:2\n",
        r"line 2: this line has a qid but earlier lines have none; give all lines a qid, or none",
    ),
    "qid not on all": ("1 qid:1 1:2\n1 1:2\n", r"line 2: this line has no qid but earlier lines have one"),
    "qid a word": ("1 qid:a 1:2\n", r"line 1: 'qid:a' is not of the form qid:number; number the queries, or use CSV"),
    "qid misspelt": ("1 qidd:1 1:2\n", r"line 1: 'qidd:1' is not of the form qid:number"),
    "qid too large": ("1 qid:99999999999999999999 1:2\n", r"line 1: .* is beyond 64 bits"),
    "qid of many digits": (f"1 qid:{'9' * 9000} 1:2\n", r"line 1: .* is beyond 64 bits"),
    "qid late": ("1 1:2 qid:3\n", r"line 1: 'qid:3' does not begin with a feature number"),
    "no features": ("1\n0\n", r"x\.svm holds no features"),
    "no lines": ("\n \n# c\n", r"x\.svm holds no samples"),
    "control characters": ("1 1:2\n" * 20_000 + "1 \0\x1b:2\n", r"line 20001: '\\x00\\x1b:2' does not begin"),
    "other text": ("The quick brown fox\n", r"line 1: the label 'The' is not a number"),
    "csv": ("label,a\n1,2\n", r"line 1: the label 'label,a' is not a number"),
}
BAD_CSV: dict[str, tuple[str, str]] = {
    "no header": ("1,2,3\n4,5,6\n", r"line 1: the header has numbers, not column names; add a line of names"),
    "only a header": ("label,a\n", r"x\.csv holds no samples"),
    "nothing": ("\n\n", r"x\.csv holds no samples; begin it with a line of column names"),
    "no label": ("a,b\n1,2\n", r"line 1: no column 'label' or 'y' or 'target' or 'relevance'; name the label column"),
    "two labels": ("y,label,a\n1,2,3\n", r"line 1: columns 'label', 'y' could each be the label; name it with label="),
    "two queries": ("y,qid,group\n1,2,3\n", r"line 1: columns 'qid', 'group' could each be the query"),
    "no features": ("label,qid\n1,2\n", r"x\.csv holds no features"),
    "a name twice": ("label,a,a\n1,2,3\n", r"line 1: two columns have the name 'a'; rename one"),
    "an index of pandas": (",label,a\n0,1,2\n", r"line 1: column 1 has no name; with pandas, pass index=False"),
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
    "a short line": ("label,a,b\n1,2,3\n1,2\n", r"line 3: 2 cells, but the header has 3; correct the line"),
    "long lines": ("label,a\n1,2,3\n1,2,3\n", r"line 2: 3 cells, but the header has 2"),
    "a comment": ("label,a\n1,2 # two\n", r"line 2, column 'a': '2 # two' is not a number"),
    "an open quote": ('label,qid\n1,"2\n1,3\n', r"line 2: a quote is not closed; close it, or remove it"),
    "an open quote in the header": ('label,"a\n1,2\n', r"line 1: a quote is not closed"),
    "a long cell": (f"label,a\n1,2\n1,{'z' * 200_000}\n", r"line 3: field larger than field limit.*; correct the line"),
    "a long name": (
        f"{'z' * 200_000},a\n1,2\n",
        r"line 1: the header cannot be read \(field larger than .*; correct it",
    ),
    "digits of another script": ("label,a\n1,2\n1,٣\n", r"line 3, column 'a': '٣' is not a number; .* 0 to 9"),
    "a label in another script": ("label,a\n1,2\n３,4\n", r"line 3, column 'label': '３' is not a number; .* 0 to 9"),
    "a point of another script": ("label,a\n1,٣٫٥\n", r"line 2, column 'a': '٣٫٥' is not a number; .* 0 to 9, a point"),
    "another minus": ("label,a\n1,−3\n", r"line 2, column 'a': '−3' is not a number; .* a minus"),
    "columns apart by spaces": (
        "label a b\n1 2 3\n",
        r"line 1: the header has one column, 'label a b'; separate columns by commas, tabs or semicolons",
    ),
    "columns apart by bars": ("label|a\n1|2\n", r"line 1: the header has one column, 'label\|a'; separate"),
    "control characters": ("label,a\n" + "1,2\n" * 20_000 + "1,\0\n", r"line 20002"),
}
BAD_BYTES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("x.svm", b"", r"x\.svm is empty; SVMlight/LETOR, CSV and TSV"),
    "empty csv": ("x.csv", b"", r"x\.csv is empty"),
    "empty npz": ("x.npz", b"", r"x\.npz: .*write it again"),
    "empty parquet": ("x.parquet", b"", r"x\.parquet is not a complete Parquet file"),
    "nul": ("x.svm", b"1 1:\x002\n", r"x\.svm is not text: byte 0x00 at offset 4"),
    "random": ("x", bytes(range(256)) * 999, r"x is not text: byte 0x00 at offset 0; .* and Parquet are read"),
    "prose": ("x", b"hello world\n", r"x: cannot tell its format from 'hello world'; SVMlight/LETOR.*pass format="),
    "utf-16": ("x.csv", "label,a\n1,2\n".encode("utf-16"), r"x\.csv is UTF-16 text; save it as UTF-8"),
    "latin-1": ("x.csv", "label,a\n1,2\n1,é\n".encode("latin-1"), r"line 3: byte 0xe9 is not UTF-8"),
    "latin-1 header": ("x.csv", "label,é\n1,2\n".encode("latin-1"), r"line 1: byte 0xe9 is not UTF-8"),
    "zip as text": ("x.txt", b"PK\x03\x04....", r"x\.txt is npz, not text; .*pass format='npz'"),
    "parquet as text": ("x.csv", b"PAR1....", r"x\.csv is parquet, not text"),
    "parquet gzipped": ("x.parquet.gz", gzip.compress(b"PAR1...."), r"is parquet, not text; unpack it"),
    "gzip cut": ("x.svm.gz", gzip.compress(b"1 1:2\n" * 99)[:-9], r"x\.svm\.gz: the gzip data end too early; download"),
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
    "text as parquet": ("x.parquet", b"1 1:2\n", r"x\.parquet is not a complete Parquet file"),
    "cut parquet": ("x.pq", b"PAR1" + bytes(20) + b"\x10\0\0\0PAR1", r"x\.pq is not a complete Parquet file"),
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
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it"):
        read_data(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(ValueError, match=r"/dev/zero is neither a file nor a pipe"):
            read_data("/dev/zero")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "LONGEST_LINE", 1 << 20)
    for name, start in (("x.svm", b"1 1:2\n1 1:"), ("y.csv", b"label,a\n1,")):
        (tmp_path / name).write_bytes(start + b"1" * (1 << 21))
        with pytest.raises(ValueError, match=rf"{name}, line 2: longer than 1 MB"):
            read_data(tmp_path / name)


def test_data_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("# c\n1 1:2\n1 1:1 4:3\n")
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 1 to 3; use data"):
        read_data(path, n_features=3)
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 0 to 3"):
        read_data(path, n_features=4, first_index=0)
    with pytest.raises(ValueError, match=r"line 3: feature 4, but the model's are 1 to 2"):
        read_data(path, feature_names=["a", "b"])
    path.write_text("1 1:2\n1 0:1 4:3\n")
    with pytest.raises(ValueError, match=r"line 2: index 0, but indices start from 1 here"):
        read_data(path, first_index=1)
    with pytest.raises(ValueError, match=r"label=, query= and ignore= name columns, but svmlight data have none"):
        read_data(path, label="y")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xlsx"}, r"unknown format='xlsx'; use one of 'svmlight', 'csv', 'parquet', 'npz'"),
        ({"n_features": 0}, r"n_features must be a whole number, at least 1, got 0"),
        ({"n_features": 2.0}, r"n_features must be a whole number"),
        ({"first_index": 2}, r"first_index must be 0 or 1, got 2"),
        ({"first_index": True}, r"first_index must be 0 or 1, got True"),
        ({"feature_names": ["a", "a"]}, r"feature_names: two columns have the name 'a'"),
        ({"feature_names": ["a"], "n_features": 2}, r"n_features is 2, but feature_names has 1"),
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
    "strings": (
        {"label": [1, 0], "a": ["u", "v"]},
        r"column 'a': its type is .*string; convert it to numbers, or name it with ignore=",
    ),
    "dates": ({"label": [1, 0], "a": pd.to_datetime(["2020-01-01"] * 2)}, r"column 'a': its type is timestamp"),
    "float queries": (
        {"label": [1, 0], "qid": [0.5, 1], "a": [1, 2]},
        r"column 'qid': its type is double; queries must be",
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
    with pytest.raises(ValueError, match=r"column '__index_level_0__' is an index of pandas; pass index=False"):
        read_data(tmp_path / "x.parquet")


def test_damaged_parquet_pages_are_refused(tmp_path: Path) -> None:
    path, X = tmp_path / "x.parquet", np.array([[np.pi], [np.e], [2**0.5]])
    write_data(path, X, [1, 0, 1])
    content = path.read_bytes()
    assert X[1].tobytes() in content
    path.write_bytes(content.replace(X[1].tobytes(), np.array([0.5]).tobytes()))
    with pytest.raises(ValueError, match=r"x\.parquet is not a complete Parquet file .*; write it again"):
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


@settings(max_examples=200, deadline=None)
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
    assert np.isfinite(found.X.data if sparse.issparse(found.X) else found.X).all()
