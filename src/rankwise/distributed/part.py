"""A part of the samples, and the state of its portion of every query that several parts solve together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise.distributed.exchange import Function
from rankwise.kernels.engine import A_POSITIVE, LARGE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Large(NamedTuple):
    """A query with positives and negatives in several parts. weight: factor of its gradient."""

    n: int
    n_pos: int
    weight: float = 1.0


def is_large(n: int, n_pos: int) -> bool:
    """Return whether one machine would use buckets for the query. Otherwise its number of scores is O(positives)."""
    return n >= LARGE + A_POSITIVE * n_pos


class Found(NamedTuple):
    """J and Δ of a large query. Of J, the sum over parts, `totals_of`, is missing."""

    value: float
    loss: float


class Members(NamedTuple):
    """Where the samples of a large query are in a part. rows: of the part's samples; None means all of them.

    where: positives among rows. first: number of the query's samples in the parts before. n: their number in all parts.
    """

    rows: Ints | None
    where: Ints
    first: int
    n: int


class Portion(NamedTuple):
    """A part's samples of a large query, with contiguous scores: the state in which every solution begins."""

    members: Members
    scores: Floats


class Solved(NamedTuple):
    """The gradient of a portion: the state in which every solution ends. total: its contribution to J."""

    members: Members
    gradient: Floats
    total: float


@dataclass(frozen=True)
class Part:
    """A part whose samples have scores, (n,), and the states of its portions of large queries."""

    scores: Floats
    portions: list[Any] = field(default_factory=list)


P = TypeVar("P", bound=Part)


def divide(part: P, members: Sequence[Members]) -> P:
    """Return the part with portions of these queries."""
    of_query = (part.scores if one.rows is None else part.scores[one.rows] for one in members)
    portions = [Portion(one, np.ascontiguousarray(own)) for one, own in zip(members, of_query, strict=True)]
    return replace(part, portions=portions)


def advance(part: P, step: Function, messages: list[tuple[Any, ...]]) -> P:
    """Return the part with the next state of each portion, from a message for each query."""
    return replace(part, portions=reply(part, step, messages))


def reply(part: Part, answer: Function, messages: list[tuple[Any, ...]] | None = None) -> list[Any]:
    """Return the answer of each portion, to a message for each query if there are any."""
    given = [()] * len(part.portions) if messages is None else messages
    return [answer(portion, *message) for portion, message in zip(part.portions, given, strict=True)]


def totals_of(part: Part) -> list[float]:
    """Return the contribution of each solved portion to J."""
    return [portion.total for portion in part.portions]
