"""RankSVMCV: a ranking SVM that chooses C, and the loss if several are given, by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_threads
from rankwise.documenting import documented
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
from rankwise.linear.features import Vector, as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C, solve_path
from rankwise.linear.prior import Prior, take_prior, tuned_logistic
from rankwise.linear.rank_svm import RankSVM, convex_surrogate, warn_of_gap
from rankwise.linear.scales import check_scales
from rankwise.linear.solvers import AUTO, Settings, SolverResult, Step
from rankwise.linear.task import Task, pose
from rankwise.metrics import Metric
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import tell
from rankwise.surrogates import Surrogate

# Ends of the grid of C, in powers of ten times the natural C. For the 0-1 hinge with imbalanced classes the natural C
# is larger, because positives and negatives cancel at v = 0.
_GRID, _GRID_REFINING, _GRID_ZERO_ONE = (-1.2, 4.8), (-1.8, 4.8), (-3.2, 3.2)


@documented
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
    {svm_solving}
    surrogate : Surrogate, optional
        A convex surrogate of your own that is never negative, in place of `Hinge(scale, method)`.
    prior : array-like of shape (n_features,), estimator or "logistic", optional
        Model to start from and to refine, as in `RankSVM`. "logistic" is a logistic regression whose own C is chosen
        on the same folds.
    {fit_intercept}
    {n_threads}
    random_state : int, default 0
        Seed for the random split into folds, and for the order in which "frank-wolfe" visits the queries.
    {verbose}

    Attributes
    ----------
    {learnt}
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
    {bounds}
    history_ : dict of str to ndarray
        Progress of the solver, as in `RankSVM`. With refit="average", history_ is that of the first fold, and
        objective_, dual_ and gap_ are those of the fold with the largest gap.
    {svm_timing_}
    {seen}

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
    surrogate: Surrogate | None = None
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
        {X_unscaled}
        {of_samples}

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
            self._single(loss, 1.0)._validated()
        metrics, n_jobs = metrics_for(losses[0], self.scoring), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        metrics = [metric.for_grades(labels.grades) for metric in metrics]
        folds = split(labels, qid, self.cv, self.random_state)
        whole, tasks = self._tasks(labels, losses[0], qid, query_weight, folds)
        priors, prior = self._priors(X, labels, qid, folds, metrics[0])
        paths = _Paths(self, X, losses, tasks, priors)
        self.Cs_ = np.array([self._grid(X, whole, loss) for loss in losses])
        search = Search(folds, metrics, labels, qid, self.Cs_.shape, names=[f"{loss.name} loss" for loss in losses])
        if self.verbose:
            search.say = lambda line: tell(f"RankSVMCV: {line}")
        interrupted = search.run(partial(paths.follow, search, self.Cs_), n_jobs)
        chosen = self._choose(search, losses, interrupted)
        if self.refit == "average":
            self._average([paths.found.get((*chosen[:2], f)) for f in range(len(folds))], paths, chosen, labels)
        else:
            loss = losses[chosen.path]
            single = self._single(loss, self.C_, prior=prior, verbose=self.verbose)
            single.n_features_in_ = self.n_features_in_
            task = whole.by(loss, single._surrogate())
            interrupted = refitted(self, single, partial(single._fit_to, X, task, labels.relevant)) or interrupted
            paths.spent.append(single.timing_)
        parts = ("inference", "products", "calls")
        self.timing_ = {"total": time.perf_counter() - started}
        self.timing_ |= {part: sum(spent[part] for spent in paths.spent) for part in parts}
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, loss: Loss, C: float, prior: Any = None, verbose: int = 0) -> RankSVM:
        """Return the model for one loss and one C."""
        return RankSVM(**self._shared(RankSVM) | {"loss": loss, "C": C, "prior": prior, "verbose": verbose})

    def _tasks(
        self, labels: Labels, loss: Loss, qid: ArrayLike | None, weight: ArrayLike | None, folds: list[Fold]
    ) -> tuple[Task, list[Task]]:
        """Return the task of all samples and that of each fold; refuse folds that have nothing to train on."""
        surrogate = convex_surrogate(self.surrogate, self.scale, self.method)
        given = partial(
            pose, labels.truth, loss, qid, weight, surrogate=surrogate, n_threads=as_threads(self.n_threads)
        )
        whole, tasks = given(), []  # what is wrong with all samples is not a fold's
        for number, fold in enumerate(folds, 1):
            try:
                tasks.append(given(fold.train))
            except ValueError as error:
                raise ValueError(f"fold {number} of cv: {error}") from None
        return whole, tasks

    def _priors(
        self, X: Any, labels: Labels, qid: ArrayLike | None, folds: list[Fold], metric: Metric
    ) -> tuple[list[Prior | None], Any]:
        """Return the model to refine on each fold, and on all samples."""
        if self.prior is None:
            return [None] * len(folds), None
        if isinstance(self.prior, str):
            if self.prior != "logistic":
                raise ValueError(f"unknown prior {self.prior!r}; use 'logistic', a linear classifier or coefficients")
            return tuned_logistic(X, labels, qid, folds, metric, self.refit is True, self.fit_intercept)
        return [
            take_prior(self.prior, X, labels.above_lowest(fold.train), fold.train, self.fit_intercept) for fold in folds
        ], self.prior

    def _grid(self, X: Any, whole: Task, loss: Loss) -> Vector:
        """Return the values of C to try, without the column of the intercept, which does not reflect the features."""
        ends = _GRID if self.prior is None else _GRID_REFINING
        task = whole.by(loss, whole.inference.surrogate)
        return grid_of_C(self.Cs, Objective(as_features(X), task), ends if loss.has_discount else _GRID_ZERO_ONE)

    def _choose(self, search: Search, losses: list[Loss], interrupted: bool) -> Candidate:
        """Take the scores and the best candidate by each metric; return that of the first metric."""
        best = {one.name: choose(search.scores_by[one.name], one, interrupted) for one in search.metrics}
        chosen = best[search.metrics[0].name]
        self.scores_, self.best_score_ = search.scores, chosen.score
        self.C_, self.loss_ = float(self.Cs_[chosen.path, chosen.at]), losses[chosen.path].name
        for name in ("scores_by_", "best_by_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        if isinstance(self.scoring, list | tuple):
            self.scores_by_ = search.scores_by
            self.best_by_ = {
                name: {"loss": losses[one.path].name, "C": float(self.Cs_[one.path, one.at]), "score": one.score}
                for name, one in best.items()
            }
        return chosen

    def _average(self, found: list[SolverResult | None], paths: _Paths, chosen: Candidate, labels: Labels) -> None:
        """Take the mean of the folds' models."""
        results = [result for result in found if result is not None]
        models = [
            result.coef if prior is None else result.coef + prior.start(result.coef.size)
            for result, prior in zip(found, paths.priors, strict=True)
            if result is not None
        ]
        self._adopt(np.mean(models, axis=0), paths.features[chosen.path].scores, labels.relevant)
        worst = max(results, key=lambda result: result.gap)
        self.objective_, self.dual_, self.gap_ = worst.primal, worst.dual, worst.gap
        self.n_iter_, self.converged_ = max(result.n_iter for result in results), worst.converged
        self.history_ = results[0].history
        if not self.converged_:
            warn_of_gap(worst, self.tol)


