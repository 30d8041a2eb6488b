"""Arrays as NumPy stores them (.npy), read without trust: nothing is run, and no more allocated than is there.

Headers are NumPy's to read and to write. Content is read here: `numpy.lib.format.read_array` allocates what a header
claims before it sees whether it is there.
"""

from __future__ import annotations

import io
import math
import re
import struct
import tokenize
import zipfile
import zlib
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankwise.io.quoting import shown

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LONGEST_HEADER = 10_000
# What NumPy raises for a header that is no literal, or not that of an array; a warning may be made an error.
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError, Warning)
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
    """What goes before the bytes of an array in C order: format 1.0, as NumPy writes it."""
    header = io.BytesIO()
    npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(array))
    return header.getvalue()


class Stream(Protocol):
    """What an array is read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`."""


class _Start:
    """The start of a stream, counted, and no longer than that of an array is."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.n_read = 0

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER - self.n_read:
            raise ValueError("a header that is too long")
        content = self._stream.read(size)
        self.n_read += len(content)
        return content


class Npy(NamedTuple):
    """What the header of an array says."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool
    n_values: int


def read_header(stream: Stream, size: int) -> Npy:
    """The header of the array in the `size` bytes of a stream; ValueError says what is wrong with it."""
    start = _Start(stream)
    shape, by_columns, dtype = _parsed(start)
    if not _DTYPE.fullmatch(dtype.str):
        raise ValueError(f"an array of dtype {shown(dtype.str)}; numbers of up to 64 bits and strings are read")
    n_values = math.prod(shape)
    n_bytes = n_values * dtype.itemsize
    if len(shape) > 32 or any(not 0 <= extent < 2**62 for extent in shape) or size != start.n_read + n_bytes:
        raise ValueError(f"{size} bytes are not those of an array of {dtype} and shape {shown(shape)}")
    return Npy(dtype, shape, by_columns, n_values)


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


def _parsed(start: _Start) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran's order, and dtype; of one of the formats that NumPy writes for plain arrays."""
    try:
        read = _READERS[npy.read_magic(start)]
    except (ValueError, LookupError):
        raise ValueError("not an array of NumPy's format 1.0 or 2.0") from None
    try:
        return read(start, max_header_size=_LONGEST_HEADER)
    except _NO_HEADER:
        raise ValueError("not the header of a plain array") from None


def _check_content(content: NDArray[np.uint8], dtype: np.dtype[Any]) -> None:
    """Refuse bytes that are no boolean and no character."""
    if dtype.kind == "b" and content.max(initial=0) > 1:
        raise ValueError("booleans other than 0 and 1")
    if dtype.kind == "U" and content.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)).max(initial=0) > 0x10FFFF:
        raise ValueError("strings with no characters of Unicode")
