"""Checks of every input, in one place: errors say what is wrong, where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# For packages that extend rankwise.
__all__ = [
    "NotFiniteError", "as_array", "as_scale", "check_known", "check_whole", "first_true", "is_number",
    "is_whole",
]  # fmt: skip

EMPTY = ("zero", "skip", "error")
# Methods that also take a negative scale.
SIGNED_METHODS = ("dynamic", "exhaustive")
_LARGEST = 1 << 32
_NATIVE = (np.dtype(np.float32), np.dtype(np.float64))
# Beyond these limits, differences of scores may overflow.
_LIMIT = {np.dtype(np.float32): float(np.finfo(np.float32).max), np.dtype(np.float64): 1e300}


class NotFiniteError(ValueError):
    """Error for a score that is not finite, or too large to compare.

    See Also
    --------
    Surrogate : A surrogate of your own raises it for such scores.

    Examples
    --------
    >>> import rankwise as rw
    >>> try:
    ...     rw.structured_hinge([1.0, float("nan")], [True, False])
    ... except rw.NotFiniteError as error:
    ...     print(error)
    scores[1] is nan: not finite; remove or mask it
    """


def limit_of(scores: NDArray[np.floating]) -> float:
    """Return the largest score allowed."""
    return _LIMIT[scores.dtype]


def as_scores(scores: ArrayLike) -> tuple[NDArray[np.floating], np.dtype[Any]]:
    """Return scores as a float32 or float64 array, not yet checked to be finite, and the dtype to return.

    The array is contiguous, aligned and writable, as kernels are compiled for: they never write to it, but a read-only
    array would have kernels of its own, and a copy costs less than to compile these.
    """
    array = scores if type(scores) is np.ndarray else as_array(scores, "scores")
    dtype = array.dtype
    if dtype in _NATIVE and array.ndim == 1 and array.flags.carray and array.shape[0] < _LARGEST:
        return array, dtype
    if dtype.kind not in "fiub":
        raise TypeError(
            f"scores must be real numbers, got dtype {dtype}; convert them with np.asarray(scores, dtype=float)"
        )
    if array.ndim != 1:
        raise ValueError(
            f"scores must be one-dimensional, got shape {array.shape}; pass scores.ravel() and qid= for queries"
        )
    if array.shape[0] >= _LARGEST:
        raise ValueError(f"{array.shape[0]} scores, but at most {_LARGEST - 1} are allowed; split them into queries")
    out = dtype.newbyteorder("=") if dtype.kind == "f" and dtype.itemsize <= 8 else np.dtype(np.float64)
    compute = np.dtype(np.float32) if out.itemsize <= 4 else np.dtype(np.float64)
    if dtype != compute or not array.flags.carray:
        with np.errstate(over="ignore"):  # too large values become infinite and are refused later
            array = np.array(array, dtype=compute, order="C")
    return array, out


def as_relevant(relevant: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return relevance as a contiguous, writable bool array of n entries (see as_scores)."""
    array = relevant if type(relevant) is np.ndarray else as_array(relevant, "relevant")
    if array.shape == (n,) and array.dtype == np.bool_ and array.flags.carray:
        return array
    check_length(array, "relevant", n)
    if array.dtype != np.bool_:
        if array.dtype.kind not in "fiu":
            raise TypeError(
                f"relevant must be boolean, or 0 and 1, got dtype {array.dtype}; convert it with relevant == label"
            )
        truth = array == 1
        if (k := first_true(~truth & (array != 0))) is not None:
            raise ValueError(
                f"relevant must be binary: relevant[{k}] is {array[k]}; pass booleans, e.g. relevant > 0 for grades"
            )
        array = truth
    return array if array.flags.carray else array.copy()


def as_truth(relevant: ArrayLike, n: int, name: str = "relevant") -> NDArray[np.bool_] | NDArray[np.float64]:
    """Return relevance, n contiguous entries: booleans if it is boolean or only 0 and 1, otherwise float64 grades."""
    array = relevant if type(relevant) is np.ndarray else as_array(relevant, "relevant")
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not ((array != 0) & (array != 1)).any():
        return as_relevant(array, n)
    return as_grades(array, n, name)


