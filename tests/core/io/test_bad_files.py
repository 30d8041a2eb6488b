"""Files that hold no samples are refused in one short line: what is wrong, where, and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import write_samples
from scipy import sparse

from rankwise.io import files, read_data
from rankwise.io.quoting import message_of, shorten, shown

LONG = "9" * 50_000
BAD_SVMLIGHT = [
    ("1 1:2\n1:0.5 2:1\n", r"line 2: the label '1:0\.5' is not a number; begin the line with one"),
    ("1 1:2\n\nspam 1:2\n", r"line 3: the label 'spam' is not a number"),
    ("#c\n1 1:2\nnan 1:2\n", r"line 3: the label is nan; give every sample a finite one"),
    ("1 1:2 3\n", r"line 1: '3' is not of the form index:value"),
    (
        "1 1:2\n1 1:x\n",
        r"line 2: '1:x' is not of the form index:value, two numbers, the first up to 2147483646",
    ),
    ("1 1:2\n\n# c\n1 1:2 2:nan\n", r"line 4: feature 2 is nan; remove or replace it"),
    ("1 a:2\n", r"line 1: 'a:2' is not of the form index:value"),
    ("1 99999999999:2\n", r"line 1: '99999999999:2' is not of the form index:value"),
    (f"1 {LONG}:2\n", r"line 1: '9{40}'… is not of the form index:value"),
    ("1 1:2\n1 2:1 1:2\n", r"line 2: index 1 comes after 2; put the features in ascending order"),
    ("1 1:1_0\n", r"line 1: '1:1_0' is not of the form index:value"),
    ("1 1:2\n1 qid:1 1:2\n", r"line 2: this line has a qid but earlier lines have none; give all lines a qid, or none"),
    ("1 qid:1 1:2\n1 1:2\n", r"line 2: this line has no qid but earlier lines have one"),
    ("1 qid:a 1:2\n", r"line 1: 'qid:a' is not of the form qid:number, of 64 bits; number the queries"),
    (f"1 qid:{LONG} 1:2\n", r"line 1: .* is not of the form qid:number, of 64 bits"),
    ("1\n0\n", r"holds no features"),
    ("\n \n# c\n", r"holds no samples"),
    ("1 1:2\n" * 20_000 + "1 \0\x1b:2\n", r"line 20001: '\\x00\\x1b:2' is not of the form index:value"),
    (f"{LONG}x 1:2\n", r"line 1: the label '9{40}'… is not a number"),
]
BAD_CSV = [
    ("1,2,3\n4,5,6\n", r"line 1: the header has numbers, not column names; add a line of names"),
    ("label,a\n", r"holds no samples"),
    ("\n\n", r"holds no samples; begin it with a line of column names"),
    ("a,b\n1,2\n", r"line 1: no column 'label' or 'y' or 'target' or 'relevance'; name the label column"),
    ("y,label,a\n1,2,3\n", r"line 1: columns 'label', 'y' could each be the label; name it with label="),
    ("label,qid\n1,2\n", r"holds no features"),
    ("label,a,a\n1,2,3\n", r"line 1: two columns have the name 'a'; rename one"),
    (",label,a\n0,1,2\n", r"line 1: column 1 has no name; with pandas, pass index=False"),
    (f"label,__index_level_{LONG}\n1,2\n", r"line 1: column .* is an index of pandas"),
    ("label,a,b\n1,2,3\n\n1,x,3\n", r"line 4, column 'a': 'x' is not a number"),
    ("label,a\n1,2\nyes,3\n", r"line 3, column 'label': 'yes' is not a number"),
    ("label;a\n1;0,5\n", r"line 2, column 'a': '0,5' is not a number"),
    ("label,a,b\n1,,3\n", r"line 2, column 'a': missing \(''\); fill it in, or remove the line"),
    ("label,a\n1,2\n1,NA\n", r"line 3, column 'a': missing \('NA'\)"),
    ("label,a\n1,2\n1,-inf\n", r"line 3, column 'a': '-inf' is not finite"),
    (f"label,a\n1,{LONG}\n", r"line 2, column 'a': '9{40}'… is not finite"),
    ("label,qid,a\n1,u,3\n1, ,3\n", r"line 3, column 'qid': missing"),
    ("label,a,b\n1,2,3\n1,2\n", r"line 3: 2 cells, but the header has 3; correct the line"),
    ("label,a\r\r1,2\r0,x\r\n1,4\r", r"line 4, column 'a': 'x' is not a number"),
    ('label,qid\n1,"2\n1,3\n', r"line 2: a quote is not closed; close it, or remove it"),
    ('label,"a\n1,2\n', r"line 1: a quote is not closed"),
    (f"label,a\n1,2\n1,{'z' * 200_000}\n", r"line 3: field larger than field limit.*; correct the line"),
    (f"{'z' * 200_000},a\n1,2\n", r"line 1: the header cannot be read \(field larger than .*; correct it"),
    ("label,a\n1,2\n1,٣\n", r"line 3, column 'a': '٣' is not a number; .* 0 to 9"),
    ("label,a\n1,−3\n", r"line 2, column 'a': '−3' is not a number; .* a minus"),
    ("label a b\n1 2 3\n", r"line 1: the header has one column, 'label a b'; separate columns by commas, tabs or"),
    ("label,a\n" + "1,2\n" * 20_000 + "1,\0\n", r"line 20002"),
]
BAD_BYTES = [
    ("x.svm", b"", r"x\.svm is empty; SVMlight/LETOR, CSV and TSV"),
    ("x.parquet", b"", r"x\.parquet is not a complete Parquet file"),
    ("x.svm", b"1 1:\x002\n", r"x\.svm is not text: byte 0x00 at offset 4"),
    ("x", bytes(range(256)) * 999, r"x is not text: byte 0x00 at offset 0; .* and Parquet are read"),
    ("x", b"hello world\n", r"x: cannot tell its format from 'hello world'; SVMlight/LETOR.*pass format="),
    ("x.csv", "label,a\n1,2\n".encode("utf-16"), r"x\.csv is UTF-16 text; save it as UTF-8"),
    ("x.csv", "label,a\n1,2\n1,é\n".encode("latin-1"), r"line 3: byte 0xe9 is not UTF-8"),
    ("x.npz", b"PK\x03\x04....", r"x\.npz is not text: byte 0x03 at offset 2; .* and Parquet are read"),
    ("x.csv", b"PAR1....", r"x\.csv is parquet, not text"),
    ("x.parquet.gz", gzip.compress(b"PAR1...."), r"is parquet, not text; unpack it"),
    ("x.svm.gz", gzip.compress(b"1 1:2\n" * 99)[:-9], r"x\.svm\.gz: the gzip data end too early; download"),
    ("x.svm.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff", r"x\.svm\.gz: the gzip data are damaged"),
    ("x.svm.gz", gzip.compress(bytes(9)), r"x\.svm\.gz is not text: byte 0x00 at offset 0"),
    ("x.pq", b"PAR1" + bytes(20) + b"\x10\0\0\0PAR1", r"x\.pq is not a complete Parquet file"),
    *(("x.svm", text.encode(), said) for text, said in BAD_SVMLIGHT),
    *(("x.csv", text.encode(), said) for text, said in BAD_CSV),
]


def refused(path: Path, said: str, **options: Any) -> None:
    """A file is refused in one short line that begins with its name."""
    with pytest.raises(ValueError, match=said) as caught:
        read_data(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < len(str(path)) + 250


@pytest.mark.parametrize(("name", "content", "said"), BAD_BYTES, ids=lambda part: part if type(part) is str else "")
def test_bad_files_are_refused_in_one_line_with_their_place(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, said)


def test_places_that_hold_no_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.svm: no such file; check the name"):
        read_data(tmp_path / "absent.svm")
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it"):
        read_data(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(ValueError, match=r"/dev/zero is neither a file nor a pipe"):
            read_data("/dev/zero")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    for name, start in (("x.svm", b"1 1:2\n1 1:"), ("y.csv", b"label,a\n1,")):
        (tmp_path / name).write_bytes(start + b"1" * (1 << 21))
        refused(tmp_path / name, rf"{name}, line 2: longer than 1 MB")


BLANK = [("svm", unit) for unit in (b"\n", b" \r\n", b"\t\n", b"#\n", b" # c\n")] + [("csv", b"\n"), ("csv", b" \r\n")]
ROWS = {"svm": (b"", b"1 1:2\n", b"0 1:3\n", b"0 1:x\n"), "csv": (b"label,a\n", b"1,2\n", b"0,3\n", b"0,x\n")}


@pytest.mark.parametrize(("suffix", "unit"), BLANK)
def test_blank_lines_and_comments_are_counted(suffix: str, unit: bytes, tmp_path: Path) -> None:
    path, n, (head, first, second, bad) = tmp_path / f"x.{suffix}", 2000, ROWS[suffix]
    content = unit * 3 + head + first + unit * n + second + unit
    path.write_bytes(content)
    assert read_data(path).X.ravel().tolist() == [2.0, 3.0]
    path.write_bytes(content + bad)
    refused(path, rf"line {3 + bool(head) + n + 4}[,:]")


def test_small_files_of_huge_data_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FREE", 10**5)
    (tmp_path / "x.svm.gz").write_bytes(gzip.compress(b"0 1:0\n" * 200_000))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"label,a\n" + b" " * 10**6 + b"\n"))
    (tmp_path / "x.svm").write_text("0 1:1\n1 2147483646:1\n")
    pd.DataFrame({"label": np.zeros(200_000), "a": np.zeros(200_000)}).to_parquet(tmp_path / "x.parquet")
    for name, remedy in {
        "x.svm.gz": "if you trust it, unpack it first",
        "x.csv.gz": "if you trust it, unpack it first",
        "x.svm": "number the features from 1, not to 2147483646",
        "x.parquet": "write it again, without compression",
    }.items():
        refused(tmp_path / name, rf"{name} has [\d,]+ bytes, but would take [\d,]+ in memory; {remedy}")
    monkeypatch.setattr(files, "FREE", 10**9)
    assert all(len(read_data(tmp_path / name).X) == 200_000 for name in ("x.svm.gz", "x.parquet"))


# Options


def test_data_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("# c\n1 1:2\n1 1:1 4:3\n")
    refused(path, r"line 3: feature 4, but the model's are 1 to 3; use data", n_features=3)
    refused(path, r"line 3: feature 4, but the model's are 0 to 3", n_features=4, first_index=0)
    refused(path, r"line 3: feature 4, but the model's are 1 to 2", feature_names=["a", "b"])
    path.write_text("1 1:2\n1 0:1 4:3\n")
    refused(path, r"line 2: index 0, but indices start from 1 here", first_index=1)
    for option in ({"label": "y"}, {"query": "q"}, {"ignore": ["id"]}):
        refused(path, r"label=, query= and ignore= name columns, but svmlight data have none; leave them out", **option)


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"format": "xlsx"}, r"unknown format='xlsx'; use one of 'svmlight', 'csv', 'parquet'"),
    ({"format": LONG}, r"unknown format='9{40}'…; use one of"),
    ({"n_features": 0}, r"n_features must be at least 1, got 0"),
    ({"n_features": 2.0}, r"n_features must be an integer, got float"),
    ({"first_index": 2}, r"first_index must be 0 or 1, got 2"),
    ({"first_index": True}, r"first_index must be 0 or 1, got True"),
    ({"first_index": 10**4000}, r"first_index must be 0 or 1, got 10{39}…"),
    ({"first_index": 10**5000}, r"first_index must be 0 or 1, got a very long int"),
    ({"feature_names": ["a", "a"]}, r"feature_names: two columns have the name 'a'"),
    ({"feature_names": ["a"], "n_features": 2}, r"n_features is 2, but feature_names has 1"),
    ({"ignore": "id"}, r"ignore must be a sequence of column names, got 'id'; write \['id'\]"),
]


@pytest.mark.parametrize(("options", "said"), BAD_OPTIONS, ids=lambda part: part if type(part) is str else "")
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        read_data("absent.csv", **options)


ABSENT = r"no column 'gone', asked for by {}=; the columns are 'id', 'a', "
BAD_COLUMNS: list[tuple[dict[str, Any], str]] = [
    ({"label": "gone"}, ABSENT.format("label")),
    ({"query": "gone"}, ABSENT.format("query")),
    ({"label": LONG}, r"no column '9{40}'…, asked for by label="),
    ({"ignore": ["id", "gone"]}, ABSENT.format("ignore")),
    ({"label": "a", "query": "a"}, r"column 'a' cannot be both the label and the query"),
    ({"ignore": ["label"]}, r"column 'label' is the label and cannot be ignored as well"),
    ({"ignore": ["search"], "query": "search"}, r"column 'search' is the query and cannot be ignored"),
    ({"ignore": ["id", "a", "search", "b"]}, r"holds no features"),
    ({"ignore": ["id", "a", "search"], "feature_names": ["b", "a"]}, r"no column 'a'; the data must have every"),
    ({"ignore": ["id", "search"], "feature_names": ["b"]}, r"the model has no feature 'a'; remove it, or name it with"),
    ({"query": "search"}, r"column 'id': .*name (it|the column) with ignore="),
]


@pytest.mark.parametrize(("options", "said"), BAD_COLUMNS, ids=lambda part: part if type(part) is str else "")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_cannot_be_what_is_asked_are_refused(
    suffix: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{suffix}"
    frame = pd.DataFrame({"id": ["u", "v"], "a": [0.5, 1.5], "label": [1, 0], "search": ["q", "r"], "b": [2, 3]})
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    refused(path, said, **options)


# Parquet

BAD_FRAMES: list[tuple[dict[str, Any], str]] = [
    ({"label": [1, 0], "a": [1.0, None]}, r"row 2, column 'a': missing; fill it in, or remove the row"),
    ({"label": [1, None], "a": [1.0, 2]}, r"row 2, column 'label': missing"),
    ({"label": [1, 0], "qid": ["u", None], "a": [1, 2]}, r"row 2, column 'qid': missing"),
    ({"label": [1, 0], "a": [1.0, np.inf]}, r"row 2, column 'a': inf is not finite"),
    ({"label": [-np.inf, 0], "a": [1, 2]}, r"row 1, column 'label': -inf is not finite"),
    ({"label": [1, 0], "a": ["u", "v"]}, r"column 'a': its type is .*string; convert it to numbers, or name it with"),
    ({"label": [1, 0], "a": pd.to_datetime(["2020-01-01"] * 2)}, r"column 'a': its type is timestamp"),
    ({"label": [1, 0], "qid": [0.5, 1], "a": [1, 2]}, r"column 'qid': its type is double; queries must be"),
    ({"label": [], "a": []}, r"x\.parquet holds no samples"),
    ({"label": [1, 0]}, r"x\.parquet holds no features"),
    ({"label": [1, 0], "y": [1, 0]}, r"could each be the label"),
]


@pytest.mark.parametrize(("frame", "said"), BAD_FRAMES, ids=lambda part: part if type(part) is str else "")
def test_bad_parquet_columns_are_refused(frame: dict[str, Any], said: str, tmp_path: Path) -> None:
    pd.DataFrame(frame).to_parquet(tmp_path / "x.parquet", index=False)
    refused(tmp_path / "x.parquet", said)


def test_parquet_indices_of_pandas_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [1, 0], "a": [1, 2]}, index=pd.Index(["k", "l"]))
    frame.to_parquet(tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", r"column '__index_level_0__' is an index of pandas; pass index=False")


def test_damaged_parquet_pages_are_refused(tmp_path: Path) -> None:
    path, X = tmp_path / "x.parquet", np.array([[np.pi], [np.e], [2**0.5]])
    write_samples(path, X, [1, 0, 1])
    content = path.read_bytes()
    assert X[1].tobytes() in content
    path.write_bytes(content.replace(X[1].tobytes(), np.array([0.5]).tobytes()))
    refused(path, r"x\.parquet is not a complete Parquet file .*; write it again")


def test_damaged_parquet_without_checksums_is_refused_or_read(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"label": np.arange(40) % 2, "qid": [f"q{k // 9}" for k in range(40)], "a": np.ones(40)})
    frame.to_parquet(path, index=False, compression=None, store_schema=False)
    content = path.read_bytes()
    for at in rng.integers(0, len(content), 500):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :])
        try:
            found, said = read_data(path), ""
        except ValueError as error:
            said = str(error)
        assert said.startswith(str(path)) or len(found.X) == len(found.y) == 40


# Anything

NAMES = ("x", "x.svm", "x.csv", "x.parquet", "x.svm.gz")
TOKENS = st.sampled_from(
    [part.encode() for part in ("1", "0", "qid:1", "qid:2", "1:0.5", "2:1", "nan", *':#,\t"\n ', "label", "a")]
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.one_of(
        st.binary(max_size=200), st.lists(TOKENS, max_size=30).map(b"".join), st.text(max_size=99).map(str.encode)
    ),
    st.sampled_from([b"", b"PAR1", b"\x1f\x8b\x08\x00", b"label,a\n", b"1 1:2\n"]),
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


def test_quotations_are_cut() -> None:
    assert shown("a" * 40) == repr("a" * 40)
    assert shown("a" * 41) == repr("a" * 40) + "…"
    assert shown(b"\xff\n") == repr("\ufffd\n")
    assert shown(list(range(100))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1…"
    assert shown(10**5000) == "a very long int"
    assert shorten(f"no '{'x' * 60}' in 'y'") == f"no '{'x' * 40}'… in 'y'"
    assert len(message_of(ValueError("word " * 1000))) < 200
    assert message_of(KeyError()) == "KeyError"
