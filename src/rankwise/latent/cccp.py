"""Latent structured SVM by alternation (CCCP: Yuille and Rangarajan 2003; Behl et al. 2014 for average precision).

    F(v) = ½‖v‖² + C·risk(s(v)),   s_i(v) = max_h φ(x_i, h)·v

The risk falls with the scores of positives and rises with those of negatives. So it is convex in the maximum s_i of a
negative bag. The score of a positive bag may be replaced by that of any of its candidates: this bounds F from above,
and equals F where those candidates are the best. An outer step fixes positive bags at their best candidates (imputes),
then minimises the bound, which is convex, to a certified gap. F never rises.

The convex problem is solved over a working set: one candidate of each positive bag, a few of each negative bag. With
fewer candidates the risk is nowhere higher, so planes and lower bounds hold for all of them. A pass over all candidates
gives an upper bound, and candidates with higher scores, which are added. A round is one of each. Few rounds are needed,
and only their passes read all features.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from rankwise.latent.bags import Bags
from rankwise.latent.blocks import Indices, take_rows
from rankwise.linear.bundle import Bundle, Planes
from rankwise.linear.cutting_plane import ROUNDING_RULES, Settings, cutting_plane
from rankwise.linear.features import Vector, as_features, with_intercept
from rankwise.linear.objective import Clock, Objective, risk_of
from rankwise.linear.task import Task

# A working set is solved to this fraction of the current gap, or to this fraction of the wanted gap if that is larger.
_OF_OPEN, _OF_WANTED = 0.1, 0.5
# If candidates have at most this many entries, all of them are in the working set.
_SMALL = 1 << 21
# A candidate that was not its bag's best in so many rounds is dropped.
_IDLE = 4


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem, and when to stop. task: of the bags. intercept: value of its column, or 0."""

    bags: Bags
    relevant: NDArray[np.bool_]
    task: Task
    C: float
    intercept: float
    tol: float
    outer_tol: float
    max_outer: int
    max_iter: int
    n_threads: int = 1

    @property
    def n_coefs(self) -> int:
        """Dimension of v."""
        return self.bags.width + (self.intercept != 0.0)

    def value(self, v: Vector, scores: Vector, clock: Clock) -> float:
        """Return ½‖v‖² + C·risk of scores by bag."""
        return 0.5 * float(v @ v) + self.C * max(risk_of(self.task, scores, clock).value, 0.0)


class OuterStep(NamedTuple):
    """One line of history: the objective after an outer step, and the bounds of its convex problem.

    changed: positives whose best candidate has changed.
    """

    objective: float
    primal: float
    dual: float
    gap: float
    changed: int
    rounds: int
    passes: int
    calls: int
    seconds: float


def best_of(scores: Vector, starts: Indices) -> tuple[Vector, Indices]:
    """Return the highest score of each bag and its first position; bag i begins at starts[i]."""
    best = np.maximum.reduceat(scores, starts)
    owner = np.repeat(np.arange(starts.size), np.diff(np.append(starts, scores.size)))
    hits = np.flatnonzero(scores == best[owner])
    return best, hits[np.searchsorted(owner[hits], np.arange(starts.size))]


