"""DaskLinearRanker: LinearRanker on samples that lie on several machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankwise.dask.base import DaskRanker
from rankwise.dask.collections import load_parts
from rankwise.dask.labelling import Known, label
from rankwise.dask.linear_rows import DaskPaths, measure
from rankwise.dask.objective import DaskObjective, pose_parts
from rankwise.linear.features import Vector
from rankwise.linear.labels import Labels
from rankwise.linear.linear_ranker import LinearRanker
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.tuning import Search
from rankwise.metrics import Metric, MetricLike
from rankwise.parts.exchange import Exchange, Joined

__all__ = ["DaskLinearRanker"]


class DaskLinearRanker(DaskRanker, LinearRanker):
    """`LinearRanker` on Dask arrays or dataframes: a ranker for a metric, with nothing to choose but the metric.

    As in `LinearRanker`, folds of up to 32,768 samples (200,000 in queries), drawn in the same way and brought to the
    client, choose; the last fits are to all samples, which stay where they are. Fewer samples are fitted by the client.
    The client holds the labels and the queries of all samples, about 20 bytes each while it draws.

    Parameters
    ----------
    metric : str or Metric
        What the ranker is judged by, as in `LinearRanker`; no scorer.
    cv, n_jobs, random_state, verbose
        As in `LinearRanker`. n_jobs: of the client.
    client : distributed.Client, optional
        None takes the one in use.

    Attributes
    ----------
    coef_, intercept_, classes_, report_, best_score_, metric_, timing_
        As in `LinearRanker`.
    exchanged_ : dict
        Bytes sent and received by the client, and the rounds that took.

    See Also
    --------
    DaskRankSVM : the convex structured hinge alone, with a certified gap.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = (da.from_array(values, chunks=200) for values in load_breast_cancer(return_X_y=True))
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster):
    ...     model = DaskLinearRanker("ap", cv=2).fit(X.rechunk((200, 30)), y)
    >>> bool(model.best_score_ > 0.99)
    True
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
        """Fit to labelled samples on the cluster; after Ctrl-C, as `LinearRanker` does.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n, d)
            Samples, dense or blocks of CSR.
        y : dask Array or Series of shape (n,)
            Labels of two classes; with qid, more than two numbers are grades.
        qid : dask Array or Series of shape (n,), optional
            The query of each sample, in any order over any partitions.
        query_weight : dask Array or Series of shape (n,), optional
            The weight of each sample's query in training.

        Returns
        -------
        DaskLinearRanker
            Itself, fitted.
        """
        started = time.perf_counter()
        metric, n_jobs = self._judged_by(qid), self._n_jobs()
        if metric is None:
            raise TypeError("on Dask, metric must be a name or a Metric: a scorer needs all samples in memory")
        parts, d = load_parts(self.client_, X, y, qid, query_weight)
        self._known, self.classes_, rows = label(parts, qid is not None)
        self._take_names(X, d)
        relevant, truth, ids, weight = (joined.values for joined in self._known.ask(_labels))
        labels = Labels(relevant, None if truth.dtype == np.bool_ else truth)
        metric = metric.for_grades(labels.grades)
        remote: Any = _Remote(self._known, rows, d)
        given = (ids if ids.size else None, weight if weight.size else None)
        data = self._data(remote, labels, *given, metric)
        try:
            if data.tried_on(self.random_state) is data:
                data = data._replace(X=remote[np.arange(relevant.size)])
            self._fit_to(data, metric, n_jobs, started)
        finally:
            del self._known
            self.exchanged_ = vars(parts.traffic).copy()
        return self

    def _widen(self, search: Search, data: RankerData, metric: Metric | None, share: float) -> None:
        n, d = data.X.shape
        known = self._known.derive(_heed, False)
        self._task, _ = pose_parts(known, data.X.n_parts, refined_by(metric))
        graded = self._task
        if data.labels.grades is not None:
            graded, _ = pose_parts(self._known.derive(_heed, True), data.X.n_parts, refined_by(metric))
        scaling, is_dense = measure(known, n, d)
        self._scaling = scaling
        largest = 1.0 if data.weight is None else float(data.weight.max())
        search.whole = DaskPaths((self._task, graded), scaling, n, is_dense, largest, share)

    def _take_found(self, search: Search, coef: Vector, data: RankerData) -> None:
        if search.whole is None:
            super()._take_found(search, coef, data)
            return
        given = np.asarray(coef * self._scaling.rate)
        self._adopt_parts(given, DaskObjective(self._task, given.size))
        del self._task, self._scaling


class _Remote:
    """X, of which rows are brought to the client."""

    def __init__(self, exchange: Exchange, rows: NDArray[np.int64], d: int) -> None:
        self._exchange, self._rows = exchange, rows
        self.shape, self.n_parts = (int(rows.sum()), d), rows.size

    def __getitem__(self, wanted: NDArray[np.int64]) -> Any:
        ends = np.cumsum(self._rows)
        each = np.split(wanted, np.searchsorted(wanted, ends[:-1]))
        local = [own - first for own, first in zip(each, ends - self._rows, strict=True)]
        return self._exchange.ask(_rows_of, reads=True, each=local).values


class _Stacked:
    """Rows whose sum with others is both."""

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


def _heed(state: Known, grades: bool) -> Known:
    truth = state.truth if grades else state.relevant
    return Known(state.number, state.y, state.qid, state.weight, truth, state.relevant)
