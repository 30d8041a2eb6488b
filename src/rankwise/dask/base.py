"""What rankers on Dask share: their client, lazy scores and ranks, and the ordinary ranker they become."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankwise.dask.collections import as_client, as_dask_array, feature_names, is_frame, partitions
from rankwise.dask.objective import DaskObjective
from rankwise.linear.base import BaseLinearRanker, ranks_of
from rankwise.linear.features import INTERCEPT, Vector
from rankwise.linear.threshold import between

__all__ = ["DaskRanker"]


class DaskRanker(BaseLinearRanker):
    """What rankers on Dask share. client: None takes the one in use."""

    _local: type[BaseLinearRanker]
    client: Client | None
    exchanged_: dict[str, int]

    @property
    def client_(self) -> Client:
        """The client in use."""
        return as_client(self.client)

    def __sklearn_clone__(self) -> Any:
        others = self.get_params(deep=False)
        client = others.pop("client")  # which is no value to copy
        return type(self)(**{name: clone(value, safe=False) for name, value in others.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def to_local(self) -> Any:
        """The same ranker for data in memory, which can be saved.

        Returns
        -------
        estimator
            An ordinary ranker, fitted.
        """
        check_is_fitted(self, "coef_")
        params = self._local().get_params(deep=False)
        model = self._local(**{name: getattr(self, name) for name in params if hasattr(self, name)})
        left_out = {"partial_", "exchanged_"}
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_") and name not in left_out:
                setattr(model, name, value)
        return model

    def decision_function(self, X: Any) -> Any:
        """Scores of the samples, X·coef_ + intercept_: lazily, a Dask array of the partitions of X.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n, d)
            Samples.

        Returns
        -------
        dask Array of shape (n,)
            The higher, the more relevant; above 0, classes_[1].
        """
        return self._by_partition(X, "decision_function", np.dtype(np.float64))

    def predict(self, X: Any) -> Any:
        """classes_[1] where the decision function is above 0, else classes_[0]: lazily, a Dask array."""
        return self._by_partition(X, "predict", np.asarray(self.classes_).dtype)

    def rank(self, X: Any, qid: Any = None) -> Any:
        """The place of each sample in the ranking of its query: lazily, a Dask array; equal scores by row.

        Scores are brought together on one worker, 8 bytes a sample.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n, d)
            Samples.
        qid : dask Array or Series of shape (n,), optional
            The query of each sample, in the partitions of X.

        Returns
        -------
        dask Array of shape (n,)
            1 is the best.
        """
        scores = self.decision_function(X)
        ids = None if qid is None else partitions(qid, "qid")
        ranked = delayed(_rank)(scores.to_delayed().ravel().tolist(), ids)
        blocks = [ranked[k] for k in range(scores.numblocks[0])]
        return as_dask_array(blocks, scores.chunks[0], np.empty(0, np.int64))

    def _by_partition(self, X: Any, method: str, dtype: np.dtype[Any]) -> Any:
        model = delayed(self.to_local())
        blocks = [delayed(_predict)(model, block, method) for block in partitions(X, "X")]
        sizes = (np.nan,) * len(blocks) if is_frame(X) else X.chunks[0]
        return as_dask_array(blocks, sizes, np.empty(0, dtype))

    def _take_names(self, X: Any, n_features: int) -> None:
        self.n_features_in_ = n_features
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _adopt_parts(self, learnt: Vector, objective: DaskObjective) -> None:
        """`_adopt` by scores on the cluster."""
        self._set(learnt)
        if learnt.size == self.n_features_in_ and self.fit_intercept:
            ends = objective.task.threshold_ends(objective.score(learnt))
            self.intercept_ = np.array([-between(*ends)])

    def _set(self, learnt: Vector) -> None:
        d = self.n_features_in_
        self.coef_, self.intercept_ = (
            learnt[None, :d].copy(),
            INTERCEPT * learnt[d:] if learnt.size > d else np.zeros(1),
        )

    def _keep_partial(self, learnt: Vector | None) -> None:
        """The best so far as an ordinary ranker, in partial_; its intercept is 0 where it was not learnt."""
        if learnt is not None:
            self._set(learnt)
            self.partial_ = self.to_local()
            del self.coef_, self.intercept_


def _predict(model: Any, block: Any, method: str) -> NDArray[Any]:
    if not block.shape[0]:
        return np.empty(0, np.float64 if method == "decision_function" else model.classes_.dtype)
    found: NDArray[Any] = getattr(model, method)(block)
    return found


def _rank(scores: list[Vector], qid: list[Any] | None) -> list[NDArray[np.int64]]:
    ids = None if qid is None else np.concatenate([np.asarray(part) for part in qid])
    whole = ranks_of(np.concatenate(scores), ids)
    return list(np.split(whole, np.cumsum([part.size for part in scores])[:-1]))
