"""Communication with parts: a function runs on every part, and its result stays there or is added up."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

Function = Callable[..., Any]


@dataclass
class Traffic:
    """Total bytes sent to each part and received from all parts, and the number of requests."""

    sent: int = 0
    received: int = 0
    rounds: int = 0


class Each(list[Any]):
    """An argument of which every part gets its own entry."""


class Exchange(Protocol):
    """Parts, each with a state, and with data that only some functions read.

    A function is called with the part's data (only if it `reads`), the part's state, and the arguments, which are the
    same for all parts except those that are `Each`.
    """

    traffic: Traffic

    def derive(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """Return parts whose states are the results of the function. The results stay where they are."""
        ...

    def ask(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """Return the sum of the function's results, in the order of parts."""
        ...


class Joined:
    """An array, or the rows of a sparse matrix, concatenated when added."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __add__(self, other: Joined) -> Joined:
        pair = [self.values, other.values]
        return Joined(np.concatenate(pair) if isinstance(self.values, np.ndarray) else vstack(pair, format="csr"))


class Tally:
    """Distinct numbers in ascending order, and how often each occurs."""

    def __init__(self, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self.values, self.counts = values, counts

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Tally:
        """Count numbers."""
        return cls(*np.unique(values + 0.0, return_counts=True))  # −0.0 is 0.0

    def __add__(self, other: Tally) -> Tally:
        values, at = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([self.counts, other.counts]), values.size)
        return Tally(values, counts.astype(np.int64))


@dataclass(frozen=True)
class Range:
    """Smallest and largest of some numbers; ∞ and −∞ if there are none."""

    least: float
    most: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Range:
        """Return the range of these numbers."""
        return cls(float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)))

    def __add__(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def add_all(replies: Sequence[Any]) -> Any:
    """Return the sum of replies, from first to last; lists and tuples are added entry by entry."""
    return reduce(_add, replies)


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, list | tuple):
        return type(one)(_add(a, b) for a, b in zip(one, other, strict=True))
    return one + other


def size_of(message: Any) -> int:
    """Return the bytes of a message: of its numbers, and of anything else when pickled."""
    if isinstance(message, np.ndarray) and message.dtype != object:
        return int(message.nbytes)
    if isinstance(message, list | tuple):
        return sum(map(size_of, message))
    if message is None or isinstance(message, bool | int | float | np.number):
        return 8
    with suppress(pickle.PicklingError, AttributeError, TypeError):  # a discount that is a lambda, which Dask can send
        return len(pickle.dumps(message))
    return 0
