"""The regularised risk of a linear ranker, and the planes that bound it from below.

    F(v) = ½‖v‖² + C·risk(v),   risk(v) = Σ_q ω_q J_q(X v),   Σ_q ω_q = 1

J_q is the structured hinge of query q, or another convex surrogate that is never negative, and ω_q its weight. Where
J_q is evaluated, a plane touches the risk, a `Cut`: risk(v) ≥ offset + normal·v.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from rankwise.linear.features import Features, Vector
from rankwise.linear.task import Risk, Task
from rankwise.surrogates import Hinge

# The squared norm of a plane times C² must not overflow.
_LARGEST = 1e100


class Cut(NamedTuple):
    """Plane under the risk: risk(v) ≥ offset + normal·v for every v, (n_coefs,)."""

    offset: float
    normal: Vector


class Evaluation(NamedTuple):
    """Risk at a point, and the plane that touches it there."""

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


@dataclass
class Clock:
    """Seconds in inference and in products with the features, and the number of queries that were solved."""

    inference: float = 0.0
    products: float = 0.0
    calls: int = 0

    def count(self, n_queries: int, started: float) -> None:
        """Add a call of inference that ends now."""
        self.inference += time.perf_counter() - started
        self.calls += n_queries


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

    With X the features, J_q the structured hinge of query q and ω_q its weight,

        F(v) = ½‖v‖² + C·risk(v),    risk(v) = Σ_q ω_q J_q(X v).

    The objective holds risk(v). The solver adds the penalty and C.

    Parameters
    ----------
    features : Features
        Features of all samples, as `as_features` returns them.
    task : Task
        Ranking task, as `pose` returns it.
    clock : Clock, optional
        Where to count the time. The default is a new clock.

    See Also
    --------
    natural_C : A scale for C that suits an objective.
    cutting_plane : Minimise an objective.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import Objective, as_features, pose
    >>> X, relevant = np.array([[0.0], [1.0], [2.0]]), np.array([False, False, True])
    >>> objective = Objective(as_features(X), pose(relevant, AveragePrecision()))
    >>> round(objective.evaluate(np.zeros(1)).risk, 4)
    0.6667
    """

    features: Features
    task: Task
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.n_coefs = self.features.n_coefs  # with that of the intercept, if there is one

    def scores(self, v: Vector) -> Vector:
        """Score the samples by X v.

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
        scores = self.features.scores(v)
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
        risk : float
            The risk at v.
        cut : tuple of a float and an ndarray of shape (n_coefs,)
            The plane that touches the risk there: risk(u) ≥ offset + normal·u for every u.

        Raises
        ------
        ValueError
            If the features are too large to be squared.
        """
        scores, started = self.scores(v), time.perf_counter()
        solved = self.task.inference.solve(self.task.gather(scores))
        self.clock.count(self.task.n_queries, started)
        risk, started = self.task.weigh(solved), time.perf_counter()
        normal = self.features.combine(risk.gradient)
        self.clock.products += time.perf_counter() - started
        surrogate = self.task.inference.surrogate
        offset = surrogate.scale * risk.loss if isinstance(surrogate, Hinge) else risk.value - float(normal @ v)
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
            The largest absolute score.
        """
        return float(np.abs(self.features.scores(v)).max(initial=0.0))
