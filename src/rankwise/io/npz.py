"""NPZ archives: arrays X, y, qid and feature_names; a sparse X as X_data, X_indices, X_indptr and X_shape."""

from __future__ import annotations

import os
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankwise.io.memory import TooLargeError
from rankwise.io.npy import ARCHIVE_ERRORS, Header, read_header, read_npy
from rankwise.io.quoting import message_of, shown
from rankwise.io.sources import Source
from rankwise.io.tables import Dataset, Wanted, as_float, check_size, choose_columns, find_not_finite

_SPARSE = ("X_data", "X_indices", "X_indptr", "X_shape")
_KNOWN = ("X", *_SPARSE, "y", "qid", "feature_names")
# Deflate compresses by a factor of at most 1,032: a larger claimed size is false.
_MOST_PACKED = 1040


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples. No pickled object is ever loaded."""
    arrays = _arrays(source)
    name = source.name
    X = _matrix(name, arrays)
    n, d = X.shape
    check_size(name, n, d, Wanted())
    source.limit.check(8 * d)  # the coefficients of a model: a sparse X may have any width
    y = arrays.get("y")
    if y is None and wanted.require_labels:
        raise ValueError(f"{name}: no array 'y'; store the labels as y")
    for key in ("y", "qid"):
        if key in arrays and arrays[key].shape != (n,):
            raise ValueError(
                f"{name}: X has {n} rows but {key} has shape {shown(arrays[key].shape)}; their lengths must agree"
            )
    if found := find_not_finite(X):
        raise ValueError(f"{name}: X[{found[0]}, {found[1]}] is {found[2]}; remove or replace it")
    if y is not None:
        y = _numbers(name, "y", y).astype(np.float64)
        if found := find_not_finite(y[:, None]):
            raise ValueError(f"{name}: y[{found[0]}] is {found[2]}; give every sample a finite label")
    qid = arrays.get("qid")
    if qid is not None and qid.dtype.kind not in "iuU":
        raise ValueError(f"{name}: qid has dtype {qid.dtype}; queries must be whole numbers or strings")
    names = _names(name, arrays, d)
    if names is None or wanted.feature_names is None:
        check_size(name, n, d, wanted)
    if names is not None:
        plain = Wanted(feature_names=wanted.feature_names, require_labels=False)
        chosen = choose_columns(names, plain, f"{name}: feature_names").features
        if chosen != list(range(d)):
            X, names = X[:, chosen], [names[k] for k in chosen]
    return Dataset(X, y, qid, names, None, name)


def _arrays(source: Source) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    members: dict[str, zipfile.ZipInfo] = {}
    key, needed = "", 0
    try:
        with source.raw() as stream, zipfile.ZipFile(stream) as archive:
            _check_directory(stream, len(archive.infolist()))
            for info in archive.infolist():
                key = info.filename.removesuffix(".npy")
                if key not in _KNOWN or key in members:
                    raise ValueError(f"unknown or duplicate; an archive of samples may hold {', '.join(_KNOWN)}")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("packed in another way than by NumPy")
                if info.file_size > _MOST_PACKED * (info.compress_size + 1):
                    raise ValueError("its stated size is impossible")
                with archive.open(info) as member:
                    needed += _memory(key, read_header(member, info.file_size))
                members[key] = info
            key = ""
            source.limit.check(needed)
            for key, info in members.items():
                with archive.open(info) as member:
                    arrays[key] = read_npy(member, info.file_size)
                    member.read(1)  # compares the checksum at the end
    except TooLargeError:
        raise
    except ARCHIVE_ERRORS as error:
        where = f", array {shown(key)}" if key else ""
        raise ValueError(f"{source.name}{where}: {message_of(error)}; write it again with np.savez") from None
    return arrays


def _memory(key: str, header: Header) -> int:
    """Return the bytes that an array takes, including the copy as floats that some need."""
    dtype, by_columns, n = header
    floats = 0 if key not in ("X", "X_data", "y") else n * (4 if dtype.kind == "f" and dtype.itemsize <= 4 else 8)
    copied = key == "y" or by_columns or dtype.kind != "f" or dtype.itemsize < 4 or not dtype.isnative
    return n * dtype.itemsize + floats * copied


def _check_directory(stream: BinaryIO, n_members: int) -> None:
    """Refuse a directory with fewer members than it claims: a damaged length may hide one."""
    stream.seek(-22, os.SEEK_END)
    end = stream.read()
    if end[:4] != b"PK\x05\x06" or int.from_bytes(end[10:12], "little") != n_members:
        raise ValueError("the archive's directory is damaged")


def _numbers(name: str, key: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: {key} has dtype {array.dtype}; it must hold numbers")
    return as_float(array)


def _matrix(name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if "X" in arrays:
        if arrays["X"].ndim != 2:
            raise ValueError(f"{name}: X has shape {shown(arrays['X'].shape)}; it must be two-dimensional")
        return _numbers(name, "X", arrays["X"])
    if missing := [key for key in _SPARSE if key not in arrays]:
        raise ValueError(f"{name}: no array 'X', and no {', '.join(missing)}; store the samples as X")
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[key] for key in _SPARSE)
    if shape.shape != (2,) or any(part.dtype.kind not in "iu" for part in (indices, indptr, shape)):
        raise ValueError(f"{name}: X_indices, X_indptr and X_shape (two numbers) must be whole numbers")
    try:
        X = csr_array((_numbers(name, "X_data", data), indices, indptr), shape=tuple(map(int, shape)))
        X.check_format(full_check=True)
        X.sum_duplicates()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(
            f"{name}: X_data, X_indices, X_indptr and X_shape make no CSR matrix: {message_of(error)}"
        ) from None
    return X


def _names(name: str, arrays: dict[str, NDArray[Any]], d: int) -> list[str] | None:
    names = arrays.get("feature_names")
    if names is None:
        return None
    if names.dtype.kind != "U" or names.shape != (d,):
        raise ValueError(f"{name}: feature_names must be {d} strings, got {names.dtype} of shape {shown(names.shape)}")
    return [str(part) for part in names]


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples, without compression."""
    if isinstance(data.X, np.ndarray):
        arrays = {"X": data.X}
    else:
        arrays = dict(zip(_SPARSE, (data.X.data, data.X.indices, data.X.indptr, np.array(data.X.shape)), strict=True))
    if data.y is not None:
        arrays["y"] = data.y
    if data.qid is not None:
        arrays["qid"] = data.qid
    if data.feature_names is not None:
        arrays["feature_names"] = np.array(data.feature_names)
    np.savez(stream, **arrays)  # type: ignore[arg-type]
