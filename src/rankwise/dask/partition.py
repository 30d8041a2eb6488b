"""What a partition holds and does, on the worker that has it: all functions here run there.

A partition holds its rows X, its labels until there is a plan (`Labelled`), then what it has to solve (`Partition`),
and for one step their scores and its portions of large queries (`Scored`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import not_finite
from rankwise.dask.faults import fault_of
from rankwise.dask.plan import Labelled, Plan
from rankwise.distributed.exchange import Joined, Range
from rankwise.distributed.part import Members, Part, divide
from rankwise.linear.features import INTERCEPT, Features, Vector, as_features, is_whole_numbers, on_grid
from rankwise.linear.task import Inference, Task, rankable


@dataclass(frozen=True)
class Partition:
    """What a partition has to solve.

    own: its queries that no other partition has, or None. gathered: rows of queries that the client solves. members:
    its samples of large queries, and weights: their ω. is_whole: whether features are small whole numbers.
    """

    number: int
    relevant: NDArray[np.bool_]
    own: Task | None
    gathered: NDArray[np.int64]
    members: list[Members]
    weights: list[float]
    is_whole: bool


@dataclass(frozen=True)
class Scored(Part):
    """A partition whose samples have scores, and its portions of large queries."""

    work: Any = None


def take(X: Any, state: Labelled, plan: Plan) -> Partition:
    """Return what the partition has to solve."""
    truth, ids, own = plan.meaning.truth(state.y), state.qid, None
    if ids is not None or not plan.shared.size:
        rows = np.flatnonzero(~np.isin(state.ids, plan.shared))
        order, queries, weights = rankable(truth, ids, state.weight, rows)
        if queries.sizes.size:
            inference = Inference(queries, plan.loss, plan.surrogate)
            own = Task(truth.size, inference, order, weights * plan.share_per_weight)
    members = []
    for one in plan.large:
        of_query = None if ids is None else np.flatnonzero(ids == one.id)
        where = np.flatnonzero((truth if of_query is None else truth[of_query]) >= one.grade)
        members.append(Members(of_query, where, int(one.firsts[state.number]), one.large.n))
    relevant, weights_of_large = plan.meaning.relevant(truth), [one.large.weight for one in plan.large]
    gathered = _gathered(state, plan)
    return Partition(state.number, relevant, own, gathered, members, weights_of_large, is_whole_numbers(X))


def labels_of(state: Labelled, plan: Plan) -> tuple[Joined, Joined, Joined]:
    """Return labels and queries of the samples that the client solves, and their number."""
    rows = _gathered(state, plan)
    return Joined(plan.meaning.truth(state.y)[rows]), Joined(state.ids[rows]), Joined(np.array([rows.size]))


def _gathered(state: Labelled, plan: Plan) -> NDArray[np.int64]:
    return np.flatnonzero(np.isin(state.ids, plan.gathered))


def score(X: Any, state: Partition, v: Vector | None = None, intercept: bool = False) -> Scored:
    """Return the partition with scores X·v, or with X itself as scores if there is no v."""
    scores = X if v is None else _features(X, state, intercept).scores(v)
    error = not_finite(scores)
    if error is not None:
        raise fault_of(error).error(state.number)
    return divide(Scored(scores, work=state), state.members)


def furthest(X: Any, state: Partition, v: Vector, intercept: bool) -> Range:
    """Return the range of the scores X·v."""
    return Range.of(_features(X, state, intercept).scores(v))


def gradient_of(state: Scored, of_client: Vector | None) -> tuple[float, float, Vector]:
    """Return the partition's contributions to risk and loss, and the gradient by sample of all queries.

    of_client: gradient of the samples that the client solved.
    """
    work: Partition = state.work
    value = lost = 0.0
    gradient = np.zeros(state.scores.size)
    if work.own is not None:
        value, lost, own = work.own.weigh(work.own.inference.solve(work.own.gather(state.scores)))
        gradient += own
    if of_client is not None:
        gradient[work.gathered] = of_client
    for portion, weight in zip(state.portions, work.weights, strict=True):
        gradient[slice(None) if portion.members.rows is None else portion.members.rows] += portion.gradient
        value += weight * portion.total
    return value, lost, gradient


def plane(X: Any, state: Scored, of_client: Vector | None, intercept: bool) -> tuple[float, float, Vector]:
    """Return the partition's contributions to risk, loss and the normal of the plane; the normal in two parts, (2, d).

    Where features are whole numbers, sums of the first part are exact, so they do not depend on the partitions.
    """
    value, lost, gradient = gradient_of(state, of_client)
    features = as_features(X, INTERCEPT if intercept else 0.0, whole=False)
    normal = np.zeros((2, features.n_coefs))
    if state.work.is_whole:
        even, rest = on_grid(gradient)
        normal[0], normal[1] = features.combine(even), features.combine(rest)
    else:
        normal[0] = features.combine(gradient)
    return value, lost, normal


def all_as_one_query(state: Scored) -> Scored:
    """Return the partition with a portion of one query of all samples."""
    relevant = state.work.relevant
    return divide(state, [Members(None, np.flatnonzero(relevant), 0, relevant.size)])


def _features(X: Any, state: Partition, intercept: bool) -> Features:
    return as_features(X, INTERCEPT if intercept else 0.0, state.is_whole)
