"""The worth of a grade: G(0) = 0, and a higher grade is never worth less."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true

FloatArray = NDArray[np.float64]
Gain = Literal["exp2", "linear"] | Callable[[Any], Any]

# Below this, 2^y − 1 would lose digits.
_SMALL = 0.5


def as_gain(gain: Any) -> Gain:
    """Return the gain if it is a known name or a function."""
    if not callable(gain) and gain not in ("exp2", "linear"):
        raise ValueError(f"unknown gain {gain!r}; use 'exp2' or 'linear', or a function of the grade with G(0) = 0")
    known: Gain = gain
    return known


def gains_of(grades: FloatArray, gain: Gain) -> FloatArray:
    """Return G(grade), (n,): 2^y − 1 ("exp2"), y ("linear"), or the values of a function of the grade.

    Raise for a grade whose 2^y is beyond float64, and for a function that is not finite, falls, or is not 0 at 0.
    """
    if callable(gain):
        return _by_function(grades, gain)
    if gain == "linear":
        return grades
    with np.errstate(over="ignore"):
        gains = np.where(grades < _SMALL, np.expm1(grades * math.log(2.0)), np.exp2(grades) - 1.0)
    if (k := first_true(gains == np.inf)) is not None:
        raise ValueError(
            f"2^{grades[k]:g}, the gain of grade {grades[k]:g}, is beyond float64; pass gain='linear' (for a metric, "
            "as_metric('ndcg', gain='linear')), or bin the grades"
        )
    return gains


def _by_function(grades: FloatArray, gain: Callable[[Any], Any]) -> FloatArray:
    # 0 is added so that G(0) = 0 is checked in every call.
    distinct, which = np.unique(np.append(grades, 0.0), return_inverse=True)
    try:
        gains = evaluated(gain, distinct)
    except (TypeError, ValueError):
        raise ValueError("gain must take a grade or an array of grades, and return the same number of values") from None
    if not np.isfinite(gains).all() or gains[0] != 0.0 or (np.diff(gains) < 0.0).any():
        raise ValueError("gain must be finite, must be 0 for grade 0, and must not fall as grades rise")
    return np.asarray(gains[which.reshape(-1)[:-1]])


def evaluated(function: Callable[[Any], Any], numbers: FloatArray) -> FloatArray:
    """Return the values of a function at these numbers: in one call if it takes arrays, otherwise one by one."""
    with suppress(TypeError, ValueError):
        values = np.asarray(function(numbers.copy()), dtype=np.float64)
        if values.shape == numbers.shape:
            return values
    return np.array([function(float(number)) for number in numbers], dtype=np.float64)
