"""float16 and float32: NumPy's conversion of tiny numbers takes twenty times as long as a whole call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel

# The least normal float16, and a number whose neighbours are as far apart as float16 below that.
_NORMAL, _HALF = np.float32(2.0**-14), np.float32(0.5)


def to_half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    """Values between −65,504 and 65,504 as float16, rounded to the nearest, of two to the even one."""
    bits = np.empty(values.shape, np.uint16)
    half_bits(values, bits)
    return bits.view(np.float16)


def from_half(values: NDArray[np.float16]) -> NDArray[np.float32]:
    """float16 values, (n,), as float32."""
    result = np.empty(values.shape, np.float32)
    single_bits(np.ascontiguousarray(values).view(np.uint16), result)
    return result


@kernel
def single_bits(bits, result):
    """float16 numbers, given by their bits, as float32."""
    for k in range(bits.shape[0]):
        word = np.uint32(bits[k])
        size = word & np.uint32(0x7FFF)
        tiny = np.float32(size) * np.float32(2.0**-24)
        normal = np.uint32((size << np.uint32(13)) + np.uint32(112 << 23)).view(np.float32)
        huge = np.uint32((size << np.uint32(13)) | np.uint32(0x7F80_0000)).view(np.float32)  # infinite, or none at all
        value = tiny if size < np.uint32(0x400) else normal if size < np.uint32(0x7C00) else huge
        result[k] = -value if word != size else value


@kernel
def half_bits(values, bits):
    """The bits of float16 numbers: of tiny ones by an addition that rounds them, of others by rounding the mantissa."""
    for k in range(values.shape[0]):
        size = abs(values[k])
        word = np.float32(size).view(np.uint32)
        tiny = np.float32(size + _HALF).view(np.uint32) - np.float32(_HALF).view(np.uint32)
        rounded = word + np.uint32(0xFFF) + ((word >> np.uint32(13)) & np.uint32(1))
        normal = (rounded >> np.uint32(13)) - np.uint32(112 << 10)
        sign = (np.float32(values[k]).view(np.uint32) >> np.uint32(16)) & np.uint32(0x8000)
        bits[k] = np.uint16(sign | (tiny if size < _NORMAL else normal))


@kernel
def widen(values, result):
    """float32 as float64; NumPy would warn of a signalling NaN, and to keep it quiet takes longer than to convert."""
    for k in range(values.shape[0]):
        result[k] = values[k]
