"""Partitions on a cluster: a function runs on each, and its result stays there as a state or is added up.

The scheduler knows every task with all its inputs, so if a worker dies, Dask repeats what is lost. Replies are added up
in the order of partitions, so the result stays the same.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from rankwise.dask.cluster import Hold, clear

Function = Callable[..., Any]
# If there are more replies than this, workers add them up in groups of this size.
_FAN_IN = 16
# An argument with more bytes is sent once and copied from worker to worker.
_SMALL = 1 << 12


@dataclass
class Traffic:
    """Total bytes sent to each partition and received from all, and the number of requests."""

    sent: int = 0
    received: int = 0
    rounds: int = 0


class Each(list[Any]):
    """An argument of which every partition gets its own entry."""


class Exchange:
    """Partitions on a cluster: for each, one future for its state and one for its data, which only some functions read.

    A function is called with the data (only if it `reads`), the state, and the arguments, which are the same for all
    partitions except those that are `Each`.
    """

    def __init__(
        self, hold: Hold, states: Sequence[Future], data: Sequence[Future] = (), traffic: Traffic | None = None
    ) -> None:
        self.hold, self.states, self.data = hold, list(states), list(data)
        self.traffic = traffic or Traffic()

    def derive(self, function: Function, *args: Any, reads: bool = False) -> Exchange:
        """Return partitions whose states are the results of the function, which stay on the workers."""
        with clear(self.hold.client):
            return Exchange(self.hold, self._submit(function, args, reads), self.data, self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """Return the sum of the function's results."""
        with clear(self.hold.client):
            replies = self._submit(function, args, reads)
            while len(replies) > _FAN_IN:
                groups = [replies[k : k + _FAN_IN] for k in range(0, len(replies), _FAN_IN)]
                replies = self.hold.map(add_all, groups, key=_keys("add", len(groups)))
            found = self.hold.client.gather(replies)
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)

    def _submit(self, function: Function, args: tuple[Any, ...], reads: bool) -> list[Future]:
        self.traffic.sent += size_of(args)
        step = args[0] if args and callable(args[0]) else function  # what portions do, such as "count"
        name = step.__name__.strip("_")
        columns = [self.data] * reads + [self.states] + [self._column(one, name) for one in args]
        return self.hold.map(function, *columns, key=_keys(name, len(self.states)))

    def _column(self, argument: Any, name: str) -> list[Any]:
        """Return an argument for each part."""
        if isinstance(argument, Each):
            return argument
        if size_of(argument) > _SMALL:
            (argument,) = self.hold.map(_same, [argument], key=_keys(f"{name}-message", 1))
        return [argument] * len(self.states)


def _same(argument: Any) -> Any:
    return argument


def _keys(name: str, n: int) -> list[str]:
    token = uuid.uuid4().hex
    return [f"rankwise-{name}-{token}-{k}" for k in range(n)]


@dataclass(frozen=True)
class Joined:
    """An array that is concatenated when added."""

    values: NDArray[Any]

    def __add__(self, other: Joined) -> Joined:
        return Joined(np.concatenate([self.values, other.values]))


@dataclass(frozen=True)
class Tally:
    """Distinct numbers in ascending order, and how often each occurs."""

    values: NDArray[np.float64]
    counts: NDArray[np.int64]

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
