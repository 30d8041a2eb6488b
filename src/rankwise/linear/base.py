"""Base class of the linear rankers: scores, ranks, classes and files; and checks of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arguments import check_positive, is_whole
from rankwise.documenting import documented
from rankwise.io.models import ModelFile
from rankwise.linear.features import INTERCEPT, Features, as_features
from rankwise.linear.model_file import read_linear, write_linear
from rankwise.linear.task import Labels, as_labels
from rankwise.metrics.loss import Loss
from rankwise.queries import group

# C² times the square of a feature must not overflow.
_LARGEST_C = 1e50


@documented
class BaseLinearRanker(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the linear rankers: what they can do once they are fitted."""

    _kind: str
    fit_intercept: bool
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score samples by X·coef_ + intercept_.

        Parameters
        ----------
        {X_seen}

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores; a higher one is more likely relevant.
        """
        check_is_fitted(self, "coef_")
        X = self._checked(X, reset=False)
        scores: NDArray[np.float64] = as_features(X).scores(self.coef_[0]) + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each sample.

        Parameters
        ----------
        {X_seen}

        Returns
        -------
        ndarray of shape (n_samples,)
            The relevant class, classes_[1], where `decision_function` is above 0, and classes_[0] elsewhere.
        """
        above = self.decision_function(X) > 0.0
        labels: NDArray[Any] = self.classes_[above.astype(int)]
        return labels

    def rank(self, X: Any, qid: ArrayLike | None = None) -> NDArray[np.int64]:
        """Rank samples by their scores, within each query.

        Parameters
        ----------
        {X_seen}
        qid : array-like of shape (n_samples,), optional
            Query of each sample, in any order. By default all samples form one query.

        Returns
        -------
        ndarray of shape (n_samples,)
            Rank of each sample in its query; the best has rank 1. Equal scores are ranked in the order of their rows.
        """
        return ranks_of(self.decision_function(X), qid)

    def save(self, path: str | Path, note: Mapping[str, Any] | None = None) -> None:
        """Save the fitted model to a file, which `rankwise.load` reads.

        The file is written completely or not at all, and it contains data only, no code. A parameter that is not plain
        data, such as a splitter, is not saved, and a loss is saved by its name. Predictions do not depend on them.

        Parameters
        ----------
        path : str or Path
            File to write or replace.
        note : mapping, optional
            More plain data to keep: `rankwise.io.read_model(path).header["note"]`.
        """
        check_is_fitted(self, "coef_")
        write_linear(path, self._kind, self, note)

    @classmethod
    def from_file(cls, file: ModelFile, path: str | Path) -> BaseLinearRanker:
        """Build the ranker from a model file, as `rankwise.load` does.

        Parameters
        ----------
        file : ModelFile
            Contents of the model file.
        path : str or Path
            Where the file is, for error messages.

        Returns
        -------
        BaseLinearRanker
            The fitted ranker.
        """
        params, attributes = read_linear(file, path, set(cls().get_params(deep=False)))
        model = cls(**params)
        for name, value in attributes.items():
            setattr(model, name, value)
        model._check_loaded(path)
        return model

    def _check_loaded(self, path: str | Path) -> None:
        """Refuse what was loaded if it does not hold together."""

    def _shared(self, single: type[BaseLinearRanker]) -> dict[str, Any]:
        """Return the parameters that the ranker without a search has too, except `verbose`."""
        names = set(single().get_params(deep=False)) & set(self.get_params(deep=False)) - {"verbose"}
        return {name: getattr(self, name) for name in sorted(names)}

    def _checked(self, X: Any, *y: Any, reset: bool) -> Any:
        refuse_broken(X)
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, *y, reset=reset, accept_sparse=["csr", "csc"], dtype=dtypes, order=None)

    def _checked_both(self, X: Any, y: Any, qid: ArrayLike | None = None) -> tuple[Any, Labels]:
        """Return X, checked, and the labels. With qid, more than two different numbers in y are grades."""
        X, y = self._checked(X, y, reset=True)
        self.classes_, labels = as_labels(y, has_queries=qid is not None)
        return X, labels

    def _features(self, X: Any, loss: Loss) -> Features:
        """Return X as features, with a column for the intercept if the loss depends on it."""
        return as_features(X, INTERCEPT if self.fit_intercept and loss.judges_labels else 0.0)

    def _adopt(self, learnt: NDArray[np.float64], scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> None:
        """Take the coefficients. An intercept that was not learnt is set where F1 of the scores is highest."""
        d = self.n_features_in_
        self.coef_, self.intercept_ = learnt[None, :d].copy(), np.zeros(1)
        if learnt.size > d:
            self.intercept_ = INTERCEPT * learnt[d:]
        elif self.fit_intercept:
            self.intercept_ = np.array([-best_f1_threshold(scores, relevant)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def ranks_of(scores: NDArray[np.float64], qid: ArrayLike | None) -> NDArray[np.int64]:
    """Return the rank of each sample in its query, (n,). The best has rank 1; ties are in the order of rows."""
    n = scores.size
    codes, starts = np.zeros(n, np.int64), np.zeros(1, np.int64)
    if qid is not None:
        grouping = group(qid, n)
        starts = grouping.starts[:-1]
        codes = grouping.scatter(np.repeat(np.arange(starts.size), np.diff(grouping.starts)))
    order = np.lexsort((-scores, codes))
    ranks = np.empty(n, np.int64)
    ranks[order] = 1 + np.arange(n) - starts[codes[order]]
    return ranks


def refuse_broken(X: Any) -> None:
    """Refuse masked arrays, and sparse matrices whose indices are out of bounds."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X has masked entries; fill them or drop their rows")
    if getattr(X, "format", None) in ("csr", "csc"):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X is not a valid {X.format.upper()} matrix: {error}; build it again") from None


def check_numbers(C: float | None, **positive: float) -> None:
    """Refuse a C or other parameters, given by name, that are not positive numbers."""
    check_positive(C=1.0 if C is None else C, **positive)
    if C is not None and C > _LARGEST_C:
        raise ValueError(f"C must be at most {_LARGEST_C:g}, got {C!r}; scale the features up instead")


def check_counts(**counts: int) -> None:
    """Refuse parameters that are not integers of at least 1."""
    for name, value in counts.items():
        if not is_whole(value) or value < 1:
            raise ValueError(f"{name} must be an integer, at least 1, got {value!r}")


def best_f1_threshold(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """Return the threshold t with the highest F1 = 2 TP/(2 TP + FP + FN), where scores > t are predicted positive.

    It lies midway between two scores, so it is robust to rounding. Of several best thresholds, the highest is returned.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[:-1] > ranked[1:], True))  # a cut does not separate equal scores
    true = np.cumsum(relevant[order])[last]
    f1 = 2.0 * true / (last + 1.0 + relevant.sum())
    cut = int(last[np.argmax(f1)])
    return between(float(ranked[cut]), float(ranked[cut + 1]) if cut + 1 < ranked.size else -np.inf)


def between(above: float, below: float) -> float:
    """Return a threshold between two neighbouring scores; below: −∞ if there is none."""
    if below == -np.inf:
        return float(np.nextafter(above, -np.inf))
    middle = 0.5 * above + 0.5 * below
    return middle if middle < above else below  # adjacent floating-point numbers have no middle
