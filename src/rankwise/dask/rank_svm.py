"""DaskRankSVM: RankSVM for samples on several machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rankwise.dask.base import DaskRanker, like_local
from rankwise.dask.cluster import Hold, SchedulerLostError, holding
from rankwise.dask.labels import label
from rankwise.dask.loading import load_parts
from rankwise.dask.task import DaskObjective, pose_parts
from rankwise.linear.cutting_plane import Settings, cutting_plane
from rankwise.linear.features import Vector
from rankwise.linear.rank_svm import RankSVM
from rankwise.metrics.loss import Loss
from rankwise.progress import Progress
from rankwise.surrogates import Surrogate

__all__ = ["DaskRankSVM"]


@like_local
@dataclass(eq=False, repr=False)
class DaskRankSVM(DaskRanker, RankSVM):
    """Linear ranking SVM for a ranking loss, on Dask arrays or dataframes.

    It solves the same problem as `RankSVM`, with the same solver and the same result, for any partitioning and without
    a shuffle. With J_q the structured hinge of query q, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(X w).

    Parameters
    ----------
    loss, C, method, tol, max_iter, scale, surrogate, fit_intercept : optional
        As in `RankSVM`.
    n_threads : int, default 1
        Not used. Dask decides how many threads work.
    verbose : optional
        As in `RankSVM`.
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

    Notes
    -----
    `fit` takes dense or CSR blocks or dataframes, also of unknown sizes, and queries in any order over any partitions.
    If a worker dies, it takes longer but gives the same result. If the scheduler is lost, it raises
    `SchedulerLostError`; after this and any other error the best model is in partial_. Predictions are lazy. `rank`
    collects all scores on one worker, 8 bytes per sample.

    Scores stay on the workers. A step exchanges O(positives + buckets + features) numbers, independent of the number
    of samples. Queries within one partition are solved there. If a query is spread over several partitions, its scores
    are sent to the client if it has fewer than about 8,000 samples, or if the loss has a cut-off or no discount. So
    keep queries together if you can.

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

    _local = RankSVM

    client: Any = field(default=None, kw_only=True)

    def fit(self, X: Any, y: Any, qid: Any = None, query_weight: Any = None) -> DaskRankSVM:
        loss = self._validated()
        surrogate = self._surrogate()
        if not self.warm_start:
            self.__dict__.pop("partial_", None)  # of an earlier fit
        try:
            with holding(self.client) as hold:
                self._fit_on(hold, (X, y, qid, query_weight), loss, surrogate)
        except SchedulerLostError as error:
            if hasattr(self, "partial_"):
                more = "the best model so far is in partial_, and with warm_start=True a fit continues from there"
                raise SchedulerLostError(f"{error}; {more}") from error
            raise
        return self

    def _fit_on(self, hold: Hold, data: tuple[Any, ...], loss: Loss, surrogate: Surrogate) -> None:
        parts, d = load_parts(hold, *data)
        labels, self.classes_, rows = label(parts, data[2] is not None)
        self._take_names(data[0], d)
        task, _ = pose_parts(labels, rows.size, loss, surrogate)
        self.C_ = self._given_or_usual_C(DaskObjective(task, d))
        learns = bool(self.fit_intercept and loss.learns_intercept)
        objective = DaskObjective(task, d + learns, learns)
        best: list[Vector] = []
        progress = Progress(f"DaskRankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        report = None if progress is None else lambda step: progress.say(str(step))
        settings = Settings(float(self.tol), int(self.max_iter), self._start(d + learns), report, best.append)
        try:
            result = cutting_plane(objective, self.C_, settings)
            self.exchanged_ = vars(parts.traffic).copy()
            self._adopt_parts(result.coef, objective)
        except Exception:
            if best:
                self._keep_partial(best[-1])
            raise
        finally:
            if progress is not None:
                progress.close()
        self.__dict__.pop("partial_", None)
        self._take_result(result)

    def _start(self, n_coefs: int) -> Vector | None:
        is_partial = hasattr(self, "partial_") and not hasattr(self, "coef_")
        return RankSVM._start(self.partial_ if is_partial else self, n_coefs)
