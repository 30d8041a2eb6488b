"""The probability that a grade satisfies a reader, and the largest possible grade."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.inputs import first_true, is_number

FloatArray = NDArray[np.float64]


def check_max_grade(max_grade: Any) -> None:
    """Refuse a largest grade that is not a positive number."""
    if not is_number(max_grade) or not 0.0 < max_grade < np.inf:
        raise ValueError(f"max_grade must be a positive number, the largest possible grade, got {max_grade!r}")


def satisfaction(grades: FloatArray, max_grade: float | None) -> FloatArray:
    """Return R = (2^y − 1)/2^max_grade, (n,), the probability of stopping; max_grade None: the largest given."""
    largest = float(grades.max(initial=0.0)) if max_grade is None else float(max_grade)
    if (k := first_true(grades > largest)) is not None:
        raise ValueError(f"grades[{k}] is {grades[k]:g}, above max_grade={largest:g}; pass the largest possible grade")
    found = np.exp2(grades - largest) * -np.expm1(-grades * np.log(2.0))
    # A grade above 0 counts as relevant even if its worth underflows.
    return np.where(grades > 0.0, np.maximum(found, np.finfo(np.float64).smallest_subnormal), 0.0)