class WorkingSet:
    """Rows by bag, used as `Features` of the bags: the score of a bag is that of its best candidate.

    rows, owner, last: (k,) rows of the features, their bags, and the round in which they were last the best.
    `combine` gives the weight of each bag to its best candidate in the last call of `scores`.
    """

    def __init__(self, bags: Bags, rows: Indices, owner: Indices, last: Indices, round: int = 0) -> None:
        self._bags = bags
        self.n_samples, self.n_coefs = len(bags), bags.width
        self.round = round
        self._take(rows, owner, last, take_rows(bags.features, rows))

    def _take(self, rows: Indices, owner: Indices, last: Indices, matrix: Any) -> None:
        order = np.lexsort((rows, owner))
        self.rows, self.owner, self.last = rows[order], owner[order], last[order]
        self._matrix = matrix[order]
        self._features = as_features(self._matrix)
        self._starts = np.searchsorted(self.owner, np.arange(self.n_samples))
        self._chosen = self._starts

    def scores(self, coef: Vector) -> Vector:
        """Return the maximum of φ·coef over the rows of each bag, (bags,)."""
        best, self._chosen = best_of(self._features.scores(coef), self._starts)
        self.last[self._chosen] = np.maximum(self.last[self._chosen], self.round)
        return best

    def combine(self, weights: NDArray[np.floating]) -> Vector:
        """Return Σ_i weights[i]·φ of bag i's best row, (d,)."""
        spread = np.zeros(self.rows.size)
        spread[self._chosen] = weights
        return self._features.combine(spread)

    def add(self, rows: Indices, owner: Indices) -> int:
        """Add new rows, drop rows that were long unused, and return how many were added."""
        new = ~np.isin(rows, self.rows)
        keep = self.last >= self.round - _IDLE  # each bag's best is of this round
        if not new.any() and keep.all():
            return 0
        self._join(keep, rows[new], owner[new])
        return int(new.sum())

    def fix(self, rows: Indices, owner: Indices) -> None:
        """Make these rows the only ones of their bags."""
        self._join(~np.isin(self.owner, owner), rows, owner)

    def _join(self, keep: NDArray[np.bool_], rows: Indices, owner: Indices) -> None:
        """Keep some rows and add others."""
        parts = [self._matrix[keep], take_rows(self._bags.features, rows)]
        self._take(
            np.concatenate([self.rows[keep], rows]),
            np.concatenate([self.owner[keep], owner]),
            np.concatenate([self.last[keep], np.full(rows.size, self.round)]),
            vstack(parts).tocsr() if issparse(parts[0]) else np.concatenate(parts),
        )


@dataclass(eq=False)
class State:
    """Best coefficients of the current convex problem, the scores of all candidates there, and the progress so far.

    coef: v. fixed: (bags,) the row that represents each positive bag. best, best_rows: (bags,) at coef, the score of
    each bag and its row. primal: of the convex problem at coef. dual: its lower bound, from `planes`. objective: at the
    end of the last outer step. tight: whether to solve the working set to the wanted gap, because the last pass found
    nothing to add. learnt: whether coef comes from data.
    """

    coef: Vector
    fixed: Indices
    best: Vector
    best_rows: Indices
    working: WorkingSet
    planes: Planes
    primal: float
    dual: float = 0.0
    objective: float = np.inf
    rounds: int = 0
    passes: int = 0
    seconds: float = 0.0
    finished: bool = False
    learnt: bool = False
    tight: bool = False
    reason: str = ""
    clock: Clock = field(default_factory=Clock)
    history: list[OuterStep] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """(primal − dual)/primal of the current convex problem."""
        return max((self.primal - self.dual) / self.primal, 0.0) if self.primal > 0.0 else 0.0


def begin(problem: Problem, candidates: Indices | None, coef: Vector | None) -> State:
    """Return the state before the first round: positives at given rows and v = 0, or at their best for given v."""
    bags, v = problem.bags, np.zeros(problem.n_coefs) if coef is None else coef
    # If every score is 0, the first candidate is the best.
    best, best_rows = (np.zeros(len(bags)), bags.starts) if coef is None else _pass(problem, v, bags.starts)[:2]
    fixed, small = best_rows if candidates is None else candidates, _is_small(bags)
    rows, owner = fixed, np.arange(len(bags))
    if small:
        rows, owner = _rows(bags), np.repeat(owner, bags.sizes)
    negative, positives = ~problem.relevant[owner], np.flatnonzero(problem.relevant)
    rows, owner = np.append(rows[negative], fixed[positives]), np.append(owner[negative], positives)
    # Candidates of a small set are never dropped: they count as used in a round that never comes.
    last = np.full(rows.size, np.iinfo(np.int64).max if small else 0)
    working, planes, clock = WorkingSet(bags, rows, owner, last), Bundle(problem.n_coefs).planes, Clock()
    value = problem.value(v, best, clock)
    state = State(v, fixed, best, best_rows, working, planes, value, tight=small, clock=clock)
    if coef is not None:
        state.objective, state.learnt, state.passes = value, True, 1
    return state


