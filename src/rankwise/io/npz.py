"""NumPy's files: arrays (.npy), and archives (.npz) of X, y, qid and feature_names.

NumPy reads and writes them; nothing is unpickled. It would allocate what a header claims, so headers are compared with
the content first.
"""

from __future__ import annotations

import io
import math
import os
import re
import struct
import tokenize
import zipfile
import zlib
from dataclasses import replace
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import Dataset, Wanted, check_size, checked, choose_columns, described

_KNOWN = ("X", "y", "qid", "feature_names")
# Errors that damaged archives raise.
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError)
ARCHIVE_ERRORS = (*_DAMAGED, OSError, ValueError, OverflowError, RuntimeError)
# Errors of NumPy for a header that is not a literal or not of an array; warnings may be turned into errors.
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError, Warning)
# bool, integers and floats up to 8 bytes, and strings.
_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248]|U\d{1,7})")


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return an array as NumPy writes it, in format 1.0."""
    file = io.BytesIO()
    npy.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def read_header(stream: IO[bytes], size: int) -> tuple[np.dtype[Any], int]:
    """Return dtype and number of values of the array in `size` bytes; raise a ValueError if these do not match."""
    try:
        if npy.read_magic(stream) != (1, 0):  # later formats are for records, and for headers without limit
            raise ValueError
    except ValueError:
        raise ValueError("not an array of NumPy's format 1.0") from None
    try:
        shape, _, dtype = npy.read_array_header_1_0(stream)
    except _NO_HEADER:
        raise ValueError("not the header of a plain array") from None
    if not _DTYPE.fullmatch(dtype.str):
        raise ValueError(f"an array of dtype {shown(dtype.str)}; only numbers of up to 64 bits and strings are read")
    n = math.prod(shape)
    if (
        len(shape) > 32
        or any(k is True or not 0 <= k < 2**62 for k in shape)
        or size != stream.tell() + n * dtype.itemsize
    ):
        raise ValueError(f"{size} bytes do not match an array of {dtype} and shape {shown(shape)}")
    return dtype, n


def read_npy(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in the `size` bytes of a stream, in native byte order; raise a ValueError if it is wrong."""
    read_header(stream, size)
    stream.seek(0)
    array = npy.read_array(stream, allow_pickle=False)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    flat = array.ravel(order="K")
    if array.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("it has booleans other than 0 and 1")
    if array.dtype.kind == "U" and flat.size and flat.view(np.uint32).max(initial=0) > 0x10FFFF:
        raise ValueError("it has strings that are not valid Unicode")
    return array


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples from an archive."""
    arrays, name = _arrays(source), source.name
    if "X" not in arrays:
        raise ValueError(f"{name}: no array 'X'; store the samples as X")
    named = arrays.get("feature_names")
    if named is not None and (named.ndim != 1 or named.dtype.kind != "U"):
        raise ValueError(f"{name}: feature_names must be strings, got {described(named)}")
    names = None if named is None else named.tolist()
    data = checked(name, arrays["X"], arrays.get("y"), arrays.get("qid"), names, where=f"{name}: ")
    if data.y is None and wanted.require_labels:
        raise ValueError(f"{name}: no array 'y'; store the labels as y")
    n, d = data.X.shape
    if names is None or wanted.feature_names is None:
        check_size(name, n, d, wanted.width)
    if names is not None:
        plain = Wanted(feature_names=wanted.feature_names, require_labels=False)
        chosen = choose_columns(names, plain, f"{name}: feature_names").features
        if chosen != list(range(d)):
            return replace(data, X=data.X[:, chosen], feature_names=[names[k] for k in chosen])
    return data


def _arrays(source: Source) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive, whose headers are all looked at before an array is read."""
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
                with archive.open(info) as member:
                    dtype, n = read_header(member, info.file_size)
                as_it_is = dtype.kind == "U" or (dtype.kind == "f" and dtype.itemsize > 2 and dtype.isnative)
                needed += n * (dtype.itemsize + (0 if as_it_is else 8))  # others are copied, as floats
                members[key] = info
            key = ""
            source.limit.check(needed)
            for key, info in members.items():
                with archive.open(info) as member:
                    arrays[key] = read_npy(member, info.file_size)
                    member.read(1)  # compares the checksum at the end
    except ARCHIVE_ERRORS as error:
        where = f", array {shown(key)}" if key else ""
        raise ValueError(f"{source.name}{where}: {message_of(error)}; write it again with np.savez") from None
    return arrays


def _check_directory(stream: BinaryIO, n_members: int) -> None:
    """Refuse a directory with fewer members than it claims: a damaged length may hide one."""
    stream.seek(-22, os.SEEK_END)
    end = stream.read()
    if end[:4] != b"PK\x05\x06" or int.from_bytes(end[10:12], "little") != n_members:
        raise ValueError("the archive's directory is damaged")


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples, without compression."""
    names = None if data.feature_names is None else np.array(data.feature_names)
    arrays = {"X": data.X, "y": data.y, "qid": data.qid, "feature_names": names}
    np.savez(stream, **{key: array for key, array in arrays.items() if array is not None})
