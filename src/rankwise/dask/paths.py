"""Sums over samples on a cluster that LinearRanker needs: moments, classifiers, the smooth loss, spreads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.labels import Labelled
from rankwise.dask.task import DaskObjective, DaskTask, Layout, Loaded, Scaling, features_of, gradient_of, score
from rankwise.distributed.exchange import Exchange
from rankwise.linear.candidates import Paths
from rankwise.linear.features import Vector
from rankwise.linear.pointwise import POINTWISE, Classifier, Sums, hessian_of, sums_at
from rankwise.linear.standardising import gram_of, moments, rate_of_sizes, sums_of
from rankwise.surrogates import Smooth, Surrogate

__all__ = ["DaskPaths", "measure"]


class _Largest:
    """Numbers whose sum is the elementwise maximum."""

    def __init__(self, values: Vector) -> None:
        self.values = values

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(np.maximum(self.values, other.values))


def measure(exchange: Exchange, n: int, d: int) -> tuple[Scaling, bool]:
    """Return the centre and rate of every feature, as in `Standardised`, and whether the features are dense."""
    if exchange.ask(_is_sparse, reads=True):
        largest = exchange.ask(_sizes, reads=True).values
        return Scaling(np.zeros(d), rate_of_sizes(largest)), False

    def sums(*how: Any) -> Vector:
        found: Vector = exchange.ask(_column_sums, *how, reads=True)
        return found

    return Scaling(*moments(n, sums, lambda: exchange.ask(_sizes, reads=True).values)), True


class DaskPaths(Paths):
    """Paths of candidates that are fitted to all samples. weight: factor of all sample weights.

    tasks: by relevance and by grades; the same task twice if there are no grades.
    """

    def __init__(
        self, tasks: tuple[DaskTask, DaskTask], scaling: Scaling, n: int, is_dense: bool, weight: float
    ) -> None:
        self._task, self._graded = (replace(one, exchange=one.exchange.derive(_scale, scaling)) for one in tasks)
        self._n, self._is_dense, self._d, self._weight = n, is_dense, scaling.rate.size, weight
        self.stop = threading.Event()

    def risk(self) -> DaskObjective:
        """Return the structured hinge by relevance."""
        return DaskObjective(self._task, self._d)

    def classifier(self, name: str) -> Classifier:
        """Return a classifier by its name."""
        return Classifier(_DaskRows(self._task.exchange, self._d, self._is_dense, self._weight, name), name)

    def smooth(self, graded: bool) -> _DaskSmooth:
        """Return the smooth loss, by grades or by relevance."""
        return _DaskSmooth(self._graded if graded else self._task, self._n)

    def unit(self, coef: Vector) -> Vector:
        """Scale coefficients so that scores have standard deviation 1."""
        scored = self._task.exchange.derive(score, coef, False, reads=True)
        mean = scored.ask(_sum_of_scores) / self._n
        spread = float(np.sqrt(scored.ask(_squares, mean) / self._n))
        return coef / spread if 0.0 < spread < np.inf else coef


class _DaskRows:
    """`Rows` of a classifier on the cluster."""

    def __init__(self, exchange: Exchange, d: int, is_dense: bool, weight: float, loss: str) -> None:
        of_class: Vector = exchange.ask(_weights_of_classes) * np.array([weight, weight, 1.0])
        factors = np.full(2, weight)
        if POINTWISE[loss][1]:
            factors *= 0.5 / of_class[:2] * of_class[2]
            of_class[:2] = 0.5 * of_class[2]
        self._exchange, self._factors = exchange, factors
        self.n_coefs, self.is_dense = d, is_dense
        self.total = float(of_class[:2].sum())
        self.share = float(of_class[1]) / self.total

    def at(self, point: Vector, loss: str) -> Sums:
        """See `Rows`."""
        margins = self._exchange.derive(_margins, point, loss, self._factors, reads=True)
        value, gradient = margins.ask(getattr, "sums")
        return Sums(value, gradient, margins)

    def hessian(self, margins: Any, loss: str) -> NDArray[np.float64]:
        """See `Rows`."""
        found: NDArray[np.float64] = margins.ask(_hessian, loss, reads=True)
        return found


class _DaskSmooth:
    """`SmoothRisk` on the cluster."""

    def __init__(self, task: DaskTask, n: int) -> None:
        self._task, self._n = task, n
        self._start: Vector | None = None

    def at(self, coef: Vector, width: float, start: Vector | None, strength: float) -> tuple[float, Vector]:
        """See `SmoothRisk`."""
        surrogate, scored = Smooth(width, soft_ranks=False), self._score(coef)
        parts, risks = self._task.solve(scored, surrogate)
        away, mean = None, 0.0
        if start is not None:
            if self._start is not start:
                self._start, self._sum = start, self._score(start).ask(_sum_of_scores)
            away, mean = coef - start, (scored.ask(_sum_of_scores) - self._sum) / self._n
        value, lost, gradient, squares = parts.ask(
            _smooth_plane, risks.each, surrogate, away, mean, strength / self._n, reads=True
        )
        value, _ = risks.total(value, lost, [0.0] * len(risks.large))
        return value + 0.5 * strength * squares / self._n, gradient

    def _score(self, coef: Vector) -> Exchange:
        scored: Exchange = self._task.exchange.derive(score, coef, False, reads=True)
        return scored


@dataclass(frozen=True)
class _Margins:
    """A part with the margins of a classifier, its weights, and the sums of the loss and its gradient."""

    layout: Layout
    weights: Vector
    margin: Vector
    sums: tuple[float, Vector]


def _is_sparse(X: Any, state: Any) -> int:
    return int(not isinstance(X, np.ndarray))


def _sizes(X: Any, state: Any) -> _Largest:
    if not X.shape[0]:
        return _Largest(np.zeros(X.shape[1]))
    largest = abs(X).max(axis=0)
    return _Largest((largest if isinstance(X, np.ndarray) else largest.toarray().ravel()).astype(np.float64))


def _column_sums(X: Any, state: Any, *how: Any) -> Vector:
    return sums_of(X, *how)


def _scale(state: Layout, scaling: Scaling) -> Layout:
    return replace(state, scaling=scaling)


def _sum_of_scores(state: Loaded) -> float:
    return float(state.scores.sum())


def _squares(state: Loaded, mean: float) -> float:
    return float(((state.scores - mean) ** 2).sum())


def _row_weights(labels: Labelled) -> Vector:
    return np.ones(labels.truth.size) if labels.weight is None else labels.weight.astype(np.float64)


def _weights_of_classes(state: Layout) -> Vector:
    """Return the sums of the weights of negatives and positives, and the number of weights above 0."""
    weights, relevant = _row_weights(state.labels), state.labels.relevant
    return np.array([weights[~relevant].sum(), weights[relevant].sum(), np.count_nonzero(weights)], np.float64)


def _margins(X: Any, state: Layout, point: Vector, loss: str, factors: Vector) -> _Margins:
    relevant = state.labels.relevant
    weights, sign = _row_weights(state.labels) * factors[relevant.astype(int)], np.where(relevant, 1.0, -1.0)
    found = sums_at(features_of(X, state, False), sign, weights, point, loss)
    return _Margins(state, weights, found.margins, (found.value, found.gradient))


def _hessian(X: Any, state: _Margins, loss: str) -> NDArray[np.float64]:
    bend, scaling = POINTWISE[loss][0].bend(state.margin) * state.weights, state.layout.scaling
    assert scaling is not None
    gram = gram_of(X, bend, scaling.centre, scaling.rate)
    return hessian_of(gram, features_of(X, state.layout, False).combine(bend), bend)


def _smooth_plane(
    X: Any, state: Loaded, gathered: Vector | None, surrogate: Surrogate, away: Vector | None, mean: float, rate: float
) -> tuple[float, float, Vector, float]:
    """Return the contributions of a part to the risk, the loss, the gradient and the squares of moves."""
    features = features_of(X, state.layout, False)
    value, lost, gradient = gradient_of(state, gathered, surrogate)
    squares = 0.0
    if away is not None:
        moved = features.scores(away) - mean
        gradient += rate * moved
        squares = float(moved @ moved)
    return value, lost, features.combine(gradient), squares
