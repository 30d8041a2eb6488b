"""How likely a grade satisfies a reader, and what is the largest there is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.inputs import first_true, is_number

FloatArray = NDArray[np.float64]


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
