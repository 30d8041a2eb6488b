"""NPZ archives: arrays X, y, qid and feature_names; a sparse X as X_data, X_indices, X_indptr and X_shape."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankwise.io.memory import TooLargeError
from rankwise.io.npy import ARCHIVE_ERRORS, Header, read_header, read_npy
from rankwise.io.quoting import message_of, shown
from rankwise.io.sources import Source
from rankwise.io.tables import Dataset, Wanted, check_size, checked, choose_columns

_SPARSE = ("X_data", "X_indices", "X_indptr", "X_shape")
_KNOWN = ("X", *_SPARSE, "y", "qid", "feature_names")
# Deflate compresses by a factor of at most 1,032: a larger claimed size is false.
_MOST_PACKED = 1040


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples. No pickled object is ever loaded."""
    arrays = _arrays(source)
    name = source.name
    X = arrays["X"] if "X" in arrays else _sparse(name, arrays)
    if X.ndim == 2:
        source.limit.check(8 * X.shape[1])  # the coefficients of a model: a sparse X may have any width
    y, named = arrays.get("y"), arrays.get("feature_names")
    if named is not None and (named.ndim != 1 or named.dtype.kind != "U"):
        raise ValueError(f"{name}: feature_names must be strings, got {named.dtype} of shape {shown(named.shape)}")
    data = checked(name, X, y, arrays.get("qid"), None if named is None else named.tolist(), where=f"{name}: ")
    if y is None and wanted.require_labels:
        raise ValueError(f"{name}: no array 'y'; store the labels as y")
    n, d = data.X.shape
    names = data.feature_names
    if names is None or wanted.feature_names is None:
        check_size(name, n, d, wanted)
    if names is not None:
        plain = Wanted(feature_names=wanted.feature_names, require_labels=False)
        chosen = choose_columns(names, plain, f"{name}: feature_names").features
        if chosen != list(range(d)):
            return replace(data, X=data.X[:, chosen], feature_names=[names[k] for k in chosen])
    return data


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


def _sparse(name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if missing := [key for key in _SPARSE if key not in arrays]:
        raise ValueError(f"{name}: no array 'X', and no {', '.join(missing)}; store the samples as X")
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[key] for key in _SPARSE)
    if shape.shape != (2,) or any(part.dtype.kind not in "iu" for part in (indices, indptr, shape)):
        raise ValueError(f"{name}: X_indices, X_indptr and X_shape (two numbers) must be whole numbers")
    try:
        X = csr_array((data, indices, indptr), shape=tuple(map(int, shape)))
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"{name}: {', '.join(_SPARSE)} make no CSR matrix: {message_of(error)}") from None
    return X


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
