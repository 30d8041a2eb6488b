"""Arrays as NumPy stores them (.npy), read without trust: nothing is evaluated, and no more allocated than is there."""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.io.quoting import shown

_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    r"\{\s*'descr':\s*'([^']*)',\s*'fortran_order':\s*(True|False),\s*"
    r"'shape':\s*\(((?:[0-9]{1,19}, ?)*(?:[0-9]{1,19})?)\),?\s*\}\s*"
)
_LONGEST_HEADER = 10_000
_CHUNK = 1 << 20
# What damaged archives raise, besides what is wrong with an array.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RuntimeError,
)
# bool, integers and floats up to 8 bytes, and strings.
_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248]|U\d{1,7})")


def npy_header(array: NDArray[Any]) -> bytes:
    """What goes before the bytes of an array in C order: format 1.0, as NumPy writes it, padded to 64 bytes."""
    text = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return _MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text


class Stream(Protocol):
    """What an array is read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`."""


class Npy(NamedTuple):
    """What the header of an array says."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool
    n_values: int


def read_header(stream: Stream, size: int) -> Npy:
    """The header of the array in the `size` bytes of a stream; ValueError says what is wrong with it."""
    start = stream.read(8)
    if start[:6] != _MAGIC or len(start) < 8 or start[6] not in (1, 2):
        raise ValueError("not an array of NumPy's format 1.0 or 2.0")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    header = stream.read(length).decode("latin-1") if length <= _LONGEST_HEADER else ""
    found = _HEADER.fullmatch(header)
    if not found:
        raise ValueError("not the header of a plain array")
    if not _DTYPE.fullmatch(found[1]):
        raise ValueError(f"an array of dtype {shown(found[1])}; numbers of up to 64 bits and strings are read")
    dtype = np.dtype(found[1])
    shape = tuple(int(part) for part in found[3].split(",") if part.strip())
    n_values = math.prod(shape)
    n_bytes = n_values * dtype.itemsize
    if len(shape) > 32 or any(extent >= 2**62 for extent in shape) or size != 8 + width + length + n_bytes:
        raise ValueError(f"{size} bytes are not those of an array of {dtype} and shape {shown(shape)}")
    return Npy(dtype, shape, found[2] == "True", n_values)


def read_npy(stream: Stream, size: int) -> NDArray[Any]:
    """The array in the `size` bytes of a stream, in native order; ValueError says what is wrong with them."""
    dtype, shape, by_columns, n_values = read_header(stream, size)
    n_bytes = n_values * dtype.itemsize
    content = bytearray(n_bytes)
    view = memoryview(content)
    at = 0
    while chunk := stream.read(min(_CHUNK, n_bytes - at)):
        view[at : at + len(chunk)] = chunk
        at += len(chunk)
    if at < n_bytes:
        raise ValueError(f"{n_bytes - at} bytes are missing")
    _check_content(np.frombuffer(content, np.uint8), dtype)
    array = np.ndarray(shape, dtype, content, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _check_content(content: NDArray[np.uint8], dtype: np.dtype[Any]) -> None:
    """Refuse bytes that are no boolean and no character."""
    if dtype.kind == "b" and content.max(initial=0) > 1:
        raise ValueError("booleans other than 0 and 1")
    if dtype.kind == "U" and content.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)).max(initial=0) > 0x10FFFF:
        raise ValueError("strings with no characters of Unicode")
