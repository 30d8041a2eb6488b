"""DaskLinearRanker: LinearRanker for samples on several machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankwise.dask.base import DaskRanker
from rankwise.dask.holding import holding
from rankwise.dask.labelling import Known, label
from rankwise.dask.linear_rows import DaskPaths, measure
from rankwise.dask.loading import load_parts
from rankwise.dask.objective import DaskObjective, pose_parts
from rankwise.linear.features import Vector
from rankwise.linear.labels import Labels
from rankwise.linear.linear_ranker import LinearRanker
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.task import pose
from rankwise.linear.tuning import Search
from rankwise.metrics import Metric, MetricLike
from rankwise.parts.exchange import Exchange, Joined
from rankwise.surrogates import Hinge

__all__ = ["DaskLinearRanker"]


class DaskLinearRanker(DaskRanker, LinearRanker):
    """Linear ranker that tunes itself for a ranking metric, on Dask arrays or dataframes.

    It is `LinearRanker` for data on a cluster. The search runs on the client with up to 32,768 samples (200,000 if
    there are queries), drawn in the same way as by `LinearRanker`. The final fits use all samples, which stay on the
    workers. If there are no more samples than that, the client does everything. The client holds the labels and queries
    of all samples, which needs about 20 bytes per sample.

    Parameters
    ----------
    metric : str or Metric, default "ap"
        Metric to train for, and by which candidates are compared: a name of `rankwise.metrics.METRICS`, such as "ap",
        "ndcg@10", "mrr" or "auc"; or "map", which is "ap" averaged over queries and needs `qid`. Scorers are not
        supported, because they need all samples in memory.
    cv : int or cross-validation splitter, default 5
        Number of folds, at least 2, or a splitter. Folds keep queries whole. Without queries they are stratified.
    n_jobs : int, optional
        Number of folds that the client fits at the same time, in threads. -1 uses all processors, and the default is
        one.
    random_state : int, default 0
        Seed for the random split into folds, and for the choice of the samples to search on.
    verbose : int, default 0
        If 1, show progress on the terminal.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients, for the features as they were passed to `fit`.
    intercept_ : ndarray of shape (1,)
        Intercept. It only moves the threshold of `predict`, which is set where F1 on the training samples is highest.
    classes_ : ndarray of shape (2,)
        The two class labels. The greater label, classes_[1], is the relevant (positive) class.
    report_ : TuningReport
        All candidates that were tried, with their scores in every fold and their weights in the final ranker.
    best_score_ : float
        Score of the best single candidate, averaged over the folds.
    metric_ : str
        Name of the metric.
    history_ : dict of str to ndarray
        The columns of `report_`.
    timing_ : dict of str to float
        Seconds that `fit` took: "total", "search" and "fit" (the final fits to all samples).
    exchanged_ : dict of str to int
        Traffic of `fit`: bytes "sent" by the client to each worker, bytes "received" from all workers, and "rounds" of
        messages.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features seen during `fit`. Only there if X was a dataframe whose column names are all strings.

    See Also
    --------
    rankwise.LinearRanker : The same ranker for data in memory.
    DaskRankSVM : Convex ranking SVM on Dask, with a certified optimum.

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
        """Fit the ranker to labelled samples on the cluster.

        If you press Ctrl-C during the search, `fit` stops the search, does the final fits with the candidates that it
        has compared so far, and then raises KeyboardInterrupt. If you press Ctrl-C again, it keeps what is fitted by
        then.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Samples, as dense or CSR blocks. The features need not be scaled.
        y : dask Array or Series of shape (n_samples,)
            Labels of two classes, of which the greater one is relevant. If `qid` is given, y may also hold grades:
            more than two different numbers, all at least 0.
        qid : dask Array or Series of shape (n_samples,), optional
            Query of each sample, in any order over any partitions. By default all samples form one query.
        query_weight : dask Array or Series of shape (n_samples,), optional
            Weight of each sample's query during training. It must be the same for all samples of a query.

        Returns
        -------
        DaskLinearRanker
            The fitted ranker itself.

        Raises
        ------
        SchedulerLostError
            If the Dask scheduler can no longer be reached, or if the client is closed.
        TypeError
            If the metric is a scorer, or if the data are not Dask collections.
        ValueError
            If a parameter or the data are invalid.
        KeyboardInterrupt
            After Ctrl-C.
        """
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
                for name in ("_known", "_task", "_scaling"):
                    self.__dict__.pop(name, None)
        return self

    def _fit_on(self, parts: Exchange, d: int, has_queries: bool, metric: Metric, n_jobs: int, started: float) -> None:
        self._known, self.classes_, rows = label(parts, has_queries)
        relevant, truth, ids, weight = (joined.values for joined in self._known.ask(_labels))
        labels = Labels(relevant, None if truth.dtype == np.bool_ else truth)
        metric = metric.for_grades(labels.grades)
        remote: Any = _Remote(self._known, rows, d)
        given = (ids if ids.size else None, weight if weight.size else None)
        data = self._data(remote, labels, *given, metric)
        if data.tried_on(self.random_state) is data:
            data = replace(data, X=remote[np.arange(relevant.size)])
        self._fit_to(data, metric, n_jobs, started)

    def _widen(self, search: Search, data: RankerData, metric: Metric | None, share: float) -> None:
        n, d = data.X.shape
        grades, loss = data.labels.grades, refined_by(metric)
        lowest = None if grades is None else pose(grades, loss, data.qid, data.weight).lowest_grade
        known = self._known.derive(_by_relevance, lowest)
        task, _ = pose_parts(known, data.X.n_parts, loss, Hinge())
        self._task = task if grades is None else pose_parts(self._known, data.X.n_parts, loss, Hinge())[0]
        self._scaling, is_dense = measure(known, n, d)
        largest = 1.0 if data.weight is None else float(data.weight.max())
        search.whole = DaskPaths((task, self._task), self._scaling, n, is_dense, largest, share)

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
        return self._exchange.ask(_rows_of, reads=True, each=local).values


class _Stacked:
    """Rows that are stacked when added."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __add__(self, other: _Stacked) -> _Stacked:
        pair = [self.values, other.values]
        if isinstance(self.values, np.ndarray):
            return _Stacked(np.concatenate(pair))
        return _Stacked(sparse.vstack(pair, format="csr"))


def _rows_of(X: Any, state: Known, rows: NDArray[np.int64]) -> _Stacked:
    return _Stacked(X[rows])


def _labels(state: Known) -> tuple[Joined, ...]:
    nothing = np.empty(0)
    ids, weight = (nothing if one is None else one for one in (state.qid, state.weight))
    return tuple(Joined(values) for values in (state.relevant, state.truth, ids, weight))


def _by_relevance(state: Known, lowest: float | None) -> Known:
    """Return a part without grades. lowest: grade above which samples are relevant, if there are grades."""
    relevant = state.relevant if lowest is None else state.truth > lowest
    return replace(state, truth=relevant, relevant=relevant)
