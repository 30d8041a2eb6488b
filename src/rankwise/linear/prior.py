"""A model w₀ to refine: with ½‖w − w₀‖² + C·mean J, the ranker leaves w₀ only as far as the loss pays for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from rankwise.linear.cross_validation import Fold, Search
from rankwise.linear.features import INTERCEPT, Vector, as_features
from rankwise.linear.labels import Labels
from rankwise.metrics import Metric

# Values of C for logistic regressions, and the number of features up to which Newton's method is fastest for them.
_LOGISTIC_CS = 4.0 ** np.arange(-9, 4)
_NEWTON = 100


class Prior(NamedTuple):
    """Linear model w₀ that a ranker starts from and refines. scores: of training samples, X·w₀ + intercept, (n,)."""

    coef: Vector
    intercept: float
    scores: Vector

    def start(self, n_coefs: int) -> Vector:
        """Return w₀ in the coordinates of the solver, which may have a column for the intercept."""
        return np.append(self.coef, self.intercept / INTERCEPT)[:n_coefs]


def take_prior(
    prior: Any,
    X: Any,
    relevant: NDArray[np.bool_],
    rows: NDArray[np.int64] | None = None,
    intercept: bool = True,
) -> Prior:
    """Return w₀ from coefficients, or from a linear classifier that is fitted here to `rows` (default: all) of X.

    A classifier's w₀ is scaled so that its scores of these rows have standard deviation 1, because its own scale is
    that of another loss. Wrap a fitted classifier in sklearn.frozen.FrozenEstimator. intercept: whether to use its own.
    """
    if isinstance(prior, Prior):
        return prior
    features = as_features(X)
    if hasattr(prior, "fit"):
        model = clone(prior)
        model.fit(X if rows is None else X[rows], relevant if rows is None else relevant[rows])
        coef, at_origin = _coefficients(model, features.n_coefs, intercept)
        scores = features.scores(coef) + at_origin
        spread = float(np.std(scores if rows is None else scores[rows]))
        if spread > 0.0:
            return Prior(coef / spread, at_origin / spread, scores / spread)
        return Prior(coef, at_origin, scores)
    coef = as_coefficients(prior, features.n_coefs)
    return Prior(coef, 0.0, features.scores(coef))


def as_coefficients(prior: Any, n_features: int) -> Vector:
    """Return the coefficients as an array, after a check of their number."""
    try:
        coef = np.asarray(prior, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise TypeError(f"prior must be a linear classifier or coefficients, got {prior!r}") from None
    _check(coef, n_features, "prior")
    return coef


def tuned_logistic(
    X: Any,
    labels: Labels,
    qid: ArrayLike | None,
    folds: list[Fold],
    metric: Metric,
    last: bool,
    intercept: bool = True,
) -> tuple[list[Prior | None], Prior | None]:
    """Return logistic regressions with the C that ranks left-out samples best: one per fold; if last, also for all."""
    models: dict[tuple[int, int], Prior] = {}

    def follow(path: int, f: int) -> Iterator[Vector]:
        train, test = folds[f]
        part, truth = X[train], labels.above_lowest(train)[train]
        for k, C in enumerate(_LOGISTIC_CS):
            model = FrozenEstimator(_logistic(C, X).fit(part, truth))
            models[k, f] = found = take_prior(model, X, labels.relevant, train, intercept)
            yield found.scores[test]

    search = Search(folds, [metric], labels, qid, (1, _LOGISTIC_CS.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not be exact
        if search.run(follow):
            raise KeyboardInterrupt
        best = int(np.argmax(np.nanmean(search.scores[0], axis=1)))
        whole = take_prior(_logistic(_LOGISTIC_CS[best], X), X, labels.relevant, None, intercept) if last else None
    return [models[best, f] for f in range(len(folds))], whole


def _logistic(C: float, X: Any) -> LogisticRegression:
    """Avoid liblinear, which penalises the intercept: that is harmful for imbalanced classes and a small C."""
    newton = isinstance(X, np.ndarray) and X.shape[1] <= _NEWTON
    return LogisticRegression(C=float(C), solver="newton-cholesky" if newton else "lbfgs", max_iter=1000)


def _coefficients(model: Any, n_features: int, intercept: bool) -> tuple[Vector, float]:
    name = type(model).__name__
    if not hasattr(model, "coef_"):
        raise TypeError(f"prior {name} has no coef_ after fitting; pass a linear classifier, or coefficients")
    coef = np.asarray(model.coef_, dtype=np.float64).ravel()
    _check(coef, n_features, f"prior {name}.coef_")
    return coef, float(np.ravel(getattr(model, "intercept_", 0.0))[0]) if intercept else 0.0


def _check(coef: Vector, n_features: int, what: str) -> None:
    if coef.size != n_features:
        raise ValueError(
            f"{what} has {coef.size} coefficients, but X has {n_features} features; pass one coefficient per feature"
        )
    if not np.isfinite(coef).all():
        raise ValueError(f"{what} has coefficients that are not finite; pass finite numbers")
