"""DaskLinearRanker: LinearRanker for samples on several machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.dask.base import DaskRanker, like_local
from rankwise.dask.cluster import holding
from rankwise.dask.labels import Labelled, label
from rankwise.dask.loading import load_parts
from rankwise.dask.paths import DaskPaths, measure
from rankwise.dask.task import DaskObjective, pose_parts
from rankwise.distributed.exchange import Each, Exchange, Joined
from rankwise.linear.features import Vector
from rankwise.linear.labels import Labels
from rankwise.linear.linear_ranker import LinearRanker
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.task import pose
from rankwise.linear.tuning import Search
from rankwise.metrics import Metric, MetricLike
from rankwise.surrogates import Hinge

__all__ = ["DaskLinearRanker"]


@like_local
class DaskLinearRanker(DaskRanker, LinearRanker):
    """Linear ranker that tunes itself for a ranking metric, on Dask arrays or dataframes.

    It is `LinearRanker` for data on a cluster. The search runs on the client with up to 32,768 samples (200,000 if
    there are queries), drawn in the same way as by `LinearRanker`. The final fits use all samples, which stay on the
    workers. If there are no more samples than that, the client does everything. The client holds the labels and queries
    of all samples, which needs about 20 bytes per sample.

    Parameters
    ----------
    metric, cv, n_jobs, random_state, verbose : optional
        As in `LinearRanker`. Scorers are not supported as the metric, because they need all samples in memory. The
        client fits folds in threads.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Attributes
    ----------
    coef_, intercept_, classes_, report_, best_score_, metric_, history_, timing_ : optional
        As in `LinearRanker`, and n_features_in_, feature_names_in_.
    exchanged_ : dict of str to int
        Traffic of `fit`: bytes "sent" by the client to each worker, bytes "received" from all workers, and "rounds" of
        messages.

    See Also
    --------
    rankwise.LinearRanker : The same ranker for data in memory.
    DaskRankSVM : Convex ranking SVM on Dask, with a certified optimum.

    Notes
    -----
    Data and predictions are as in `DaskRankSVM`: lazy, in any partitions. `fit` raises `SchedulerLostError` if the Dask
    scheduler can no longer be reached.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X[:100, :5], chunks=(50, 5)), da.from_array(y[:100], chunks=50)
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster):
    ...     model = DaskLinearRanker("ap", cv=2).fit(X, y)
    >>> bool(model.best_score_ > 0.9), type(model.to_local()).__name__
    (True, 'LinearRanker')
    """

    _local = LinearRanker

    def __init__(
        self,
        metric: MetricLike | Callable[..., float] = "ap",
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        super().__init__(metric, cv=cv, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        self.client = client

    def fit(self, X: Any, y: Any, qid: Any = None, query_weight: Any = None) -> DaskLinearRanker:
        started = time.perf_counter()
        metric, n_jobs = self._judged_by(qid), self._n_jobs()
        if metric is None:
            raise TypeError(
                "on Dask, metric cannot be a scorer, which needs all samples in memory; pass a name or a Metric"
            )
        with holding(self.client) as hold:
            parts, d = load_parts(hold, X, y, qid, query_weight, alike=True)
            try:
                self._take_names(X, d)
                self._fit_on(parts, d, qid is not None, metric, n_jobs, started)
            finally:
                self.exchanged_ = vars(parts.traffic).copy()
                for name in ("_labels", "_task", "_scaling"):
                    self.__dict__.pop(name, None)
        return self

    def _fit_on(self, parts: Exchange, d: int, has_queries: bool, metric: Metric, n_jobs: int, started: float) -> None:
        self._labels, self.classes_, rows = label(parts, has_queries)
        relevant, truth, ids, weight = (joined.values for joined in self._labels.ask(_labels))
        labels = Labels(relevant, None if truth.dtype == np.bool_ else truth)
        metric = metric.for_grades(labels.grades)
        remote: Any = _Remote(self._labels, rows, d)
        given = (ids if ids.size else None, weight if weight.size else None)
        data = self._data(remote, labels, *given, metric)
        if data.tried_on(self.random_state) is data:
            data = replace(data, X=remote[np.arange(relevant.size)])
        self._fit_to(data, metric, n_jobs, started)

    def _widen(self, search: Search, data: RankerData, metric: Metric | None, share: float) -> None:
        n, d = data.X.shape
        grades, loss = data.labels.grades, refined_by(metric)
        lowest = None if grades is None else pose(grades, loss, data.qid, data.weight).lowest_grade
        by_relevance = self._labels.derive(_by_relevance, lowest)
        task, _ = pose_parts(by_relevance, data.X.n_parts, loss, Hinge())
        self._task = task if grades is None else pose_parts(self._labels, data.X.n_parts, loss, Hinge())[0]
        self._scaling, is_dense = measure(by_relevance, n, d)
        weight = share if data.weight is None else share / float(data.weight.max())
        search.whole = DaskPaths((task, self._task), self._scaling, n, is_dense, weight)

    def _take_found(self, search: Search, coef: Vector, data: RankerData) -> None:
        if not isinstance(search.whole, DaskPaths):
            super()._take_found(search, coef, data)
            return
        given = np.asarray(coef * self._scaling.rate)
        self._adopt_parts(given, DaskObjective(self._task, given.size))


class _Remote:
    """X on the cluster, whose rows can be fetched to the client."""

    def __init__(self, exchange: Exchange, rows: NDArray[np.int64], d: int) -> None:
        self._exchange, self._rows = exchange, rows
        self.shape, self.n_parts = (int(rows.sum()), d), rows.size

    def __getitem__(self, wanted: NDArray[np.int64]) -> Any:
        ends = np.cumsum(self._rows)
        each = np.split(wanted, np.searchsorted(wanted, ends[:-1]))
        local = [own - first for own, first in zip(each, ends - self._rows, strict=True)]
        return self._exchange.ask(_rows_of, Each(local), reads=True).values


def _rows_of(X: Any, state: Labelled, rows: NDArray[np.int64]) -> Joined:
    return Joined(X[rows])


def _labels(state: Labelled) -> tuple[Joined, ...]:
    nothing = np.empty(0)
    ids, weight = (nothing if one is None else one for one in (state.qid, state.weight))
    return tuple(Joined(values) for values in (state.relevant, state.truth, ids, weight))


def _by_relevance(state: Labelled, lowest: float | None) -> Labelled:
    """Return a part without grades. lowest: grade above which samples are relevant, if there are grades."""
    return replace(state, truth=state.relevant if lowest is None else state.truth > lowest)
