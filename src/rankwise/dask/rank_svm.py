"""DaskRankSVM: RankSVM for samples on several machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankwise.dask.base import DaskRanker
from rankwise.dask.holding import Hold, SchedulerLostError, holding
from rankwise.dask.labelling import label
from rankwise.dask.layout import with_base
from rankwise.dask.loading import load_parts
from rankwise.dask.objective import DaskObjective, DaskTask, pose_parts
from rankwise.linear.features import Vector
from rankwise.linear.prior import Prior, as_coefficients
from rankwise.linear.rank_svm import RankSVM
from rankwise.linear.solvers import Settings, SolverResult
from rankwise.metrics.loss import Loss
from rankwise.progress import Progress
from rankwise.surrogates import Hinge

__all__ = ["DaskRankSVM"]


@dataclass(eq=False, repr=False)
class DaskRankSVM(DaskRanker, RankSVM):
    """Linear ranking SVM for a ranking loss, on Dask arrays or dataframes.

    It solves the same problem as `RankSVM`, with the same solver and the same result, for any partitioning and without
    a shuffle. With J_q the structured hinge of query q, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(X w).

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise: "ap" (average precision), "ndcg", "ndcg@10", "mrr", "auc", "f1" or "zero-one", or
        a `Loss` of your own.
    C : float, optional
        Weight of the loss against the penalty. A larger C fits the training data more closely. The default is a
        multiple of the data's natural C, see `rankwise.linear.natural_C`.
    solver : {"auto", "cutting-plane", "frank-wolfe", "subgradient"}, default "auto"
        Algorithm for the convex problem. "auto" is "cutting-plane". "frank-wolfe" supports only a single query.
    method : str, default "auto"
        Algorithm that finds the most violating ranking, as in `rankwise.structured_hinge`. The result is the same for
        all exact methods, so "auto" is the right choice except in benchmarks.
    tol : float, default 1e-3
        Relative duality gap, (primal − dual)/primal, at which the solver stops. 1e-3 means that the objective is at
        most 0.1 % above its minimum.
    max_iter : int, default 10000
        Maximum number of iterations of the solver. Raise it after a ConvergenceWarning.
    scale : float, default 1.0
        Weight of the loss against the margin within the structured hinge. Few users need to change it.
    prior : array-like of shape (n_features,), optional
        Coefficients w₀ to start from and to refine. The penalty is then ½‖w − w₀‖² in place of ½‖w‖².
    fit_intercept : bool, default True
        Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it. The
        intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on the
        intercept and learns it, almost without penalty.
    warm_start : bool, default False
        Whether a further call of `fit` starts at the coefficients of the last one.
    n_threads : int, default 1
        Not used. Dask decides how many threads work.
    random_state : int, default 0
        Seed for the order in which "frank-wolfe" visits the queries. Other solvers do not use it.
    verbose : int, default 0
        If 1, show progress on the terminal.
    client : distributed.Client, optional
        Dask client to use. The default is the current one.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients of the ranker.
    intercept_ : ndarray of shape (1,)
        Intercept, which sets the threshold of `predict`.
    classes_ : ndarray of shape (2,)
        The two class labels. The greater label, classes_[1], is the relevant (positive) class.
    C_ : float
        Value of C that was used.
    objective_ : float
        Value of the objective at the solution, an upper bound of its minimum.
    dual_ : float
        Lower bound of the minimum of the objective.
    gap_ : float
        Certified relative duality gap, (objective_ − dual_)/objective_. The solution is at most this much worse than
        the optimum.
    converged_ : bool
        Whether gap_ is at most `tol`.
    n_iter_ : int
        Number of iterations of the solver.
    history_ : dict of str to ndarray
        Progress of the solver with one entry per iteration, see `rankwise.linear.Step`.
    timing_ : dict of str to float
        Seconds that `fit` took: "total" and "inference" (work of the cluster). "calls" counts how many queries were
        searched for their most violating ranking.
    exchanged_ : dict of str to int
        Traffic of `fit`: bytes "sent" by the client to each worker, bytes "received" from all workers, and "rounds" of
        messages.
    partial_ : RankSVM
        Best model so far, if `fit` failed after it had found one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features seen during `fit`. Only there if X was a dataframe whose column names are all strings.

    See Also
    --------
    rankwise.RankSVM : The same ranker for data in memory.
    DaskLinearRanker : Ranker on Dask that tunes itself, with only the metric to choose.

    Notes
    -----
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
        """Fit the ranker to labelled samples on the cluster.

        If a worker dies, the fit takes longer but gives the same result. If you press Ctrl-C, `fit` keeps the best
        model so far, if there is one, and raises KeyboardInterrupt. After any other error this model is in partial_.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Samples, as dense or CSR blocks. Data in float32 are not converted. Partitions may have unknown sizes.
        y : dask Array or Series of shape (n_samples,)
            Labels of two classes, of which the greater one is relevant. If `qid` is given, y may also hold grades:
            more than two different numbers, all at least 0.
        qid : dask Array or Series of shape (n_samples,), optional
            Query of each sample, in any order over any partitions. By default all samples form one query.
        query_weight : dask Array or Series of shape (n_samples,), optional
            Weight of each sample's query in the mean of the loss. It must be the same for all samples of a query.

        Returns
        -------
        DaskRankSVM
            The fitted ranker itself.

        Raises
        ------
        SchedulerLostError
            If the Dask scheduler can no longer be reached, or if the client is closed.
        TypeError
            If `prior` is an estimator, or if the data are not Dask collections.
        ValueError
            If a parameter or the data are invalid.
        KeyboardInterrupt
            After Ctrl-C.
        """
        loss, solve = self.validated()
        hinge = Hinge(self.scale, self.method)
        if not self.warm_start:
            self.__dict__.pop("partial_", None)  # of an earlier fit
        try:
            with holding(self.client) as hold:
                self._fit_on(hold, (X, y, qid, query_weight), loss, solve, hinge)
        except SchedulerLostError as error:
            if hasattr(self, "partial_"):
                more = "the best model so far is in partial_, and with warm_start=True a fit continues from there"
                raise SchedulerLostError(f"{error}; {more}") from error
            raise
        return self

    def _fit_on(self, hold: Hold, data: tuple[Any, ...], loss: Loss, solve: Any, hinge: Hinge) -> None:
        parts, d = load_parts(hold, *data)
        known, self.classes_, rows = label(parts, data[2] is not None)
        self._take_names(data[0], d)
        task, _ = pose_parts(known, rows.size, loss, hinge)
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

    def _start(self, n_coefs: int, prior: Prior | None) -> Vector | None:
        if hasattr(self, "coef_") or not hasattr(self, "partial_"):
            return super()._start(n_coefs, prior)
        self.coef_, self.intercept_ = self.partial_.coef_, self.partial_.intercept_
        try:
            return super()._start(n_coefs, prior)
        finally:
            del self.coef_, self.intercept_

    def _keep_parts(self, result: SolverResult, objective: DaskObjective, prior: Prior | None) -> None:
        learnt = result.coef if prior is None else result.coef + prior.start(result.coef.size)
        self._adopt_parts(learnt, objective)
        self.__dict__.pop("partial_", None)
        self._tell(result)

    def _prior(self, d: int) -> Prior | None:
        if self.prior is None:
            return None
        if hasattr(self.prior, "fit"):
            raise TypeError("on Dask, prior must be coefficients; fit the classifier yourself and pass its coef_")
        return Prior(as_coefficients(self.prior, d), 0.0, np.empty(0))


def _with_base(task: DaskTask, prior: Prior | None) -> DaskTask:
    """Return the task with the scores of a prior."""
    if prior is None:
        return task
    return replace(task, exchange=task.exchange.derive(with_base, prior.coef, prior.intercept, reads=True))
