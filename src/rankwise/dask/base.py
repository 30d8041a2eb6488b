"""Base class of the rankers on Dask: their client, lazy predictions, and conversion to an ordinary ranker."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankwise.dask.cluster import as_client
from rankwise.dask.collections import as_dask_array, check_dimensions, feature_names, is_frame, partitions
from rankwise.dask.faults import fault_of_features
from rankwise.dask.loading import check_types
from rankwise.dask.task import DaskObjective
from rankwise.linear.base import BaseLinearRanker, between, ranks_of
from rankwise.linear.features import INTERCEPT, Vector

__all__ = ["DaskRanker", "like_local"]

Kind = TypeVar("Kind", bound=type)
# What is said of data in memory, and what is said here.
_WORDS = (
    ("array-like or sparse matrix", "dask Array or DataFrame"),
    ("array-like", "dask Array or Series"),
    ("ndarray", "dask Array"),
)


def like_local(kind: Kind) -> Kind:
    """Give methods of a ranker without a docstring that of the ordinary ranker, for Dask collections."""
    local = getattr(kind, "_local", BaseLinearRanker)
    for name in ("fit", "decision_function", "predict", "rank"):
        if name in vars(kind):
            text = (getattr(local, name).__doc__ or "").replace(
                f"\n        {local.__name__}\n", f"\n        {kind.__name__}\n"
            )
            for said, here in _WORDS:
                text = text.replace(said, here)
            vars(kind)[name].__doc__ = text
    return kind


@like_local
class DaskRanker(BaseLinearRanker):
    """Base class of the rankers on Dask. client: None means the current one."""

    _local: type[BaseLinearRanker]
    client: Client | None
    exchanged_: dict[str, int]

    @property
    def client_(self) -> Client:
        """Dask client of the ranker.

        Returns
        -------
        distributed.Client
            The client that was passed, or the current one.
        """
        return as_client(self.client)

    def __sklearn_clone__(self) -> Any:
        others = self.get_params(deep=False)
        client = others.pop("client")  # a client cannot be copied
        return type(self)(**{name: clone(value, safe=False) for name, value in others.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def to_local(self) -> Any:
        """Convert to the ordinary ranker for data in memory.

        The ordinary ranker predicts without Dask. Nothing is fitted again.

        Returns
        -------
        LinearRanker or RankSVM
            The ordinary ranker, fitted.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the ranker is not fitted.
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
        return self._by_partition(X, "decision_function", np.dtype(np.float64))

    def predict(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        return self._by_partition(X, "predict", np.asarray(self.classes_).dtype)

    def rank(self, X: Any, qid: Any = None) -> Any:
        scores = self.decision_function(X)
        ids = None if qid is None else partitions(qid, "qid")
        ranked = delayed(_rank)(scores.to_delayed().ravel().tolist(), ids)
        blocks = [ranked[k] for k in range(scores.numblocks[0])]
        return as_dask_array(blocks, scores.chunks[0], np.empty(0, np.int64))

    def _by_partition(self, X: Any, method: str, dtype: np.dtype[Any]) -> Any:
        model = delayed(self.to_local())
        given = partitions(X, "X")
        check_dimensions(X, "X", 2)
        width = len(X.columns) if is_frame(X) else X.shape[1]
        if width != self.n_features_in_ and not np.isnan(width):
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} was fitted to {self.n_features_in_}; pass "
                "the same features"
            )
        sizes = (np.nan,) * len(given) if is_frame(X) else X.chunks[0]
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        places = zip(given, range(len(given)), firsts, strict=True)
        blocks = [delayed(_predict)(model, method, *place) for place in places]
        return as_dask_array(blocks, sizes, np.empty(0, dtype))

    def _take_names(self, X: Any, n_features: int) -> None:
        self.n_features_in_ = n_features
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _adopt_parts(self, learnt: Vector, objective: DaskObjective) -> None:
        """Take the coefficients, like `_adopt`, with scores on the cluster."""
        self._set(learnt)
        if learnt.size == self.n_features_in_ and self.fit_intercept:
            ends = objective.task.threshold_ends(objective.score(learnt))
            self.intercept_ = np.array([-between(*ends)])

    def _set(self, learnt: Vector) -> None:
        d = self.n_features_in_
        self.coef_ = learnt[None, :d].copy()
        self.intercept_ = INTERCEPT * learnt[d:] if learnt.size > d else np.zeros(1)

    def _keep_partial(self, learnt: Vector) -> None:
        """Keep the best model so far as an ordinary ranker in partial_. Its intercept is 0 unless it was learnt."""
        self._set(learnt)
        self.partial_ = self.to_local()
        del self.coef_, self.intercept_


def _predict(model: Any, method: str, block: Any, number: int, first: float) -> NDArray[Any]:
    if not block.shape[0]:
        return np.empty(0, np.float64 if method == "decision_function" else model.classes_.dtype)
    try:
        found: NDArray[Any] = getattr(model, method)(block)
    except (TypeError, ValueError) as error:
        raise fault_of_features(block, error).error(number, first) from None
    return found


def _rank(scores: list[Vector], qid: list[Any] | None) -> list[NDArray[np.int64]]:
    every, ids = np.concatenate(scores), None
    if qid is not None:
        arrays = [np.asarray(part) for part in qid]
        check_types([array.dtype if array.size else None for array in arrays], "qid")
        ids = np.concatenate([array for array in arrays if array.size] or arrays)
        if ids.shape != every.shape:
            raise ValueError(f"qid has {ids.size} entries, but X has {every.size} rows; pass one per row")
    whole = ranks_of(every, ids)
    return list(np.split(whole, np.cumsum([part.size for part in scores])[:-1]))
