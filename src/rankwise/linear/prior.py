"""A model w₀ to refine: with ½‖w − w₀‖² + C·mean J, the ranker leaves w₀ only as far as the loss pays for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from rankwise.arguments import as_array
from rankwise.linear.features import INTERCEPT, Vector, as_features
from rankwise.linear.labels import Labels
from rankwise.metrics import Metric

# Values of C for logistic regressions, and the number of features up to which Newton's method is fastest for them.
_LOGISTIC_CS = 4.0 ** np.arange(-9, 4)
_NEWTON = 100


class Prior(NamedTuple):
    """Linear model w₀ that a ranker starts from and refines.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        Coefficients w₀.
    intercept : float
        Intercept of the model.
    scores : ndarray of shape (n_samples,)
        Scores of the training samples, X·w₀ + intercept.

    See Also
    --------
    rankwise.RankSVM : Refines the model that its parameter `prior` names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.linear import Prior
    >>> X, coef = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 1.0])
    >>> Prior(coef, 0.5, X @ coef + 0.5).start(3).tolist()
    [2.0, 1.0, 0.05]
    """

    coef: Vector
    intercept: float
    scores: Vector

    def start(self, n_coefs: int) -> Vector:
        """Convert w₀ to the coordinates of the solver.

        Parameters
        ----------
        n_coefs : int
            Number of coefficients of the solver: one more than features if the intercept has a column.

        Returns
        -------
        ndarray of shape (n_coefs,)
            Coefficients, with that of the intercept's column if there is one.
        """
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
    folds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    metric: Metric,
    last: bool,
    intercept: bool = True,
) -> tuple[list[Prior | None], Prior | None]:
    """Return logistic regressions with the C that ranks left-out samples best: one per fold; if last, also for all."""
    relevant, judged = labels.relevant, metric.truth(*labels)
    queries = None if qid is None else as_array(qid, "qid")
    scores, models = np.zeros((_LOGISTIC_CS.size, len(folds))), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not be exact
        for f, (train, test) in enumerate(folds):
            here = None if queries is None else queries[test]
            part, truth = X[train], labels.above_lowest(train)[train]
            for k, C in enumerate(_LOGISTIC_CS):
                models[k, f] = model = FrozenEstimator(_logistic(C, X).fit(part, truth))
                found = take_prior(model, X, relevant, train, intercept).scores
                scores[k, f] = metric(found[test], judged[test], qid=here, empty="skip")
        best = int(np.argmax(np.nanmean(scores, axis=1)))
        whole = take_prior(_logistic(_LOGISTIC_CS[best], X), X, relevant, None, intercept) if last else None
    return [take_prior(models[best, f], X, relevant, fold[0], intercept) for f, fold in enumerate(folds)], whole


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
