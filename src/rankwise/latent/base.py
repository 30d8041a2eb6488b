"""Base class of the linear rankers of bags."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.arguments import as_threads
from rankwise.latent.bags import Bags, as_bags
from rankwise.latent.working_set import best_of
from rankwise.linear.base import BaseLinearRanker
from rankwise.linear.features import Vector
from rankwise.linear.labels import two_classes


class BagRanker(BaseLinearRanker):
    """Base class of the linear rankers of bags."""

    n_threads: int
    _stop: threading.Event | None = None  # if set by another thread, a fit stops after the current round

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Score bags by their best candidates.

        The score of a candidate is its features times coef_, plus intercept_.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.

        Returns
        -------
        ndarray of shape (n_bags,)
            Score of each bag, the highest score of its candidates. `predict` returns the relevant class, classes_[1],
            for scores above 0.
        """
        return self._best(bags)[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each bag.

        Parameters
        ----------
        X : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.

        Returns
        -------
        ndarray of shape (n_bags,)
            The relevant class, classes_[1], where `decision_function` is above 0, and classes_[0] elsewhere.
        """
        return super().predict(X)

    def rank(self, X: Any, qid: ArrayLike | None = None) -> NDArray[np.int64]:
        """Rank bags by their scores, within each query.

        Parameters
        ----------
        X : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.
        qid : array-like of shape (n_bags,), optional
            Query of each bag, in any order. Bags of the same query are ranked together. By default all bags form one
            query.

        Returns
        -------
        ndarray of shape (n_bags,)
            Rank of each bag in its query. The best bag has rank 1. Bags with equal scores are ranked in their order.
        """
        return super().rank(X, qid)

    def best_candidate(self, bags: Any) -> NDArray[np.int64]:
        """Find the best candidate of each bag.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.

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
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.

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
