"""Arrays in NPZ: what is missing, wrong, damaged or claims too much is refused by name."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankwise.io import read_data
from rankwise.io.npz import read_npy

CSR = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
}
BAD_NPZ: dict[str, tuple[dict[str, Any], str]] = {
    "objects": (
        {"X": np.array([[None]])},
        r"array 'X': an array of dtype '\|O'; only numbers of up to 64 bits and strings",
    ),
    "structured": ({"X": np.zeros(2, "f8,f8")}, r"array 'X': an array of dtype '\|V16'"),
    "complex": ({"X": np.zeros((2, 2), complex)}, r"array 'X': an array of dtype '<c16'"),
    "strings": ({"X": np.array([["a"]])}, r"X must be a two-dimensional array of numbers, got <U1 of shape"),
    "a vector": ({"X": np.zeros(2)}, r"X must be a two-dimensional array of numbers, got float64 of shape \(2,\)"),
    "no X": ({"y": np.zeros(2)}, r"no array 'X', and no X_data, X_indices, X_indptr, X_shape; store the samples as X"),
    "nan": ({"X": np.array([[1, 2], [3, np.nan]]), "y": np.zeros(2)}, r"X\[1, 1\] is nan; remove or replace it"),
    "y too short": (
        {"X": np.eye(2), "y": np.zeros(1)},
        r"y must be 2 numbers, one per row of X, got float64 of shape \(1,\)",
    ),
    "y inf": ({"X": np.eye(2), "y": np.array([0, np.inf])}, r"y\[1\] is inf; give every sample a finite label"),
    "y strings": ({"X": np.eye(2), "y": np.array(["a", "b"])}, r"y must be 2 numbers, one per row of X, got <U1"),
    "qid too long": (
        {"X": np.eye(2), "y": np.zeros(2), "qid": np.zeros(3, int)},
        r"qid must be 2 whole numbers or strings, got int64 of shape \(3,\)",
    ),
    "qid floats": (
        {"X": np.eye(2), "y": np.zeros(2), "qid": np.zeros(2)},
        r"qid must be 2 whole numbers or strings, got float64",
    ),
    "few names": (
        {"X": np.eye(2), "y": np.zeros(2), "feature_names": np.array(["a"])},
        r"feature_names has 1 names but X has 2 columns",
    ),
    "numbers as names": (
        {"X": np.eye(2), "y": np.zeros(2), "feature_names": np.ones(2)},
        r"names must be strings, got",
    ),
    "unknown": ({"X": np.eye(2), "weights": np.zeros(2)}, r"array 'weights': unknown or duplicate; an archive of"),
    "no rows": ({"X": np.empty((0, 2)), "y": np.empty(0)}, r"x\.npz holds no samples"),
    "no columns": ({"X": np.empty((2, 0)), "y": np.zeros(2)}, r"x\.npz holds no features"),
    "csr nan": (CSR | {"X_data": np.array([1, np.nan]), "y": np.zeros(2)}, r"X\[1, 1\] is nan"),
    "csr column": (CSR | {"X_indices": np.array([0, 2])}, r"make no CSR matrix"),
    "csr negative": (CSR | {"X_indices": np.array([0, -1])}, r"make no CSR matrix"),
    "csr pointers": (CSR | {"X_indptr": np.array([0, 3, 2])}, r"make no CSR matrix"),
    "csr lengths": (CSR | {"X_data": np.ones(3)}, r"make no CSR matrix"),
    "csr floats": (CSR | {"X_indices": np.zeros(2)}, r"must be whole numbers"),
    "csr shape": (CSR | {"X_shape": np.array([2])}, r"X_shape \(two numbers\) must be whole numbers"),
    "csr a matrix": (CSR | {"X_data": np.ones((2, 1))}, r"make no CSR matrix"),
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
    with pytest.raises(ValueError, match=r"array 'X': \d+ bytes do not match an array of float64"):
        read_data(path)
    # The directory lies as well.
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"array 'X': its stated size is impossible"):
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
    "below zero": (HEADER.replace("(2, 1)", "(-2, -1)"), "bytes do not match an array of float64"),
    "many axes": (HEADER.replace("(2, 1)", f"(2, {'1, ' * 40})"), "bytes do not match an array of float64"),
    "arrays of arrays": (HEADER.replace("<f8", "(2,)f8").replace("(2, 1)", "(1, 1)"), r"dtype '\|V16'"),
    "pointers": (HEADER.replace("<f8", "|O"), r"dtype '\|O'"),
}


def stored(header: str, version: int = 1) -> bytes:
    """Two numbers after a header, in NumPy's format 1.0 or 2.0."""
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + np.array([1.0, 2.0]).tobytes()


@pytest.mark.parametrize("kind", NO_HEADERS)
def test_headers_of_no_plain_array_are_refused(kind: str) -> None:
    good = stored(HEADER)
    assert read_npy(io.BytesIO(good), len(good)).tolist() == [[1.0], [2.0]]
    text, said = NO_HEADERS[kind]
    content = stored(text)
    with pytest.raises(ValueError, match=said):
        read_npy(io.BytesIO(content), len(content))


def test_a_format_whose_headers_have_any_length_is_not_read() -> None:
    content = stored(HEADER, version=2)
    with pytest.raises(ValueError, match=r"not an array of NumPy's format 1\.0"):
        read_npy(io.BytesIO(content), len(content))


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
