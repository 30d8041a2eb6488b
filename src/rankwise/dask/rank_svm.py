"""DaskRankSVM: RankSVM on samples that lie on several machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankwise.dask.base import DaskRanker
from rankwise.dask.collections import load_parts
from rankwise.dask.labelling import label
from rankwise.dask.layout import with_base
from rankwise.dask.objective import DaskObjective, DaskTask, pose_parts
from rankwise.inputs import as_scale
from rankwise.linear.features import Vector
from rankwise.linear.prior import Prior, as_coefficients
from rankwise.linear.rank_svm import RankSVM
from rankwise.linear.solvers import Settings, SolverResult
from rankwise.method import as_method
from rankwise.progress import Progress

__all__ = ["DaskRankSVM"]


@dataclass(eq=False, repr=False)
class DaskRankSVM(DaskRanker, RankSVM):
    """`RankSVM` on Dask arrays or dataframes: the same objective, solver and result, any partitioning, no shuffle.

    Scores stay on the workers. A step exchanges O(positives + buckets + features) numbers, however many samples there
    are; queries that lie in one partition are solved there. Of a query of fewer than about 8,000 samples that lies in
    several partitions, and of any such query with a loss without a discount or with a cut-off, scores are sent: keep
    queries together where you can.

    Parameters
    ----------
    loss, C, solver, method, tol, max_iter, scale, fit_intercept, warm_start, random_state, verbose
        As in `RankSVM`; solver="frank-wolfe" takes a single query only. n_threads is not used.
    prior : array-like of shape (d,), optional
        Coefficients to refine.
    client : distributed.Client, optional
        None takes the one in use.

    Attributes
    ----------
    coef_, intercept_, classes_, C_, objective_, dual_, gap_, converged_, n_iter_, history_, timing_
        As in `RankSVM`.
    exchanged_ : dict
        Bytes "sent" to each worker and "received" from them by the client, and the "rounds" that took, of the fit.
    partial_ : RankSVM
        After an error on the way: the best model until then, if there was one.

    See Also
    --------
    to_local : the ordinary `RankSVM`, which can be saved.

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
        """Fit to samples on the cluster.

        A worker that dies costs time, not the result. After Ctrl-C the best model so far is kept, if there is one, and
        KeyboardInterrupt goes on; after any other error it is in partial_.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n, d)
            Samples, dense or blocks of CSR; float32 stays float32. Partitions of unknown size are welcome.
        y : dask Array or Series of shape (n,)
            Labels of two classes; with qid, more than two numbers are grades, at least 0.
        qid : dask Array or Series of shape (n,), optional
            The query of each sample, in any order over any partitions; without it all samples are one.
        query_weight : dask Array or Series of shape (n,), optional
            The weight of each sample's query in the mean.

        Returns
        -------
        DaskRankSVM
            Itself, fitted.

        Raises
        ------
        SchedulerLostError
            If the scheduler is gone.
        ValueError
            If a parameter or the data are not in order.
        """
        loss, solve = self.validated()
        scale, method = as_scale(self.scale), as_method(self.method, loss)
        parts, d = load_parts(self.client_, X, y, qid, query_weight)
        known, self.classes_, rows = label(parts, qid is not None)
        self._take_names(X, d)
        task, _ = pose_parts(known, rows.size, loss, method, scale)
        plain, prior = DaskObjective(task, d), self._prior(d)
        self.C_ = self._given_or_usual_C(plain)
        learns = bool(self.fit_intercept and loss.learns_intercept)
        objective = DaskObjective(_with_base(task, prior), d + learns, learns)
        best: list[Vector] = []
        progress = Progress(f"DaskRankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        report = None if progress is None else lambda step: progress.say(str(step))
        settings = Settings(
            float(self.tol), int(self.max_iter), self._start(d + learns, prior), report, self.random_state,
            best.append,
        )  # fmt: skip
        try:
            result = solve(objective, self.C_, settings)
            self.exchanged_ = vars(parts.traffic).copy()
            self._keep_parts(result, DaskObjective(task, d + learns, learns), prior)
        except Exception:
            if best:
                self._keep_partial(best[-1] if prior is None else best[-1] + prior.start(best[-1].size))
            raise
        finally:
            if progress is not None:
                progress.close()
        return self

    def _keep_parts(self, result: SolverResult, objective: DaskObjective, prior: Prior | None) -> None:
        learnt = result.coef if prior is None else result.coef + prior.start(result.coef.size)
        self._adopt_parts(learnt, objective)
        self._tell(result)

    def _prior(self, d: int) -> Prior | None:
        if self.prior is None:
            return None
        if hasattr(self.prior, "fit"):
            raise TypeError("on Dask, prior must be coefficients; pass those of the fitted classifier, model.coef_")
        return Prior(as_coefficients(self.prior, d), 0.0, np.empty(0))


def _with_base(task: DaskTask, prior: Prior | None) -> DaskTask:
    """The task with the scores of a prior."""
    if prior is None:
        return task
    return replace(task, exchange=task.exchange.derive(with_base, prior.coef, prior.intercept, reads=True))
