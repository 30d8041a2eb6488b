"""How parts are spoken to: a function is carried out on every part, and what it returns stays there or is added up."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counted", "Exchange", "Function", "Here", "Joined", "Range", "Traffic", "add", "add_all", "size_of"]

Function = Callable[..., Any]


@dataclass
class Traffic:
    """Bytes that left for each part and that came back from all of them, added up; how often parts were asked."""

    sent: int = 0
    received: int = 0
    rounds: int = 0


class Exchange(Protocol):
    """Parts, each with a state, and data that only some functions read.

    A function is called with the state of a part, before it the part's data if it `reads`, after it the part's own
    entry of `each` if that is given, then the arguments, which are the same for all.
    """

    traffic: Traffic

    def derive(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Any:
        """The same parts, what the function returns being their states; it stays where it is."""
        ...

    def ask(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Any:
        """What the function returns on every part, added up in order."""
        ...


class Joined:
    """An array whose sum with another is both, one after the other."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def __add__(self, other: Joined) -> Joined:
        return Joined(np.concatenate([self.values, other.values]))


class Counted:
    """Different numbers, ascending, and how often there is each."""

    def __init__(self, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self.values, self.counts = values, counts

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Counted:
        """Numbers, counted."""
        return cls(*np.unique(values + 0.0, return_counts=True))  # −0.0 is 0.0

    def __add__(self, other: Counted) -> Counted:
        values, at = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.zeros(values.size, np.int64)
        np.add.at(counts, at, np.concatenate([self.counts, other.counts]))
        return Counted(values, counts)


@dataclass(frozen=True)
class Range:
    """The least and the greatest of some numbers; of none, ∞ and −∞."""

    least: float
    most: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Range:
        """That of these numbers."""
        return cls(float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)))

    def __add__(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def add(one: Any, other: Any) -> Any:
    """The sum of two replies; of lists and tuples entry by entry."""
    if isinstance(one, list | tuple):
        entries = [add(a, b) for a, b in zip(one, other, strict=True)]
        return entries if isinstance(one, list) else tuple(entries)
    return one + other


def add_all(replies: Sequence[Any]) -> Any:
    """The sum of replies, from the first to the last."""
    return reduce(add, replies)


def size_of(message: Any) -> int:
    """Bytes that a message takes: those of its numbers, and of anything else as it is pickled."""
    if isinstance(message, np.ndarray) and message.dtype != object:
        return int(message.nbytes)
    if isinstance(message, list | tuple):
        return sum(size_of(entry) for entry in message)
    if message is None or isinstance(message, bool | int | float | np.number):
        return 8
    return len(pickle.dumps(message))


@dataclass
class Here:
    """Parts that are all in this process."""

    states: list[Any]
    data: list[Any] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)

    def derive(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Here:
        """See `Exchange`."""
        return Here(self._each(function, args, reads, each), self.data, self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Any:
        """See `Exchange`."""
        replies = self._each(function, args, reads, each)
        self.traffic.rounds += 1
        self.traffic.received += size_of(replies)
        return add_all(replies)

    def _each(self, function: Function, args: tuple[Any, ...], reads: bool, each: Sequence[Any] | None) -> list[Any]:
        self.traffic.sent += size_of([args, each or ()])
        columns = [*([self.data] if reads else []), self.states, *([] if each is None else [each])]
        return [function(*own, *args) for own in zip(*columns, strict=True)]
