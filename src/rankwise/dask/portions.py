"""A partition's portions of the queries that several partitions solve together, and the states of these portions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.exchange import Function
from rankwise.kernels.engine import A_POSITIVE, LARGE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Large(NamedTuple):
    """A binary query that several partitions solve together: samples of at least a grade against the others of a query.

    weight: in the risk. firsts: (partitions,) number of the query's samples in the partitions before.
    """

    id: Any
    grade: float
    n: int
    n_pos: int
    weight: float
    firsts: Ints


def is_large(n: int, n_pos: int) -> bool:
    """Return whether one machine would use buckets for the query. Otherwise its number of scores is O(positives)."""
    return n >= LARGE + A_POSITIVE * n_pos


class Members(NamedTuple):
    """Samples of a large query in a partition. rows: None means all of its rows. where: positives among rows.

    first: number of the query's samples in the partitions before. n: their number in all partitions.
    """

    rows: Ints | None
    where: Ints
    first: int
    n: int


class Portion(NamedTuple):
    """Samples of a large query with contiguous scores: the state in which every solution begins."""

    members: Members
    scores: Floats


class Solved(NamedTuple):
    """The weighted gradient of a portion: the state in which every solution ends. total: its part of the risk."""

    members: Members
    gradient: Floats
    total: float


@dataclass(frozen=True)
class Scored:
    """A partition whose samples have scores, (n,). portions: states of its portions. work: what it has to solve."""

    scores: Floats
    work: Any = None
    portions: list[Any] = field(default_factory=list)


def divide(part: Scored, members: Sequence[Members]) -> Scored:
    """Return the partition with portions of these queries."""
    of_query = (part.scores if one.rows is None else part.scores[one.rows] for one in members)
    portions = [Portion(one, np.ascontiguousarray(own)) for one, own in zip(members, of_query, strict=True)]
    return replace(part, portions=portions)


def advance(part: Scored, step: Function, messages: list[tuple[Any, ...]]) -> Scored:
    """Return the partition with the next state of each portion, from a message for each query."""
    return replace(part, portions=reply(part, step, messages))


def reply(part: Scored, answer: Function, messages: list[tuple[Any, ...]] | None = None) -> list[Any]:
    """Return the answer of each portion, to a message for each query if there are any."""
    given = [()] * len(part.portions) if messages is None else messages
    return [answer(portion, *message) for portion, message in zip(part.portions, given, strict=True)]
