"""DaskRankSVM: RankSVM for samples on several machines, with lazy predictions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankwise.dask.cluster import Hold, SchedulerLostError, holding
from rankwise.dask.collections import as_dask_array, feature_names, is_frame, partitions
from rankwise.dask.faults import fault_of_features
from rankwise.dask.loading import check_types, load_parts
from rankwise.dask.plan import Counts, Meaning
from rankwise.dask.task import DaskObjective, pose
from rankwise.documenting import documented
from rankwise.linear.base import between, ranks_of
from rankwise.linear.cutting_plane import cutting_plane
from rankwise.linear.features import INTERCEPT, Vector
from rankwise.linear.rank_svm import RankSVM
from rankwise.metrics.loss import Loss
from rankwise.progress import Progress


@documented
@dataclass(eq=False, repr=False)
class DaskRankSVM(RankSVM):
    """Linear ranking SVM for a ranking loss, on Dask arrays or dataframes.

    It solves the problem of `RankSVM` with the same result, for any partitioning and without a shuffle. `fit` takes
    dense or CSR blocks or dataframes, also of unknown sizes, and queries in any order over any partitions. A step
    exchanges O(positives + buckets + features) numbers, see docs/larger_than_one_machine.md. After a
    `SchedulerLostError`, as after any error, the best model is in partial_. Predictions are lazy.

    Parameters
    ----------
    loss, C, method, tol, max_iter, scale, surrogate, fit_intercept : optional
        As in `RankSVM`.
    n_threads : int, default 1
        Not used: Dask decides.
    {verbose}
    warm_start : bool, default False
        Whether a further call of `fit` starts at the coefficients of the last one, or at those of partial_.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Attributes
    ----------
    coef_, intercept_, classes_, C_, objective_, dual_, gap_, converged_, n_iter_, history_ : optional
        As in `RankSVM`, and n_features_in_, feature_names_in_.
    timing_ : dict of str to float
        As in `RankSVM`; "inference" is the work of the cluster.
    exchanged_ : dict of str to int
        Traffic of `fit`: bytes "sent" by the client to each worker, bytes "received" from all workers, and "rounds" of
        messages.
    partial_ : RankSVM
        Best model so far, if `fit` failed after it had found one.

    See Also
    --------
    rankwise.RankSVM : The same ranker for data in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> X = da.from_array([[0.0, 1.0], [0.2, 0.1], [1.0, 0.9], [0.9, 0.2], [0.1, 0.4]], chunks=(2, 2))
    >>> y = da.from_array([0, 0, 1, 1, 0], chunks=2)
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster) as client:
    ...     model = DaskRankSVM("ap", C=10.0, client=client).fit(X, y)
    ...     model.rank(X).compute()[2:4].tolist()
    [1, 2]
    """

    client: Any = field(default=None, kw_only=True)

    def __sklearn_clone__(self) -> Any:
        others = self.get_params(deep=False)
        client = others.pop("client")  # a client cannot be copied
        return type(self)(**{name: clone(value, safe=False) for name, value in others.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def fit(self, X: Any, y: Any, qid: Any = None, query_weight: Any = None) -> DaskRankSVM:
        loss = self._validated()
        if not self.warm_start:
            self.__dict__.pop("partial_", None)  # of an earlier fit
        try:
            with holding(self.client) as hold:
                self._fit_on(hold, loss, X, y, qid, query_weight)
        except SchedulerLostError as error:
            if hasattr(self, "partial_"):
                more = "the best model so far is in partial_, and with warm_start=True a fit continues from there"
                raise SchedulerLostError(f"{error}; {more}") from error
            raise
        return self

    def _fit_on(self, hold: Hold, loss: Loss, X: Any, y: Any, qid: Any, query_weight: Any) -> None:
        parts, d = load_parts(hold, X, y, qid, query_weight)
        counts = Counts.of(parts)
        meaning, self.classes_ = Meaning.to_ranker(counts, qid is not None)
        self.n_features_in_, names = d, feature_names(X)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if names is not None:
            self.feature_names_in_ = names
        task, _ = pose(parts, counts, meaning, loss, self._surrogate())
        self.C_ = self._given_or_usual_C(DaskObjective(task, d))
        learns = bool(self.fit_intercept and loss.judges_labels)
        objective = DaskObjective(task, d + learns, learns)
        before = self if hasattr(self, "coef_") else vars(self).get("partial_", self)
        start = RankSVM._start(before, d + learns)
        best: list[Vector] = []
        with closing(Progress(f"DaskRankSVM {loss.name}, C={self.C_:.4g}")) as progress:
            report = (lambda step: progress.say(str(step))) if self.verbose else None
            try:
                result = cutting_plane(
                    objective, self.C_, self.tol, self.max_iter, start, report=report, best=best.append
                )
                self.exchanged_ = vars(parts.traffic).copy()
                self._take(result.coef)
                if not learns and self.fit_intercept:
                    self.intercept_ = np.array([-between(*objective.threshold_ends(result.coef))])
            except Exception:
                if best:
                    self._take(best[-1])  # its intercept is 0 unless it was learnt
                    self.partial_ = self.to_local()
                    del self.coef_, self.intercept_
                raise
        self.__dict__.pop("partial_", None)
        self._take_result(result)

    def _take(self, learnt: Vector) -> None:
        d = self.n_features_in_
        self.coef_ = learnt[None, :d].copy()
        self.intercept_ = INTERCEPT * learnt[d:] if learnt.size > d else np.zeros(1)

    def to_local(self) -> RankSVM:
        """Convert to the ordinary ranker, which predicts without Dask.

        Returns
        -------
        RankSVM
            The ordinary ranker, fitted.
        """
        check_is_fitted(self, "coef_")
        model = RankSVM(**self._shared(RankSVM), verbose=self.verbose)
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_") and name not in ("partial_", "exchanged_"):
                setattr(model, name, value)
        return model

    def decision_function(self, X: Any) -> Any:
        model = delayed(self.to_local())
        given = partitions(X, "X", 2)
        width = len(X.columns) if is_frame(X) else X.shape[1]
        if width != self.n_features_in_ and not np.isnan(width):
            raise ValueError(
                f"X has {width} features, but DaskRankSVM was fitted to {self.n_features_in_}; pass the same features"
            )
        sizes = (np.nan,) * len(given) if is_frame(X) else X.chunks[0]
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        blocks = [delayed(_scores)(model, block, k, firsts[k]) for k, block in enumerate(given)]
        return as_dask_array(blocks, sizes, np.empty(0))

    def predict(self, X: Any) -> Any:
        scores, classes = self.decision_function(X), np.asarray(self.classes_)
        return scores.map_blocks(lambda block: classes[(block > 0.0).astype(int)], meta=classes[:0])

    def rank(self, X: Any, qid: Any = None) -> Any:
        scores = self.decision_function(X)
        ids = None if qid is None else partitions(qid, "qid")
        ranked = delayed(_rank)(scores.to_delayed().ravel().tolist(), ids)
        blocks = [ranked[k] for k in range(scores.numblocks[0])]
        return as_dask_array(blocks, scores.chunks[0], np.empty(0, np.int64))


def _scores(model: RankSVM, block: Any, number: int, first: float) -> Vector:
    try:
        return model.decision_function(block) if block.shape[0] else np.empty(0)
    except (TypeError, ValueError) as error:
        raise fault_of_features(block, error).error(number, first) from None


def _rank(scores: list[Vector], qid: list[Any] | None) -> list[NDArray[np.int64]]:
    every, ids = np.concatenate(scores), None
    if qid is not None:
        arrays = [np.asarray(part) for part in qid]
        check_types([array.dtype if array.size else None for array in arrays], "qid")
        ids = np.concatenate([array for array in arrays if array.size] or arrays)
        if ids.shape != every.shape:
            raise ValueError(f"qid has {ids.size} entries, but X has {every.size} rows; pass one per row")
    return list(np.split(ranks_of(every, ids), np.cumsum([part.size for part in scores])[:-1]))