def as_grades(grades: ArrayLike, n: int, name: str = "grades", beside: str = "scores") -> NDArray[np.float64]:
    """Return grades (n,) as float64, booleans as 0 and 1; refuse anything but n finite numbers of at least 0."""
    array = as_array(grades, name)
    check_length(array, name, n, beside)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must be real numbers or booleans, got dtype {array.dtype}; convert with np.asarray({name}, "
            f"dtype=float), or pass {name} == label"
        )
    if array.dtype == np.bool_:
        return array.astype(np.float64)
    with np.errstate(over="ignore"):  # too large values become infinite and are refused later
        found = array.astype(np.float64)
    if (k := first_true(~((found >= 0.0) & (found < np.inf)))) is not None:
        raise ValueError(
            f"{name}[{k}] is {array[k]}: grades must be finite and at least 0; shift them, or pass booleans that "
            "say which samples are relevant"
        )
    return found


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return anything array-like as a NumPy array."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            k = np.argwhere(np.ma.getmaskarray(values))[0]
            raise ValueError(f"{name} is masked at {tuple(int(i) for i in k)}; drop masked samples")
        values = values.data
    if isinstance(values, str | bytes) or values is None:
        raise TypeError(f"{name} must be an array, got {type(values).__name__}")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a one-dimensional array: {error}") from None


def check_length(array: NDArray[Any], name: str, n: int, beside: str = "scores") -> None:
    """Refuse an array that is not (n,), with as many entries as `beside`."""
    if array.shape != (n,):
        what = f"{array.shape[0]} entries" if array.ndim == 1 else f"shape {array.shape}"
        raise ValueError(f"{name} has {what} and {beside} has {n}; they must be one-dimensional and of equal length")


def first_true(mask: NDArray[np.bool_]) -> int | None:
    """Return the index of the first true entry of (n,); None if there is none."""
    k = int(np.argmax(mask)) if mask.size else 0
    return k if mask.size and mask[k] else None


def not_finite(scores: NDArray[np.floating], first: int = 0) -> NotFiniteError | None:
    """Return an error that names the first score that is not finite or too large; None if there is none."""
    if (k := first_true(~(np.abs(scores) <= limit_of(scores)))) is None:
        return None
    why = "too large to compare; rescale the scores" if np.isfinite(scores[k]) else "not finite; remove or mask it"
    return NotFiniteError(f"scores[{first + k}] is {scores[k]}: {why}")


def raise_not_finite(scores: NDArray[np.floating], first: int = 0) -> None:
    """Raise for the first score that is not finite or too large."""
    error = not_finite(scores, first)
    if error is not None:
        raise error


def as_scale(scale: float, method: str | None = None) -> float:
    """Return the weight of the loss against F; it may be negative only for a method that does not need (C2)."""
    if not is_number(scale):
        raise TypeError(f"scale must be a number, got {type(scale).__name__}")
    if method in SIGNED_METHODS:
        if not np.isfinite(scale):
            raise ValueError(f"scale must be finite, got {scale}")
    elif not 0.0 <= scale < np.inf:
        remedy = "" if method is None else f" and needs method={' or '.join(map(repr, SIGNED_METHODS))}"
        raise ValueError(f"scale must be finite and at least 0, got {scale}: a negative scale breaks (C2){remedy}")
    return float(scale)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, and not a boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_threads(n_threads: int) -> int:
    """Return a number of threads; −1 means all available processors."""
    if not is_whole(n_threads):
        raise TypeError(f"n_threads must be an integer, got {type(n_threads).__name__}")
    if n_threads == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1, or -1 for all processors, got {n_threads}")
    return int(n_threads)


def as_cutoff(k: Any, name: str = "k") -> int:
    """Return the number of places that count, if it is valid."""
    if not is_whole(k) or k < 1:
        raise ValueError(f"{name} must be a whole number of places, at least 1, got {k!r}")
    return int(k)


def check_empty(empty: str) -> None:
    """Refuse an unknown policy for queries without positives or negatives."""
    check_known("empty", empty, EMPTY)


def check_known(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a value of a parameter that is not a known one."""
    if value not in known:
        raise ValueError(f"unknown {name}={value!r}; use one of {', '.join(map(repr, known))}")


def check_whole(least: int, **numbers: Any) -> None:
    """Refuse parameters that are not integers of at least `least`."""
    for name, value in numbers.items():
        if not is_whole(value):
            raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


def check_positive(**numbers: float) -> None:
    """Refuse parameters that are not positive numbers."""
    for name, value in numbers.items():
        if not is_number(value) or not 0.0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
