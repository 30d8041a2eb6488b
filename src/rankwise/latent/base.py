"""Base class of the linear rankers of bags: their common parameters, and what they can do once they are fitted."""

from __future__ import annotations

import os
import threading
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.inputs import as_threads
from rankwise.latent.bags import Bags, as_bags
from rankwise.latent.working_set import best_of
from rankwise.linear.base import BaseLinearRanker
from rankwise.linear.features import Vector
from rankwise.linear.labels import two_classes


@dataclass(eq=False, repr=False)
class BagRanker(BaseLinearRanker):
    """Base class of the linear rankers of bags."""

    _: KW_ONLY
    init: Any = "mean"
    outer_tol: float = 1e-3
    max_outer: int = 50
    checkpoint: str | os.PathLike[str] | None = None
    n_threads: int = 1
    random_state: int = 0
    method: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    scale: float = 1.0
    fit_intercept: bool = True
    verbose: int = 0

    def __post_init__(self) -> None:
        self._stop: threading.Event | None = None  # if set by another thread, a fit stops after the current round

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Score bags by their best candidates.

        The score of a candidate is its features times coef_, plus intercept_.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags, as for `fit`.

        Returns
        -------
        ndarray of shape (n_bags,)
            Score of each bag, the highest score of its candidates. `predict` returns the relevant class, classes_[1],
            for scores above 0.
        """
        return self._best(bags)[0]

    def best_candidate(self, bags: Any) -> NDArray[np.int64]:
        """Find the best candidate of each bag.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags, as for `fit`.

        Returns
        -------
        ndarray of int of shape (n_bags,)
            Number of the candidate with the highest score, counted from 0 in each bag. Of equal ones, the first.
        """
        return self._best(bags)[1]

    def candidate_scores(self, bags: Any) -> NDArray[np.float64]:
        """Score every candidate.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags, as for `fit`.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Score of every candidate, its features times coef_, plus intercept_; bag after bag.
        """
        check_is_fitted(self, "coef_")
        checked = as_bags(bags)
        if checked.width != self.n_features_in_:
            raise ValueError(
                f"bags have {checked.width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        scores: Vector = checked.scores(self.coef_[0], as_threads(self.n_threads)) + self.intercept_[0]
        return scores

    def _best(self, bags: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        bags = as_bags(bags)
        scores = self.candidate_scores(bags)
        if not len(bags):
            return np.zeros(0), np.zeros(0, np.int64)
        offsets = bags.offsets[:-1]
        best, at = best_of(scores, offsets)
        return best, at - offsets

    def _checked_bags(self, bags: Any, y: Any) -> tuple[Bags, NDArray[np.bool_]]:
        checked = as_bags(bags)
        if not len(checked):
            raise ValueError("there are no bags; pass positive and negative bags")
        labels = column_or_1d(y, warn=True)
        if labels.size != len(checked):
            raise ValueError(f"there are {len(checked)} bags, but {labels.size} labels; pass one label per bag")
        self.classes_, relevant = two_classes(labels)
        self.n_features_in_ = checked.width
        return checked, relevant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
