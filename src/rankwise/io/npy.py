"""Safe reading of NumPy arrays (.npy): nothing is executed, and no more memory is allocated than the file has bytes.

NumPy reads and writes the headers. The content is read here, because `numpy.lib.format.read_array` allocates what a
header claims before it checks whether the content exists.
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
# Errors of NumPy for a header that is not a literal or not of an array; warnings may be turned into errors.
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError, Warning)
_CHUNK = 1 << 20
# Errors that damaged archives raise, besides those of their arrays.
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
    """Return the bytes that precede an array in C order: format 1.0, as NumPy writes it."""
    header = io.BytesIO()
    npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(array))
    return header.getvalue()


class Stream(Protocol):
    """A stream that an array can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`."""


class _Start:
    """The start of a stream, counted, and limited to the longest header of an array."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.n_read = 0

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER - self.n_read:
            raise ValueError("the header is too long")
        content = self._stream.read(size)
        self.n_read += len(content)
        return content


class Npy(NamedTuple):
    """The contents of the header of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool
    n_values: int


def read_header(stream: Stream, size: int) -> Npy:
    """Return the header of the array in the `size` bytes of a stream; raise a ValueError if it is wrong."""
    start = _Start(stream)
    shape, by_columns, dtype = _parsed(start)
    if not _DTYPE.fullmatch(dtype.str):
        raise ValueError(f"an array of dtype {shown(dtype.str)}; only numbers of up to 64 bits and strings are read")
    n_values = math.prod(shape)
    n_bytes = n_values * dtype.itemsize
    if len(shape) > 32 or any(not 0 <= extent < 2**62 for extent in shape) or size != start.n_read + n_bytes:
        raise ValueError(f"{size} bytes do not match an array of {dtype} and shape {shown(shape)}")
    return Npy(dtype, shape, by_columns, n_values)


def read_npy(stream: Stream, size: int) -> NDArray[Any]:
    """Return the array in the `size` bytes of a stream, in native byte order; raise a ValueError if it is wrong."""
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
    """Return shape, whether in Fortran order, and dtype, in one of the formats that NumPy writes for plain arrays."""
    try:
        read = _READERS[npy.read_magic(start)]
    except (ValueError, LookupError):
        raise ValueError("not an array of NumPy's format 1.0 or 2.0") from None
    try:
        return read(start, max_header_size=_LONGEST_HEADER)
    except _NO_HEADER:
        raise ValueError("not the header of a plain array") from None


def _check_content(content: NDArray[np.uint8], dtype: np.dtype[Any]) -> None:
    """Refuse bytes that are not booleans or not characters."""
    if dtype.kind == "b" and content.max(initial=0) > 1:
        raise ValueError("it has booleans other than 0 and 1")
    if dtype.kind == "U" and content.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)).max(initial=0) > 0x10FFFF:
        raise ValueError("it has strings that are not valid Unicode")