class _Paths:
    """Paths of C of every loss on every fold, and what they found: by loss, C and fold. spent: clocks."""

    def __init__(
        self, model: RankSVMCV, X: Any, losses: list[Loss], tasks: list[Task], priors: list[Prior | None]
    ) -> None:
        self.features = [model._features(X, loss) for loss in losses]
        self.priors, self._losses, self._tasks = priors, losses, tasks
        self._solver = AUTO if model.solver == "auto" else model.solver
        self._settings = Settings(float(model.tol), int(model.max_iter), seed=model.random_state)
        self.found: dict[tuple[int, int, int], SolverResult] = {}
        self.spent: list[dict[str, float]] = []

    def follow(self, search: Search, Cs: NDArray[np.float64], loss: int, fold: int) -> Iterator[Vector]:
        """Yield the scores of the samples that a fold leaves out, for ascending C."""

        def check(step: Step) -> None:
            if search.stop.is_set():
                raise KeyboardInterrupt

        task, prior = self._tasks[fold], self.priors[fold]
        task = task.by(self._losses[loss], task.inference.surrogate)
        objective = Objective(self.features[loss], task, None if prior is None else prior.scores)
        self.spent.append(vars(objective.clock))
        settings = replace(self._settings, report=check)
        for C, result in enumerate(solve_path(objective, Cs[loss], self._solver, settings)):
            if result.interrupted:
                raise KeyboardInterrupt
            self.found[loss, C, fold] = result
            yield objective.scores(result.coef)[search.folds[fold].test]
