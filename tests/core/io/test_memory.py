"""Small files that unpack to huge ones are refused before they are unpacked."""

from __future__ import annotations

import gzip
import io
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import sklearn.datasets  # noqa: F401  # so that its import takes no memory of a test
from pyarrow.parquet import ParquetFile, write_table

from rankwise.cli.main import main
from rankwise.io import memory, read_data, write_data
from rankwise.io.memory import Limit, as_bytes, size_of

UNPACKED, MOST, FLOOR = 8_000_000, 4_000_000, 1_000_000


def npz_of_zeros(path: Path, dtype: str, n: int, how: int = zipfile.ZIP_DEFLATED) -> None:
    """An archive whose X is (n, 1000) zeros, a thousandth of it in size."""
    with zipfile.ZipFile(path, "w", how) as archive, archive.open("X.npy", "w") as member:
        header = {"descr": dtype, "fortran_order": False, "shape": (n, 1000)}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(n):
            member.write(np.zeros(1000, dtype).tobytes())


def parquet(path: Path, query: str, n: int) -> None:
    columns = {"label": np.zeros(n), "qid": [query] * n, "a": np.zeros(n), "b": np.zeros(n)}
    write_table(pyarrow.table(columns), path, compression="zstd")


def packed(path: Path, head: bytes, unit: bytes, n: int = UNPACKED) -> None:
    path.write_bytes(gzip.compress(head + unit * (n // len(unit))))


def read_little(file: ParquetFile, read: Any = ParquetFile.read, **options: Any) -> Any:
    """What pyarrow reads, whose memory tracemalloc does not see."""
    table = read(file, **options)
    assert table.nbytes < MOST
    return table


BOMBS: dict[str, tuple[str, Any, tuple[Any, ...], str]] = {
    "float64": ("x.npz", npz_of_zeros, ("<f8", 1000), "8 MB"),
    "float32": ("x.npz", npz_of_zeros, ("<f4", 2000), "8 MB"),
    "bool, which becomes float64": ("x.npz", npz_of_zeros, ("|b1", 8000), "72 MB"),
    "other byte order": ("x.npz", npz_of_zeros, (">f8", 1000), "16 MB"),
    "parquet": ("x.parquet", parquet, ("q", 200_000), "11.2 MB"),
    "a long query in parquet": ("x.parquet", parquet, ("q" * 1000, 8000), "32 MB"),
    "a long query": ("x.csv.gz", packed, (b"label,qid,a\n0," + b"q" * 9998 + b",0\n", b"0,q,0\n", 12_000), "80.1 MB"),
    "rows": ("x.csv.gz", packed, (b"label,a\n", b"0,0\n"), "more than .* MB"),
    "blank lines": ("x.csv.gz", packed, (b"label,a\n", b"        \r\n"), "more than .* MB"),
    "lone carriage returns": ("x.csv.gz", packed, (b"label,a\n", b"\r" * 9999 + b"\n"), "more than .* MB"),
    "samples": ("x.svm.gz", packed, (b"", b"0 1:0\n"), "more than .* MB"),
    "comments": ("x.svm.gz", packed, (b"1 1:1\n", b"# nothing\n"), "more than .* MB"),
    "blanks": ("x.svm.gz", packed, (b"1 1:1\n", b" " * 9999 + b"\n"), "more than .* MB"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_before_it_is_unpacked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FLOOR", FLOOR)
    name, write, content, needed = BOMBS[kind]
    path = tmp_path / name
    write(path, *content)
    monkeypatch.setattr(ParquetFile, "read", read_little)
    said = rf"{name} has .* and would take {needed} in memory.*; the default limit is .* MB; pass max_memory='1GB' if"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=said):
            read_data(path, require_labels=False)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match=r"max_memory= allows 400 kB; raise it if you trust the file"):
        read_data(path, require_labels=False, max_memory="400kB")


def test_the_limit_is_1_gb_or_100_times_the_size_or_what_is_asked(tmp_path: Path) -> None:
    assert [Limit("x", size).most for size in (0, 10**7, 10**8)] == [10**9, 10**9, 10**10]
    path = tmp_path / "x.npz"
    npz_of_zeros(path, "|b1", 150_000)  # 150 MB, and 1.2 GB as floats
    with pytest.raises(ValueError, match=r"take 1\.35 GB in memory; the default limit is 1 GB; pass max_memory='2GB'"):
        read_data(path, require_labels=False)
    npz_of_zeros(path, "<f8", 3)
    assert read_data(path, require_labels=False, max_memory=24_000).X.shape == (3, 1000)
    with pytest.raises(ValueError, match="would take 24 kB in memory; max_memory= allows 20 kB"):
        read_data(path, require_labels=False, max_memory="20 kB")
    npz_of_zeros(path, "<f8", 3, zipfile.ZIP_BZIP2)  # which unpacks whole blocks
    with pytest.raises(ValueError, match=r"array 'X': packed in another way than by NumPy; write it again"):
        read_data(path, require_labels=False)
    (tmp_path / "x.svm").write_text("0 1:1\n1 2147483646:1\n")
    with pytest.raises(
        ValueError, match=r"21 bytes and would take 17\.2 GB .* for the index 2147483646 of line 2; the"
    ):
        read_data(tmp_path / "x.svm")
    assert read_data(tmp_path / "x.svm", max_memory="18GB").X.shape == (2, 2147483646)


def test_ordinary_data_are_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FLOOR", 1)
    X, y = np.random.default_rng(0).normal(size=(500, 40)), np.arange(500) % 2
    for name in ("x.npz", "x.parquet", "x.csv", "x.csv.gz", "x.svm", "x.svm.gz"):
        write_data(tmp_path / name, X, y)
        assert np.array_equal(read_data(tmp_path / name).X, X)


@pytest.mark.parametrize(("asked", "most"), [(None, 2), ("3MB", 3)])
def test_a_long_pipe_is_refused(asked: str | None, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(b"1 1:0.5\n" * FLOOR)
    monkeypatch.setattr(memory, "FLOOR", 2 * FLOOR)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    with pytest.raises(
        ValueError, match=rf"standard input has more than {most} MB; write it to a file, or pass max_mem"
    ):
        read_data("-", max_memory=asked)
    assert stream.tell() < (most + 2) * FLOOR


def test_sizes_are_read_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"8GB": 8 * 10**9, "8 gb": 8 * 10**9, "1.5k": 1500, "2GiB": 2 << 30, "7": 7, 7: 7, "1TB": 10**12}
    assert {size: as_bytes(size) for size in sizes} == sizes
    for wrong in ("", "GB", "-1", 0, -5, 1.5, True, "9" * 50, "0", "1e9"):
        with pytest.raises(ValueError, match=r"max_memory must be a size such as '8GB', or a number .* got .{,50}$"):
            read_data("absent", max_memory=wrong)  # type: ignore[arg-type]
    assert [size_of(n) for n in (5, 1500, 7_700_000_000, 10**16)] == ["5 bytes", "1.5 kB", "7.7 GB", "10,000 TB"]
    npz_of_zeros(tmp_path / "x.npz", "<f8", 3)
    command = ["fit", str(tmp_path / "x.npz"), "-o", str(tmp_path / "m.rw"), "--max-memory"]
    assert main([*command, "3.5 kB"]) == 2
    assert "and would take 24 kB in memory; --max-memory allows 3.5 kB; raise it if" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*command, "much"])
    assert "'much' is not a size; use for example 8GB" in capsys.readouterr().err
