"""What samples are worth to a metric: grades, checked; the gains of grades; how likely a grade satisfies a reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array, check_known, check_length, first_true, is_number

FloatArray = NDArray[np.float64]
Gain = Literal["exp2", "linear"] | Callable[[FloatArray], Any]

GAINS = ("exp2", "linear")
# Below this, 2^y − 1 would lose digits.
_SMALL = 0.5


def as_grades(grades: ArrayLike, n: int, name: str = "grades", beside: str = "scores") -> FloatArray:
    """Grades (n,) as float64, booleans as 0 and 1; refused if not numbers, not finite, below 0, or not n of them."""
    array = as_array(grades, name)
    check_length(array, name, n, beside)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must be real numbers, or booleans, got dtype {array.dtype}; convert with np.asarray({name}, "
            f"dtype=float), or pass {name} == label"
        )
    if array.dtype == np.bool_:
        return array.astype(np.float64)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        array = array.astype(np.float64)
    if (k := first_true(~((array >= 0.0) & (array < np.inf)))) is not None:
        raise ValueError(
            f"{name}[{k}] is {array[k]}: {name} must be finite and at least 0; shift them, or pass booleans, which "
            "samples are relevant"
        )
    return array


def check_gain(gain: Any) -> None:
    """Refuse a gain that is neither a name nor a function."""
    if not callable(gain):
        check_known("gain", gain, GAINS)


def gains_of(grades: FloatArray, gain: Gain) -> FloatArray:
    """(n,) G(grade): 2^y − 1 ("exp2"), y ("linear"), or what a function of all grades (n,) returns.

    Refused: a grade whose 2^y is beyond float64; a function whose G is not finite, below 0, falling, or not 0 at 0.
    """
    if gain == "linear":
        return grades
    if callable(gain):
        return _by_function(grades, gain)
    with np.errstate(over="ignore"):
        gains = np.where(grades < _SMALL, np.expm1(grades * np.log(2.0)), np.exp2(grades) - 1.0)
    if (k := first_true(gains == np.inf)) is not None:
        raise ValueError(
            f"grades[{k}] is {grades[k]:g}, and 2^{grades[k]:g} is beyond float64; pass gain='linear' (for a metric by "
            "name: as_metric('ndcg', gain='linear')), or bin the grades"
        )
    return np.asarray(gains)


def _by_function(grades: FloatArray, gain: Callable[[FloatArray], Any]) -> FloatArray:
    # 0 is asked for, too, so that every call is checked to begin there.
    distinct, which = np.unique(np.append(grades, 0.0), return_inverse=True)
    gains = np.asarray(gain(distinct.copy()))
    if gains.shape != distinct.shape or gains.dtype.kind not in "fiu":
        raise ValueError(
            f"gain returned shape {gains.shape} and dtype {gains.dtype} for {distinct.size} grades; it must be a "
            "function of an array that returns as many numbers"
        )
    gains = gains.astype(np.float64)
    if not np.isfinite(gains).all() or gains[0] != 0.0 or (np.diff(gains) < 0.0).any():
        raise ValueError("gain must be finite, 0 for grade 0, and must not fall as grades rise")
    return np.asarray(gains[which.reshape(-1)[:-1]])


def check_max_grade(max_grade: Any) -> None:
    """Refuse a largest grade that is no positive number."""
    if not is_number(max_grade) or not 0.0 < max_grade < np.inf:
        raise ValueError(f"max_grade must be a positive number, the largest grade there can be, got {max_grade!r}")


def satisfaction(grades: FloatArray, max_grade: float | None) -> FloatArray:
    """(n,) R = (2^y − 1)/2^max_grade, how likely a sample ends the search; max_grade: the largest of these, if None."""
    largest = float(grades.max(initial=0.0)) if max_grade is None else float(max_grade)
    if (k := first_true(grades > largest)) is not None:
        raise ValueError(f"grades[{k}] is {grades[k]:g}, above max_grade={largest:g}; pass the largest grade there is")
    found = np.exp2(grades - largest) * -np.expm1(-grades * np.log(2.0))
    # A grade above 0 counts as relevant, however little it is worth.
    return np.where(grades > 0.0, np.maximum(found, np.finfo(np.float64).smallest_subnormal), 0.0)
