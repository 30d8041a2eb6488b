"""What a grade is worth: G(0) = 0, and no grade is worth less than a lower one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GAINS", "Gain", "as_gain", "gains_of"]

Gain = str | Callable[[Any], Any]
FloatArray = NDArray[np.float64]


def _exp2(y: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.where(y < 1.0, np.expm1(y * math.log(2.0)), np.exp2(y) - 1.0)


GAINS: dict[str, Callable[[FloatArray], FloatArray]] = {"exp2": _exp2, "linear": np.positive}


def as_gain(gain: Gain) -> Gain:
    """A gain, if it is known by name or a function."""
    if not callable(gain) and gain not in GAINS:
        names = " or ".join(map(repr, GAINS))
        raise ValueError(f"unknown gain {gain!r}; use {names}, or a function of the grade with G(0) = 0")
    return gain


def gains_of(gain: Gain, grades: FloatArray) -> FloatArray:
    """G(grade) of grades, (m,): "exp2" is 2^grade − 1, "linear" the grade itself.

    Raises `ValueError` where a gain is not finite or below 0, or G(0) is not 0.
    """
    values = GAINS[gain](grades) if isinstance(gain, str) else _by_function(gain, grades)
    for k in np.flatnonzero(~((values >= 0.0) & (values < np.inf)))[:1]:
        remedy = "use gain='linear', or lower the grades" if gain == "exp2" else "return finite numbers, at least 0"
        raise ValueError(f"the gain of grade {grades[k]:g} is {values[k]:g}; {remedy}")
    return values


def _by_function(gain: Callable[[Any], Any], grades: FloatArray) -> FloatArray:
    with_zero = np.append(grades, 0.0)
    try:
        values = np.asarray(gain(with_zero), dtype=np.float64)
    except (TypeError, ValueError):  # written for one number at a time
        values = np.empty(0)
    if values.shape != with_zero.shape:
        values = np.array([gain(float(grade)) for grade in with_zero], dtype=np.float64)
    if values[-1] != 0.0:
        raise ValueError(f"the gain of grade 0 is {values[-1]:g}; it must be 0")
    return values[:-1]
