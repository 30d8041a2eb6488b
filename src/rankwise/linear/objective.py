"""The regularised risk of a linear ranker, and the planes that bound it from below.

    F(v) = ½‖v‖² + C·risk(v),   risk(v) = Σ_q ω_q J_q(b + X v),   Σ_q ω_q = 1

J_q is the structured hinge of query q and ω_q its weight. b are the scores at v = 0: 0, or those of a model to refine.
A fixed most violating ranking gives a plane under the convex risk, a `Cut`: risk(v) ≥ offset + normal·v.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.features import Features, Vector
from rankwise.metrics.loss import Loss
from rankwise.queries import Queries, Solved, single_query
from rankwise.surrogates import Hinge, Surrogate

# The squared norm of a plane times C² must not overflow.
_LARGEST = 1e100


class Cut(NamedTuple):
    """Plane under the risk: risk(v) ≥ offset + normal·v for every v.

    Parameters
    ----------
    offset : float
        Height of the plane at v = 0.
    normal : ndarray of shape (n_coefs,)
        Slope of the plane.

    See Also
    --------
    Evaluation : The risk at a point, with its plane.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.linear import Cut
    >>> cut = Cut(offset=1.0, normal=np.array([-1.0, 0.5]))
    >>> float(cut.offset + cut.normal @ np.array([0.5, 0.0]))
    0.5
    """

    offset: float
    normal: Vector


class Evaluation(NamedTuple):
    """Risk at a point, and the plane that touches it there.

    Parameters
    ----------
    risk : float
        The risk at the point.
    cut : Cut
        The plane.

    See Also
    --------
    Objective : Its method `evaluate` returns evaluations.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.linear import Cut, Evaluation
    >>> Evaluation(risk=1.0, cut=Cut(1.0, np.zeros(1))).risk
    1.0
    """

    risk: float
    cut: Cut


class LinearRisk(Protocol):
    """A convex risk of linear rankers as solvers see it: its value and a plane at each point."""

    clock: Clock

    @property
    def n_coefs(self) -> int:
        """Dimension of v."""

    def evaluate(self, v: Vector) -> Evaluation:
        """Return the risk at v, and its plane there."""

    def largest_score(self, v: Vector) -> float:
        """Return max |X·v| over samples."""

    def queries(self) -> Sequence[tuple[float, LinearRisk]]:
        """Return the weight and the separate risk of every query."""


@dataclass
class Clock:
    """Counters of where the time of a fit goes.

    Parameters
    ----------
    inference : float, default 0.0
        Seconds in inference, the search of most violating rankings.
    products : float, default 0.0
        Seconds in products with the features.
    calls : int, default 0
        Number of queries that were searched.

    See Also
    --------
    Objective : Counts its time on a clock.

    Examples
    --------
    >>> import time
    >>> from rankwise.linear import Clock
    >>> clock = Clock()
    >>> clock.count(3, started=time.perf_counter())
    >>> clock.calls
    3
    """

    inference: float = 0.0
    products: float = 0.0
    calls: int = 0

    def count(self, n_queries: int, started: float) -> None:
        """Add a call of inference that ends now.

        Parameters
        ----------
        n_queries : int
            Number of queries that were searched.
        started : float
            When the call began, by `time.perf_counter`.
        """
        self.inference += time.perf_counter() - started
        self.calls += n_queries


class Inference(NamedTuple):
    """Queries, loss and surrogate: all that a value needs except the scores."""

    queries: Queries
    loss: Loss
    surrogate: Surrogate = Hinge()
    n_threads: int = 1

    @property
    def scale(self) -> float:
        """The weight of the loss in a structured hinge."""
        return getattr(self.surrogate, "scale", 1.0)

    def solve(self, scores: NDArray[np.floating]) -> Solved:
        """Solve scores, query after query."""
        return self.surrogate.solve(scores, self.queries, self.loss, self.n_threads)


class SolvedLike(Protocol):
    """Value and loss of each query, and the gradient of the summed values by sample: of the hinge or smooth loss."""

    @property
    def value(self) -> NDArray[np.float64]:
        """(Q,)."""

    @property
    def loss(self) -> NDArray[np.float64]:
        """(Q,)."""

    @property
    def gradient(self) -> NDArray[np.floating]:
        """(n,)."""


class Risk(NamedTuple):
    """The sums Σ ω J and Σ ω Δ over queries, and the gradient by sample, (n,)."""

    value: float
    loss: float
    gradient: Vector


@dataclass(frozen=True, eq=False)
class Task:
    """Ranking task: which samples form which query, and what counts.

    `pose` builds tasks. Only queries that have something to rank are in a task.

    Parameters
    ----------
    relevant : ndarray of bool of shape (n_samples,)
        Which samples are relevant. Of grades, those above 0.
    inference : Inference
        Queries, loss, surrogate and number of threads.
    order : ndarray of int or None
        Rows of the samples, query after query. None means that all samples are in this order already.
    weights : ndarray of shape (n_queries,)
        Weight ω of each query. The weights add up to 1.

    See Also
    --------
    pose : Builds a task from labels and queries.
    Objective : Regularised risk of a task over features.

    Examples
    --------
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import pose
    >>> import numpy as np
    >>> task = pose(np.array([True, False, False, True]), AveragePrecision(), qid=[0, 1, 0, 1])
    >>> task.n_queries, task.weights.tolist(), task.order.tolist()
    (2, [0.5, 0.5], [0, 2, 1, 3])
    """

    relevant: NDArray[np.bool_]
    inference: Inference
    order: NDArray[np.int64] | None
    weights: Vector

    @property
    def n_queries(self) -> int:
        """Number of queries, each of which has something to rank.

        Returns
        -------
        int
            Number of queries.
        """
        return self.weights.size

    @cached_property
    def _weight_of_sample(self) -> Vector:
        return np.repeat(self.weights, self.inference.queries.sizes)

    def gather(self, scores: Vector) -> Vector:
        """Sort scores by query.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores by sample.

        Returns
        -------
        ndarray
            Scores of the samples in the task, query after query.
        """
        return scores if self.order is None else scores[self.order]

    def weigh(self, solved: SolvedLike) -> Risk:
        """Sum up the values of queries by their weights.

        Parameters
        ----------
        solved : SolvedLike
            Value and loss of each query, and the gradient by sample, query after query.

        Returns
        -------
        Risk
            Weighted sums of values and losses, and the gradient in the order of the samples.
        """
        if self.n_queries == 1 and self.weights[0] == 1.0:
            value, lost = float(solved.value[0]), float(solved.loss[0])
            gradient = solved.gradient.astype(np.float64, copy=False)
        else:
            value, lost = float(self.weights @ solved.value), float(self.weights @ solved.loss)
            gradient = solved.gradient * self._weight_of_sample
        if self.order is None:
            return Risk(value, lost, gradient)
        scattered = np.zeros(self.relevant.size)  # samples outside the task have gradient 0
        scattered[self.order] = gradient
        return Risk(value, lost, scattered)


def risk_of(task: Task, scores: Vector, clock: Clock) -> Risk:
    """Return the risk of scores by sample."""
    started = time.perf_counter()
    solved = task.inference.solve(task.gather(scores))
    clock.count(task.n_queries, started)
    return task.weigh(solved)


def evaluation_of(risk: float, offset: float, normal: Vector) -> Evaluation:
    """Return a risk and its plane; refuse a plane whose squared norm would overflow."""
    if not np.abs(normal).max(initial=0.0) <= _LARGEST:
        raise ValueError(f"features exceed {_LARGEST:g}, which is too large to be squared; scale them first")
    return Evaluation(risk, Cut(offset, normal))


@dataclass(eq=False)
class Objective:
    """Risk of a linear ranker on a task, as solvers minimise it.

    With X the features, b the scores at v = 0, J_q the structured hinge of query q and ω_q its weight,

        F(v) = ½‖v‖² + C·risk(v),    risk(v) = Σ_q ω_q J_q(b + X v).

    The objective holds risk(v). Solvers add the penalty and C.

    Parameters
    ----------
    features : Features
        Features of all samples, as `as_features` returns them.
    task : Task
        Ranking task, as `pose` returns it.
    base : ndarray of shape (n_samples,), optional
        Scores b at v = 0, such as those of a model that is refined. The default is 0.
    clock : Clock, optional
        Where to count the time. The default is a new clock.

    See Also
    --------
    natural_C : A scale for C that suits an objective.
    SOLVERS : Functions that minimise an objective.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import SOLVERS, Objective, Settings, as_features, pose
    >>> X, relevant = np.array([[0.0], [1.0], [2.0]]), np.array([False, False, True])
    >>> objective = Objective(as_features(X), pose(relevant, AveragePrecision()))
    >>> result = SOLVERS["cutting-plane"](objective, 10.0, Settings(tol=1e-6))
    >>> result.converged, objective.scores(result.coef).argmax().item()
    (True, 2)
    """

    features: Features
    task: Task
    base: Vector | None = None
    clock: Clock = field(default_factory=Clock)

    @property
    def n_coefs(self) -> int:
        """Number of coefficients, including that of the intercept if there is one.

        Returns
        -------
        int
            Dimension of v.
        """
        return self.features.n_coefs

    def scores(self, v: Vector) -> Vector:
        """Score the samples by b + X v.

        Parameters
        ----------
        v : ndarray of shape (n_coefs,)
            Coefficients.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        started = time.perf_counter()
        scores = self.features.scores(v) if self.base is None else self.base + self.features.scores(v)
        self.clock.products += time.perf_counter() - started
        return scores

    def evaluate(self, v: Vector) -> Evaluation:
        """Evaluate the risk at a point.

        Parameters
        ----------
        v : ndarray of shape (n_coefs,)
            Coefficients.

        Returns
        -------
        Evaluation
            The risk at v, and the plane that touches it there.

        Raises
        ------
        ValueError
            If the features are too large to be squared.
        """
        scores = self.scores(v)
        started = time.perf_counter()
        solved = self.task.inference.solve(self.task.gather(scores))
        self.clock.count(self.task.n_queries, started)
        return self._evaluation(self.task.weigh(solved))

    def _evaluation(self, risk: Risk) -> Evaluation:
        started = time.perf_counter()
        normal = self.features.combine(risk.gradient)
        offset = self.task.inference.scale * risk.loss
        if self.base is not None:
            offset += float(risk.gradient @ self.base)
        self.clock.products += time.perf_counter() - started
        return evaluation_of(risk.value, offset, normal)

    def largest_score(self, v: Vector) -> float:
        """Compute the largest absolute score, max |X·v| over all samples.

        Parameters
        ----------
        v : ndarray of shape (n_coefs,)
            Coefficients.

        Returns
        -------
        float
            The largest absolute score, without b.
        """
        return float(np.abs(self.features.scores(v)).max(initial=0.0))

    def queries(self) -> list[tuple[float, Objective]]:
        """Split the objective into one per query.

        Returns
        -------
        list of (float, Objective)
            Weight and objective of each query. All of them share the clock.
        """
        if self.task.n_queries == 1:
            return [(1.0, self)]
        return [(weight, self._query(q)) for q, weight in enumerate(self.task.weights.tolist())]

    def _query(self, q: int) -> Objective:
        inference, order = self.task.inference, self.task.order
        start, stop = inference.queries.starts[q : q + 2].tolist()
        rows = slice(start, stop) if order is None else order[start:stop]
        alone = inference._replace(queries=single_query(inference.queries.truth[start:stop]), n_threads=1)
        task = Task(alone.queries.relevant, alone, None, np.ones(1))
        return Objective(self.features.rows(rows), task, None if self.base is None else self.base[rows], self.clock)
