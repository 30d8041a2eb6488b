"""RankSVMCV: a ranking SVM that chooses C, and the loss if several are given, by cross-validation."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_threads
from rankwise.linear.base import BaseLinearRanker
from rankwise.linear.cross_validation import (
    Candidate,
    Fold,
    Scoring,
    Search,
    as_jobs,
    choose,
    metrics_for,
    refitted,
    split,
)
from rankwise.linear.features import as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective, Task
from rankwise.linear.path import grid_of_C
from rankwise.linear.posing import pose
from rankwise.linear.prior import Prior, take_prior, tuned_logistic
from rankwise.linear.rank_svm import RankSVM, warn_of_gap
from rankwise.linear.scales import check_scales
from rankwise.linear.solvers import AUTO, Settings
from rankwise.metrics import Metric
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import tell
from rankwise.surrogates import Hinge

# Ends of the grid of C, in powers of ten times the natural C. For the 0-1 hinge with imbalanced classes the natural C
# is larger, because positives and negatives cancel at v = 0.
_GRID, _GRID_REFINING, _GRID_ZERO_ONE = (-1.2, 4.8), (-1.8, 4.8), (-3.2, 3.2)


class _Data(NamedTuple):
    """Checked arguments of `fit`."""

    X: Any
    labels: Labels
    qid: ArrayLike | None
    query_weight: ArrayLike | None


def _check_folds(data: _Data, loss: Loss, folds: list[Fold]) -> None:
    """Refuse folds that have nothing to train on, before anything is fitted to them."""
    pose(data.labels.truth, loss, data.qid, data.query_weight)  # what is wrong with all samples is not a fold's
    for number, fold in enumerate(folds, 1):
        try:
            pose(data.labels.truth, loss, data.qid, data.query_weight, fold.train)
        except ValueError as error:
            raise ValueError(f"fold {number} of cv: {error}") from None


def _say(line: str) -> None:
    tell(f"RankSVMCV: {line}")


@dataclass(eq=False, repr=False)
class RankSVMCV(BaseLinearRanker):
    """Ranking SVM that chooses C by cross-validation.

    It fits a `RankSVM` for every C (and for every loss, if several are given) on every fold, and compares them by a
    metric on the samples that the fold leaves out. Each fold fits its values of C in ascending order and starts where
    the last fit ended, which is much faster than separate fits. All folds share the memory of X.

    Parameters
    ----------
    loss : str, Loss or list of them, default "ap"
        Ranking loss to minimise, as in `RankSVM`, or a list of losses to choose from.
    Cs : int or array-like of shape (n_Cs,), default 10
        Number of values of C to try, on a logarithmic grid around the data's natural C (see
        `rankwise.linear.natural_C`), or the values themselves, in ascending order.
    cv : int or cross-validation splitter, default 5
        Number of folds, or a splitter. If there are several queries, folds keep them whole. Otherwise folds are
        stratified.
    scoring : str, Metric or list of them, optional
        Metric to choose by: a name of `rankwise.metrics.METRICS`, such as "ap" or "ndcg@10", or a `Metric`. It is
        averaged over the queries that a fold leaves out, then over the folds. The default is the metric of the first
        loss. If you pass a list, the first metric chooses and the others are measured too, see `scores_by_`.
    refit : True or "average", default True
        How to get the final model. True fits it to all samples with the chosen C. "average" takes the mean of the
        folds' models, which varies less than a single model.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, in threads. -1 uses all processors, and the default is one.
    solver : {"auto", "cutting-plane", "frank-wolfe", "subgradient"}, default "auto"
        Algorithm for the convex problem. All of them find the same optimum. "auto" is "cutting-plane", which was the
        fastest in all our measurements.
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
    prior : array-like of shape (n_features,), estimator or "logistic", optional
        Model to start from and to refine. The penalty is then ½‖w − w₀‖² in place of ½‖w‖², where w₀ is the prior:
        the ranker leaves it only as far as the loss pays for it. Pass coefficients, or a linear scikit-learn
        classifier, which is fitted first and scaled to scores with standard deviation 1. To use a classifier that is
        fitted already, wrap it in sklearn.frozen.FrozenEstimator.
        "logistic" is a logistic regression whose own C is chosen on the same folds.
    fit_intercept : bool, default True
        Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it. The
        intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on the
        intercept and learns it, almost without penalty.
    n_threads : int, default 1
        Number of threads for the search of most violating rankings. -1 uses all processors. The result does not
        depend on it.
    random_state : int, default 0
        Seed for the random split into folds, and for the order in which "frank-wolfe" visits the queries.
    verbose : int, default 0
        If 1, show progress on the terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients of the ranker.
    intercept_ : ndarray of shape (1,)
        Intercept, which sets the threshold of `predict`.
    classes_ : ndarray of shape (2,)
        The two class labels. The greater label, classes_[1], is the relevant (positive) class.
    C_ : float
        The chosen C.
    loss_ : str
        Name of the chosen loss.
    Cs_ : ndarray of shape (n_losses, n_Cs)
        Values of C that were tried for each loss.
    scores_ : ndarray of shape (n_losses, n_Cs, n_folds)
        Metric on the samples that each fold leaves out. `query_weight` has no effect on it.
    best_score_ : float
        Score of the chosen C and loss, averaged over the folds.
    scores_by_ : dict of str to ndarray of shape (n_losses, n_Cs, n_folds)
        Scores by each metric, by its name. Only there if `scoring` is a list.
    best_by_ : dict of str to dict
        What each metric would have chosen: "loss", "C" and "score" (averaged over the folds). Only there if `scoring`
        is a list.
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
        Progress of the solver with one entry per iteration, see `rankwise.linear.Step`. With
        refit="average", history_ is that of the first fold, and objective_, dual_ and gap_ are those of the fold with
        the largest gap.
    timing_ : dict of str to float
        Seconds that `fit` took: "total", "inference" (the search of most violating rankings) and "products" (products
        with X), including the search over C. "calls" counts how many queries were searched for their most violating
        ranking.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features seen during `fit`. Only there if X was a dataframe whose column names are all strings.

    See Also
    --------
    LinearRanker : Ranker that tunes itself, with only the metric to choose.
    RankSVM : Ranking SVM for a single C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RankSVMCV("ap", Cs=4, cv=3).fit(X / X.std(axis=0), y)
    >>> bool(model.best_score_ > 0.99), model.scores_.shape
    (True, (1, 4, 3))
    """

    _kind = "rank-svm-cv"

    loss: LossLike | list[LossLike] = "ap"
    Cs: int | ArrayLike = 10
    _: KW_ONLY
    cv: Any = 5
    scoring: Scoring = None
    refit: bool | str = True
    n_jobs: int | None = None
    solver: str = "auto"
    method: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    scale: float = 1.0
    prior: Any = None
    fit_intercept: bool = True
    n_threads: int = 1
    random_state: int = 0
    verbose: int = 0

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> RankSVMCV:
        """Choose C (and the loss) by cross-validation, then fit the ranker.

        If you press Ctrl-C during the search, `fit` chooses among the values of C that it has measured so far, fits
        the final model, and then raises KeyboardInterrupt. If you press Ctrl-C again, it keeps the best model so far,
        if there is one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples. Data in float32, sparse matrices and memory-mapped arrays are used without conversion. Scale the
            features first if their scales differ much.
        y : array-like of shape (n_samples,)
            Labels of two classes, of which the greater one is relevant. If `qid` is given, y may also hold grades:
            more than two different numbers, all at least 0. With grades, classes_ is 0 and 1, where 1 means above the
            lowest grade.
        qid : array-like of shape (n_samples,), optional
            Query of each sample, in any order. A query is a group of samples that is ranked on its own, such as the
            documents found for one search. By default all samples form one query. A query whose samples are all of
            one class, or of one grade, has nothing to rank and is left out.
        query_weight : array-like of shape (n_samples,), optional
            Weight of each sample's query in the mean of the loss. It must be the same for all samples of a query. By
            default all queries have the same weight.

        Returns
        -------
        RankSVMCV
            The fitted ranker itself.

        Raises
        ------
        ValueError
            If a parameter is invalid, or if the data cannot be ranked or split into folds.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the solver of the final model stops before the gap is at most `tol`.
        UserWarning
            If the features differ in scale by more than a factor of 1,000. The penalty is the same for all
            coefficients, so a feature of a much smaller scale hardly counts.
        """
        started = time.perf_counter()
        losses = [as_loss(one) for one in (self.loss if isinstance(self.loss, list | tuple) else [self.loss])]
        if not losses:
            raise ValueError("loss is an empty list; pass a loss, or several to choose from")
        if self.refit is not True and self.refit != "average":
            raise ValueError(f"unknown refit={self.refit!r}; use True or 'average'")
        for loss in losses:
            self._single(loss, 1.0).validated()
        metrics, n_jobs = metrics_for(losses[0], self.scoring), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        metrics = [metric.for_grades(labels.grades) for metric in metrics]
        folds = split(labels, qid, self.cv, self.random_state)
        data = _Data(X, labels, qid, query_weight)
        _check_folds(data, losses[0], folds)
        priors, whole = self._priors(data, folds, metrics[0])
        search = self._search(data, losses, metrics, folds, priors)
        if self.verbose:
            search.say = _say
        interrupted = search.run(n_jobs)
        best = {metric.name: choose(search.scores_by[metric.name], metric, interrupted) for metric in metrics}
        chosen = best[metrics[0].name]
        self.Cs_, self.scores_, self.best_score_ = search.Cs, search.scores, chosen.score
        self.C_, self.loss_ = float(search.Cs[chosen.loss, chosen.C]), losses[chosen.loss].name
        for name in ("scores_by_", "best_by_"):
            if hasattr(self, name):  # from an earlier fit
                delattr(self, name)
        if isinstance(self.scoring, list | tuple):
            self.scores_by_ = search.scores_by
            self.best_by_ = {
                name: {"loss": losses[one.loss].name, "C": float(search.Cs[one.loss, one.C]), "score": one.score}
                for name, one in best.items()
            }
        clocks = [vars(clock) for clock in search.clocks]
        if self.refit == "average":
            self._average(search, chosen, labels.relevant)
        else:
            single = self._single(losses[chosen.loss], self.C_, prior=whole, verbose=self.verbose)
            single._warns_of_scales = False  # this one has warned already
            interrupted = refitted(self, single, X, labels.truth, qid, query_weight) or interrupted
            clocks.append(single.timing_)
        parts = ("inference", "products", "calls")
        self.timing_ = {"total": time.perf_counter() - started}
        self.timing_ |= {part: sum(clock[part] for clock in clocks) for part in parts}
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, loss: Loss, C: float, prior: Any = None, verbose: int = 0) -> RankSVM:
        """Return the model for one loss and one C."""
        return RankSVM(**self._shared(RankSVM) | {"loss": loss, "C": C, "prior": prior, "verbose": verbose})

    def _priors(self, data: _Data, folds: list[Fold], metric: Metric) -> tuple[list[Prior | None], Any]:
        """Return the model to refine on each fold, and on all samples."""
        X, labels, qid, _ = data
        if self.prior is None:
            return [None] * len(folds), None
        if isinstance(self.prior, str):
            if self.prior != "logistic":
                raise ValueError(f"unknown prior {self.prior!r}; use 'logistic', a linear classifier or coefficients")
            return tuned_logistic(X, labels, qid, folds, metric, self.refit is True, self.fit_intercept)
        return [
            take_prior(self.prior, X, labels.above_lowest(fold.train), fold.train, self.fit_intercept) for fold in folds
        ], self.prior

    def _search(
        self, data: _Data, losses: list[Loss], metrics: list[Metric], folds: list[Fold], priors: list[Prior | None]
    ) -> Search:
        X, labels, qid, query_weight = data
        hinge, n_threads = Hinge(self.scale, self.method), as_threads(self.n_threads)
        features = [self._features(X, loss) for loss in losses]

        def task(loss: Loss, rows: NDArray[np.int64] | None = None) -> Task:
            known = hinge.accepts(loss)
            return pose(labels.truth, known, qid, query_weight, rows, surrogate=hinge, n_threads=n_threads)

        tasks = [[task(loss, fold.train) for fold in folds] for loss in losses]
        plain = as_features(X)  # without the column of the intercept, which does not reflect the scale of the features
        grids = [grid_of_C(self.Cs, Objective(plain, task(loss)), self._ends(loss)) for loss in losses]
        settings = Settings(float(self.tol), int(self.max_iter), seed=self.random_state)
        solver = AUTO if self.solver == "auto" else self.solver
        return Search(
            features,
            tasks,
            np.array(grids),
            folds=folds,
            priors=priors,
            labels=labels,
            qid=qid,
            metric=metrics[0],
            also=metrics[1:],
            solver=solver,
            settings=settings,
        )

    def _ends(self, loss: Loss) -> tuple[float, float]:
        if not loss.has_grades:
            return _GRID_ZERO_ONE
        return _GRID if self.prior is None else _GRID_REFINING

    def _average(self, search: Search, chosen: Candidate, relevant: NDArray[np.bool_]) -> None:
        """Take the mean of the folds' models."""
        results, models = [], []
        for fold, prior in enumerate(search.priors):
            result = search.results.get((chosen.loss, chosen.C, fold))
            if result is not None:
                results.append(result)
                models.append(result.coef if prior is None else result.coef + prior.start(result.coef.size))
        self._adopt(np.mean(models, axis=0), search.features[chosen.loss].scores, relevant)
        worst = max(results, key=lambda result: result.gap)
        self.objective_, self.dual_, self.gap_ = worst.primal, worst.dual, worst.gap
        self.n_iter_, self.converged_ = max(result.n_iter for result in results), worst.converged
        self.history_ = results[0].history
        if not self.converged_:
            warn_of_gap(worst, self.tol)
