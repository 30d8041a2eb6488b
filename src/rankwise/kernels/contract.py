"""What kernels are told: a loss as plain data, and a method by name. This imports no Numba."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

METHODS = (
    "auto", "bucketed", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti", "exhaustive",
)  # fmt: skip
# Methods that choose the fastest way themselves, and methods that do not need (C2).
FAST, WITHOUT_C2 = ("auto", "bucketed"), ("dynamic", "chakrabarti", "exhaustive")


class Tail(IntEnum):
    """Closed form of a discount beyond its table."""

    NONE = 0
    RECIPROCAL = 1  # 1/m
    LOG2 = 2  # 1/log2(1 + m)
    LINEAR = 3  # −m
    ZERO = 4  # 0: the discount is cut off


class LossTables(NamedTuple):
    """A loss as the kernels see it, as plain data.

    weight: w_1, w_2, …. discount: D(0), D(1), …. tail: the closed form beyond the table. per_pair: whether C = PN.
    """

    weight: FloatArray
    discount: FloatArray
    tail: int
    per_pair: bool


class AnyLoss(Protocol):
    """What kernels ask of a loss, which was checked before; see `rankwise.DiscountedLoss`."""

    def tables(self, n_pos: int, n: int) -> LossTables: ...

    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray: ...
