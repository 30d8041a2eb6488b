"""RankSVMCV: C, and the loss where several are given, by cross-validation."""

from __future__ import annotations

import sys
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_scale, as_threads
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
from rankwise.linear.solvers import AUTO, Settings
from rankwise.losses import Form, Loss, LossLike, as_loss
from rankwise.method import as_method
from rankwise.metrics import Metric

# Where a grid of C begins and ends, in powers of ten of the natural C, which is larger for the 0-1 hinge where classes
# are unequal in number: its positives and negatives cancel at first.
_GRID, _GRID_REFINING, _GRID_ZERO_ONE = (-1.2, 4.8), (-1.8, 4.8), (-3.2, 3.2)


class _Data(NamedTuple):
    """What a model is fitted to, checked: as in `RankSVM.fit`."""

    X: Any
    labels: Labels
    qid: ArrayLike | None
    query_weight: ArrayLike | None


def _say(line: str) -> None:
    print(f"RankSVMCV: {line}", file=sys.stderr, flush=True)


@dataclass(eq=False, repr=False)
class RankSVMCV(BaseLinearRanker):
    """A `RankSVM` whose C is chosen by cross-validation, and the loss too where several are given.

    Within a fold C ascends and each fit begins where the last ended; folds share the memory of X.

    Parameters
    ----------
    loss : str, Loss or list of them
        A loss, or several to choose from.
    Cs : int or array-like
        Values of C in ascending order, or how many to lay out around the data's natural C.
    cv : int or splitter
        Queries stay whole where there are several, else folds are stratified.
    scoring : str, Metric or list of them, optional
        The measure to choose by, such as "ap" or "ndcg@10": a name of `rankwise.metrics.METRICS`, which means what it
        means there. Its mean over the queries left out, then over folds, is best_score_. By default
        that of the first loss. Of a list the first chooses; the same models are judged by all.
    refit : True or "average"
        True fits once more to all samples; "average" takes the mean of the folds' models, which varies less than one of
        them.
    n_jobs : int, optional
        Folds at a time, in threads; −1 for all processors.
    prior : optional
        As in `RankSVM`, or "logistic", a logistic regression whose own C is chosen on the same folds.
    solver, method, tol, max_iter, scale, fit_intercept, n_threads, random_state, verbose
        As in `RankSVM`.

    Attributes
    ----------
    C_, loss_
        What was chosen.
    Cs_ : ndarray of shape (losses, Cs)
        What there was to choose from.
    scores_ : ndarray of shape (losses, Cs, folds)
        The measure on the samples left out; query_weight does not count there.
    best_score_ : float
        The mean over folds of what was chosen.
    scores_by_ : dict of ndarray of shape (losses, Cs, folds)
        If scoring is a list: as scores_, by the name of each measure.
    best_by_ : dict of dict
        If scoring is a list: "loss", "C" and "score", what each measure would have chosen and its mean over folds.
    coef_, intercept_, objective_, dual_, gap_, n_iter_, converged_, history_, timing_
        As in `RankSVM`. With refit="average", objective_, dual_ and gap_ are of the fold with the largest gap, history_
        of the first. timing_ covers the search.

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
        """Choose C (and the loss), then fit.

        After Ctrl-C the choice is made from what has been measured so far, and the last fit is done; after a second
        one, the best model so far is kept, if there is one. KeyboardInterrupt goes on in either case.

        Parameters
        ----------
        X, y, qid, query_weight
            As in `RankSVM.fit`.

        Returns
        -------
        RankSVMCV
            Itself, fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are not in order.
        KeyboardInterrupt
            After Ctrl-C.
        """
        started = time.perf_counter()
        losses = [as_loss(one) for one in (self.loss if isinstance(self.loss, list | tuple) else [self.loss])]
        if not losses:
            raise ValueError("loss is an empty list; name a loss, or several to choose from")
        if self.refit is not True and self.refit != "average":
            raise ValueError(f"unknown refit={self.refit!r}; use True or 'average'")
        for loss in losses:
            self._single(loss, 1.0).validated()
        metrics, n_jobs = metrics_for(losses[0], self.scoring), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        metrics = [metric.for_grades(labels.grades) for metric in metrics]
        folds = split(labels, qid, self.cv, self.random_state)
        data = _Data(X, labels, qid, query_weight)
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
            if hasattr(self, name):  # of a fit before
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
            interrupted = refitted(self, single, X, labels.truth, qid, query_weight) or interrupted
            clocks.append(single.timing_)
        parts = ("inference", "products", "calls")
        self.timing_ = {"total": time.perf_counter() - started}
        self.timing_ |= {part: sum(clock[part] for clock in clocks) for part in parts}
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, loss: Loss, C: float, prior: Any = None, verbose: int = 0) -> RankSVM:
        """The model for one loss and one C."""
        return RankSVM(**self._shared(RankSVM) | {"loss": loss, "C": C, "prior": prior, "verbose": verbose})

    def _priors(self, data: _Data, folds: list[Fold], metric: Metric) -> tuple[list[Prior | None], Any]:
        """The model to refine on each fold, and on all samples."""
        X, labels, qid, _ = data
        if self.prior is None:
            return [None] * len(folds), None
        if isinstance(self.prior, str):
            if self.prior != "logistic":
                raise ValueError(f"unknown prior {self.prior!r}; use 'logistic', a linear classifier or coefficients")
            return tuned_logistic(X, labels, qid, folds, metric, self.refit is True, self.fit_intercept)
        return [
            take_prior(self.prior, X, labels.relevant, fold.train, self.fit_intercept) for fold in folds
        ], self.prior

    def _search(
        self, data: _Data, losses: list[Loss], metrics: list[Metric], folds: list[Fold], priors: list[Prior | None]
    ) -> Search:
        X, labels, qid, query_weight = data
        inference: dict[str, Any] = {"scale": as_scale(self.scale), "n_threads": as_threads(self.n_threads)}
        features = [self._features(X, loss) for loss in losses]

        def task(loss: Loss, rows: NDArray[np.int64] | None = None) -> Task:
            return pose(labels.truth, loss, qid, query_weight, rows, method=as_method(self.method, loss), **inference)

        tasks = [[task(loss, fold.train) for fold in folds] for loss in losses]
        plain = as_features(X)  # the column of the intercept says nothing about the scale of the features
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
        if loss.form is Form.LABELS:
            return _GRID_ZERO_ONE
        return _GRID if self.prior is None else _GRID_REFINING

    def _average(self, search: Search, chosen: Candidate, relevant: NDArray[np.bool_]) -> None:
        """The mean of the folds' models."""
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
