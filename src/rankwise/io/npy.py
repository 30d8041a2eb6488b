"""NumPy arrays (.npy) from files of others: nothing is executed, and no header is believed that the content belies.

NumPy reads and writes them. It would allocate what a header claims, so headers are compared with the content first.
"""

from __future__ import annotations

import io
import math
import re
import struct
import tokenize
import zipfile
import zlib
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankwise.io.quoting import shown

# Errors of NumPy for a header that is not a literal or not of an array; warnings may be turned into errors.
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError, Warning)
# Errors that damaged archives raise.
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


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return an array as NumPy writes it, in format 1.0."""
    file = io.BytesIO()
    npy.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


class Header(NamedTuple):
    """The header of an array."""

    dtype: np.dtype[Any]
    by_columns: bool
    n_values: int


def read_header(stream: IO[bytes], size: int) -> Header:
    """Return the header of the array in the `size` bytes of a stream; raise a ValueError if it does not match them."""
    try:
        if npy.read_magic(stream) != (1, 0):  # later formats are for records, and for headers without limit
            raise ValueError
    except ValueError:
        raise ValueError("not an array of NumPy's format 1.0") from None
    try:
        shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    except _NO_HEADER:
        raise ValueError("not the header of a plain array") from None
    if not _DTYPE.fullmatch(dtype.str):
        raise ValueError(f"an array of dtype {shown(dtype.str)}; only numbers of up to 64 bits and strings are read")
    n_values = math.prod(shape)
    n_bytes = n_values * dtype.itemsize
    if len(shape) > 32 or any(not 0 <= extent < 2**62 for extent in shape) or size != stream.tell() + n_bytes:
        raise ValueError(f"{size} bytes do not match an array of {dtype} and shape {shown(shape)}")
    return Header(dtype, by_columns, n_values)


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