def _rows(bags: Bags) -> Indices:
    """Return the row of every candidate, bag after bag."""
    return np.repeat(bags.starts - bags.offsets[:-1], bags.sizes) + np.arange(bags.n_candidates)


def _is_small(bags: Bags) -> bool:
    """Return whether the working set holds all candidates, so that one round is enough."""
    return bags.n_candidates * bags.width <= _SMALL


def minimise(problem: Problem, state: State, after: Callable[[State], None]) -> None:
    """Repeat rounds until F no longer falls; call `after` after each."""
    while not state.finished:
        started = time.perf_counter()
        _round(problem, state)
        state.seconds += time.perf_counter() - started
        after(state)


def _round(problem: Problem, state: State) -> None:
    """Minimise over the working set, score all candidates there, and end the outer step if the gap is small."""
    state.working.round += 1
    bundle = Bundle.of(state.planes)
    tol = _OF_WANTED * problem.tol
    tol = tol if state.tight else max(tol, _OF_OPEN * min(state.gap, 1.0))
    settings = Settings(tol, problem.max_iter, state.coef)
    result = cutting_plane(_objective(problem, state), problem.C, settings, bundle)
    if result.interrupted:
        raise KeyboardInterrupt
    best, best_rows, fixed = _pass(problem, result.coef, state.fixed)
    negatives = np.flatnonzero(~problem.relevant)
    primal = problem.value(result.coef, np.where(problem.relevant, fixed, best), state.clock)
    added = state.working.add(best_rows[negatives], negatives)
    state.passes += 1
    state.rounds += 1
    state.planes, state.dual = bundle.planes, max(state.dual, result.dual)
    better = primal < state.primal
    if better:
        state.coef, state.primal, state.best, state.best_rows = result.coef, primal, best, best_rows
    state.learnt = True
    if state.gap <= problem.tol:
        state.reason = ""
        _close(problem, state)
    elif not added and not better and state.tight:  # the solver makes no more progress
        state.reason = result.reason or ROUNDING_RULES
        _close(problem, state)
    else:
        state.tight = not added


def _close(problem: Problem, state: State) -> None:
    """End an outer step: move every positive bag to its best candidate."""
    after = problem.value(state.coef, state.best, state.clock)
    value = min(after, state.primal)
    positives = np.flatnonzero(problem.relevant)
    changed = int(np.count_nonzero(state.best_rows[positives] != state.fixed[positives]))
    bounds = (value, state.primal, state.dual, state.gap)
    counts = (changed, state.rounds, state.passes, state.clock.calls)
    state.history.append(OuterStep(*bounds, *counts, state.seconds))
    settled = changed == 0 or state.objective - value <= problem.outer_tol * value
    state.objective = value
    if settled or len(state.history) >= problem.max_outer:
        state.finished = True
        if not settled and not state.reason:
            state.reason = f"max_outer={problem.max_outer} reached; raise it"
        return
    state.fixed = np.where(problem.relevant, state.best_rows, state.fixed)
    state.working.fix(state.fixed[positives], positives)
    state.planes, state.primal, state.dual, state.rounds = Bundle(problem.n_coefs).planes, after, 0.0, 0
    state.tight = _is_small(problem.bags)


def _objective(problem: Problem, state: State) -> Objective:
    """Return the convex objective over the working set."""
    return Objective(with_intercept(state.working, problem.intercept), problem.task, clock=state.clock)


def _pass(problem: Problem, v: Vector, fixed: Indices) -> tuple[Vector, Indices, Vector]:
    """Return for each bag at v: the highest score, its row, and the score of the fixed row."""
    bags, d = problem.bags, problem.bags.width
    scores = bags.scores(v[:d], problem.n_threads)
    if problem.intercept:
        scores += problem.intercept * v[d]
    offsets = bags.offsets[:-1]
    best, at = best_of(scores, offsets)
    return best, bags.starts + at - offsets, scores[offsets + fixed - bags.starts]
