"""Files that unpack to far more than they hold are refused before they are unpacked; errors quote little of a file."""

from __future__ import annotations

import gzip
import io
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankwise.cli.main import main
from rankwise.io import files, read_data, write_data
from rankwise.io.files import Source, TooLargeError, as_bytes, size_of
from rankwise.io.quoting import message_of, shorten, shown

MB = 10**6


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a file might unpack to 2 MB, or 100 times its size."""
    monkeypatch.setattr(files, "FLOOR", 2 * MB)


def npz_of_zeros(path: Path, dtype: Any, shape: tuple[int, int]) -> int:
    """An archive whose X is zeros, a thousandth of it in size; the size that it unpacks to."""
    whole = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, (0, 0))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(whole))
        for _ in range(shape[0]):
            member.write(bytes(whole.dtype.itemsize * shape[1]))
    return whole.nbytes


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("dtype", "taken"), [("<f8", 8), ("<f4", 4), ("|b1", 9), ("<i4", 12), (">f8", 16)])
def test_an_npz_bomb_is_refused_before_it_is_unpacked(
    dtype: str, taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankwise.io import npz

    monkeypatch.setattr(npz, "read_npy", lambda *_: pytest.fail("it was unpacked"))
    path = tmp_path / "x.npz"
    npz_of_zeros(path, dtype, (1000, 5000))
    said = rf"x\.npz has [\d.]+ kB and would take {5 * taken} MB in memory; the default limit is [\d.]+ MB; pass "
    with pytest.raises(TooLargeError, match=said):
        read_data(path, require_labels=False)
    with pytest.raises(TooLargeError, match=r"max_memory= allows 3 MB; raise it if you trust the file"):
        read_data(path, require_labels=False, max_memory="3MB")


def test_a_real_npz_bomb_is_refused_by_default(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    assert npz_of_zeros(path, "|b1", (1500, 100_000)) < 2 * 10**8  # of booleans, which become floats
    assert path.stat().st_size < MB
    began = time.perf_counter()
    with pytest.raises(TooLargeError, match=r"take 1\.35 GB in memory; the default limit is 1 GB; pass max_memory"):
        read_data(path, require_labels=False)
    assert time.perf_counter() - began < 5.0


@pytest.mark.usefixtures("small")
def test_a_parquet_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import ParquetFile, write_table

    path = tmp_path / "x.parquet"
    columns = {name: np.zeros(100_000) for name in ("label", "a", "b", "c")}
    write_table(pyarrow.table(columns), path, compression="zstd")
    assert path.stat().st_size < 20_000
    said = r"x\.parquet has .* kB and would take 6\.4 MB in memory; the default limit is 2 MB; pass max_memory"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParquetFile, "read", lambda *_, **__: pytest.fail("it was unpacked"))
        with pytest.raises(TooLargeError, match=said):
            read_data(path)
    assert read_data(path, max_memory="7MB").X.shape == (100_000, 3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_long_query_is_not_repeated_on_every_row(suffix: str, tmp_path: Path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"x.{suffix}"
    qid = np.array(["a" * 20_000, *(["b"] * 1999)], dtype=object)
    if suffix == "csv":
        path.write_text("label,qid,f\n" + "".join(f"{k % 2},{query},1\n" for k, query in enumerate(qid)))
    else:
        import pyarrow
        from pyarrow.parquet import write_table

        columns = {"label": np.arange(2000.0) % 2, "qid": qid, "f": np.ones(2000)}
        write_table(pyarrow.table(columns), path, row_group_size=500)
    with pytest.raises(TooLargeError, match=r"would take 160 MB in memory"):
        read_data(path)
    found = read_data(path, max_memory="1GB").qid
    assert found is not None
    assert [len(query) for query in found[:2]] == [20_000, 1]


def test_ordinary_data_of_any_size_are_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FLOOR", 1)
    X, y = np.random.default_rng(0).normal(size=(500, 40)), np.arange(500) % 2
    for name in ("x.npz", "x.csv", "x.csv.gz", "x.svm", "x.svm.gz"):
        write_data(tmp_path / name, X, y)
        assert np.array_equal(read_data(tmp_path / name).X, X)


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    X, y = np.ones((2000, 10)), np.arange(2000) % 2
    for name in ("x.npz", "x.csv", "x.csv.gz", "x.svm", "x.svm.gz"):
        write_data(tmp_path / name, X, y)
        with pytest.raises(TooLargeError, match=rf"{name} has .*; max_memory= allows 30 kB; raise it if you trust"):
            read_data(tmp_path / name, max_memory=30_000)
        assert read_data(tmp_path / name, max_memory="1GB").X.shape == (2000, 10)


NO_MEMORY = """
import resource, sys
from rankwise.io import npz, read_data
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * 10**6, -1))
read_data(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_data_that_no_memory_is_left_for_are_refused_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.zeros((50_000, 1000)), y=np.zeros(50_000))
    command = [sys.executable, "-c", NO_MEMORY, str(tmp_path / "x.npz")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "x.npz takes more memory than is free; use fewer samples or features" in run.stderr.splitlines()[-1]


PACKED = {
    "newlines": ("csv", b"label,a\n", b"\n"),
    "newlines in SVMlight": ("svm", b"1 1:1\n", b"\n"),
    "spaces": ("csv", b"label,a\n", b" \r\n"),
    "comments": ("svm", b"1 1:1\n", b"#\n"),
    "tabs": ("svm", b"1 1:1\n", b"\t\n"),
    "rows": ("csv", b"label,a\n", b"0,0\n"),
    "samples": ("svm", b"", b"0 1:0\n"),
    "one line": ("csv", b"label,a\n", b"0"),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", PACKED)
def test_packed_text_that_unpacks_to_too_much_is_refused(kind: str, tmp_path: Path) -> None:
    suffix, head, unit = PACKED[kind]
    path = tmp_path / f"x.{suffix}.gz"
    path.write_bytes(gzip.compress(head + unit * (5 * MB // len(unit))))
    said = r"(unpacks to more than 2 MB|would take .* in memory); the default limit is 2 MB; pass max_memory="
    with pytest.raises(TooLargeError, match=said):
        read_data(path)


@pytest.mark.parametrize("unit", [b"\n", b" \r\n", b"\t\n", b"#\n", b" # c\n"])
@pytest.mark.parametrize("suffix", ["svm", "csv"])
def test_nothing_between_lines_is_counted(unit: bytes, suffix: str, tmp_path: Path) -> None:
    if suffix == "csv" and unit.strip(b" \r\n"):
        pytest.skip("a cell, in CSV")
    head, rows = (
        (b"", (b"1 1:2\n", b"0 1:3\n", b"0 1:x\n"))
        if suffix == "svm"
        else (b"label,a\n", (b"1,2\n", b"0,3\n", b"0,x\n"))
    )
    path, n = tmp_path / f"x.{suffix}", 2000
    path.write_bytes(unit * 3 + head + rows[0] + unit * n + rows[1] + unit)
    data = read_data(path)
    assert (data.X.ravel().tolist(), data.y.tolist()) == ([2.0, 3.0], [1.0, 0.0])  # type: ignore[union-attr]
    path.write_bytes(unit * 3 + head + rows[0] + unit * n + rows[1] + unit + rows[2])
    with pytest.raises(ValueError, match=rf"line {3 + bool(head) + n + 4}[,:]"):
        read_data(path)


def test_lines_may_end_in_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"label,a\r\r1,2\r0,3\r\n1,4\r")
    assert read_data(tmp_path / "x.csv").X.ravel().tolist() == [2.0, 3.0, 4.0]
    (tmp_path / "x.csv").write_bytes(b"label,a\r\r1,2\r0,x\r\n1,4\r")
    with pytest.raises(ValueError, match=r"line 4, column 'a': 'x' is not a number"):
        read_data(tmp_path / "x.csv")


@pytest.mark.kill
def test_ctrl_c_ends_the_reading_of_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"label,a\n") + gzip.compress(b"\n" * (1 << 24)) * 500)  # 8 GB of newlines
    code = "import sys; from rankwise.cli.main import main; print('ready', flush=True); sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "fit", str(path), "-o", str(tmp_path / "m.rw"), "--max-memory", "1TB"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(1.0)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert (process.returncode, said.splitlines()[-1]) == (130, "rankwise: interrupted")


@pytest.mark.usefixtures("small")
def test_a_pipe_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = (b"1 1:0.5\n" * len(buffer))[: len(buffer)]
            return len(buffer)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    with pytest.raises(ValueError, match=r"standard input has more than 3 MB; write it to a file, or pass max_memory="):
        read_data("-", max_memory="3MB")


def test_a_sparse_matrix_of_any_width_is_refused_if_no_model_of_it_would_fit(tmp_path: Path) -> None:
    (tmp_path / "x.svm").write_text("1 2147483646:1\n0 1:1\n")
    with pytest.raises(TooLargeError, match=r"x\.svm has 21 bytes and would take 17\.2 GB in memory"):
        read_data(tmp_path / "x.svm")
    np.savez(
        tmp_path / "x.npz",
        X_data=[1.0], X_indices=[5], X_indptr=[0, 1], X_shape=[1, 2**31 - 2], y=[1.0],
    )  # fmt: skip
    with pytest.raises(TooLargeError, match=r"would take 17\.2 GB in memory"):
        read_data(tmp_path / "x.npz")


@pytest.mark.usefixtures("small")
def test_the_command_line_names_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npz"
    npz_of_zeros(path, "<f8", (1000, 500))
    for option, said in (
        ([], "pass --max-memory '1GB' if you trust it"),
        (["--max-memory", "3.5 MB"], "--max-memory allows 3.5 MB; raise it"),
    ):
        assert main(["fit", str(path), "-o", str(tmp_path / "m.rw"), *option]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        main(["fit", str(path), "-o", "m.rw", "--max-memory", "much"])
    assert "'much' is not a size; use for example 8GB" in capsys.readouterr().err


def test_sizes_are_read_and_shown() -> None:
    sizes = {"8GB": 8 * 10**9, "8 gb": 8 * 10**9, "1.5k": 1500, "2GiB": 2 << 30, "7": 7, 7: 7, "1TB": 10**12}
    assert {size: as_bytes(size) for size in sizes} == sizes
    for wrong in ("", "GB", "-1", 0, -5, 1.5, True, "9" * 50, "0", None, "1e9"):
        with pytest.raises(ValueError, match="max_memory must be a size such as '8GB'"):
            as_bytes(wrong)  # type: ignore[arg-type]
    assert [size_of(n) for n in (5, 1500, 7_700_000_000, 10**16)] == ["5 bytes", "1.5 kB", "7.7 GB", "10,000 TB"]
    assert Source("x", bytes(10**8)).most == 10**10


# Quotations

LONG = "9" * 50_000
QUOTING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "csv cell too large": ("x.csv", f"label,a\n1,{LONG}\n", {}),
    "csv cell a word": ("x.csv", f"label,a\n1,{LONG}x\n", {}),
    "csv column": ("x.csv", f"label,{LONG}x,{LONG}x\n1,2,3\n", {}),
    "csv of pandas": ("x.csv", f"label,__index_level_{LONG}\n1,2\n", {}),
    "label and query": ("x.csv", f"{LONG}x,a\n1,2\n", {"label": LONG + "x", "query": LONG + "x"}),
    "label absent": ("x.csv", "label,a\n1,2\n", {"label": LONG}),
    "format": ("x.csv", "label,a\n1,2\n", {"format": LONG}),
    "n_features": ("x.csv", "label,a\n1,2\n", {"n_features": LONG}),
    "first_index": ("x.csv", "label,a\n1,2\n", {"first_index": 10**4000}),
    "first_index of very many digits": ("x.csv", "label,a\n1,2\n", {"first_index": 10**5000}),
    "max_memory": ("x.csv", "label,a\n1,2\n", {"max_memory": LONG}),
    "svmlight label": ("x.svm", f"{LONG}x 1:2\n", {}),
    "svmlight value": ("x.svm", f"1 1:{LONG}x\n", {}),
    "svmlight index": ("x.svm", f"1 {LONG}:1\n", {}),
    "svmlight qid": ("x.svm", f"1 qid:{LONG} 1:1\n", {}),
    "no format": ("x", f"{LONG}x\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", QUOTING)
def test_errors_quote_a_few_dozen_characters(kind: str, tmp_path: Path) -> None:
    name, content, options = QUOTING[kind]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=r"\w") as caught:
        read_data(tmp_path / name, **options)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_errors_of_archives_quote_a_few_dozen_characters(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a" * 60_000, b"")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",), }"
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    for name in ("x.npz", "y.npz"):
        with pytest.raises(ValueError, match=r"write it again with np\.savez") as caught:
            read_data(tmp_path / name)
        assert len(str(caught.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "x.csv", "-o", "m.rw", "--C", LONG + "x"],
        ["fit", "x.csv", "-o", "m.rw", "--seed", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--cv", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--loss", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--model", "rank-svm", "--scoring", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--metric", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--label", LONG],
        ["fit", "x.csv", "-o", "m.rw", "--relevant-from", LONG],
        ["fit", "x.csv", "-o", "m.rw", LONG],
        [LONG],
    ],
    ids=lambda arguments: " ".join(word[:10] for word in arguments[-2:]),
)
def test_the_command_line_repeats_a_few_dozen_characters_of_an_argument(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("label,a\n1,2\n0,3\n")
    try:
        status: Any = main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    said = capsys.readouterr().err
    assert status == 2
    assert said.count("\n") == 1
    assert len(said) < 500


def test_quotations_are_cut() -> None:
    assert shown("a" * 40) == repr("a" * 40)
    assert shown("a" * 41) == repr("a" * 40) + "…"
    assert shown(b"\xff\n") == repr("\ufffd\n")
    assert shown(list(range(100))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1…"
    assert shown(10**5000) == "a very long int"
    assert shorten(f"no '{'x' * 60}' in 'y'") == f"no '{'x' * 40}'… in 'y'"
    assert len(message_of(ValueError("word " * 1000))) < 200
    assert re.fullmatch("KeyError|.+", message_of(KeyError()))
