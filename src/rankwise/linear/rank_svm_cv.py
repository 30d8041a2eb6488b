"""RankSVMCV: a ranking SVM that chooses C, and the loss if several are given, by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arguments import as_threads
from rankwise.documenting import documented
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
from rankwise.linear.cutting_plane import Settings
from rankwise.linear.features import Vector, as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C, solve_path
from rankwise.linear.rank_svm import ConvexRanker, RankSVM
from rankwise.linear.scales import check_scales
from rankwise.linear.task import Task, pose
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import tell

# Ends of the grid of C, in powers of ten times the natural C. For the 0-1 hinge with imbalanced classes the natural C
# is larger, because positives and negatives cancel at v = 0.
_GRID, _GRID_ZERO_ONE = (-1.2, 4.8), (-3.2, 3.2)


@documented
@dataclass(eq=False, repr=False)
class RankSVMCV(ConvexRanker):
    """Ranking SVM that chooses C by cross-validation.

    It fits a `RankSVM` for every C (and every loss, if several are given) on every fold, and compares them by a metric
    on the samples that the fold leaves out. Each fit starts where that of the last C ended. The final model is fitted
    to all samples. All folds share the memory of X.

    Parameters
    ----------
    loss : str, Loss or list of them, default "ap"
        Ranking loss to minimise, as in `RankSVM`, or a list of losses to choose from.
    Cs : int or array-like of shape (n_Cs,), default 10
        Number of values of C to try, on a logarithmic grid around the data's natural C (see
        `rankwise.linear.natural_C`), or the values themselves, in ascending order.
    {svm_solving}
    surrogate : Surrogate, optional
        A convex surrogate of your own that is never negative, in place of `Hinge(scale, method)`.
    {fit_intercept}
    {n_threads}
    {verbose}
    cv : int or cross-validation splitter, default 5
        Number of folds, or a splitter. Folds keep queries whole; those of one query are stratified.
    scoring : str, Metric or list of them, optional
        Metric to choose by, such as "ndcg@10": its mean over queries, then over folds. The default is that of the first
        loss. Of a list, the first metric chooses and the others are measured too, see `scores_by_`.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, in threads. -1 uses all processors, and the default is one.
    random_state : int, default 0
        Seed for the random split into folds.

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
    {svm_history_}
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
    n_jobs: int | None = None
    random_state: int = 0

    def fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
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
            If the features differ in scale by more than a factor of 1,000, so that the smaller ones hardly count.
        """
        started = time.perf_counter()
        losses = [as_loss(one) for one in (self.loss if isinstance(self.loss, list | tuple) else [self.loss])]
        if not losses:
            raise ValueError("loss is an empty list; pass a loss, or several to choose from")
        for loss in losses:
            self._single(loss, 1.0)._validated()
        metrics, n_jobs = metrics_for(losses[0], self.scoring), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        metrics = [metric.for_grades(labels.grades) for metric in metrics]
        folds = split(labels, qid, self.cv, self.random_state)
        whole, tasks = self._tasks(labels, losses[0], qid, query_weight, folds)
        features = [self._features(X, loss) for loss in losses]
        # Without the column of the intercept, which does not reflect the features.
        plain = as_features(X)
        self.Cs_ = np.array([self._grid(Objective(plain, whole.by(loss))) for loss in losses])
        search = Search(folds, metrics, labels, qid, self.Cs_, n_jobs)
        clocks: list[dict[str, float]] = []

        def follow(path: int, fold: int) -> Iterator[Vector]:
            objective = Objective(features[path], tasks[fold].by(losses[path]))
            clocks.append(vars(objective.clock))
            settings = Settings(float(self.tol), int(self.max_iter), report=search.stop.check)
            for result in solve_path(objective, self.Cs_[path], settings):
                yield objective.scores(result.coef)[folds[fold].test]

        names = [f"RankSVMCV: {loss.name} loss" for loss in losses]
        interrupted = search.run(follow, names, tell if self.verbose else None)
        chosen = self._choose(search, losses, interrupted)
        loss = losses[chosen.path]
        single = self._single(loss, self.C_, self.verbose)
        single.n_features_in_ = self.n_features_in_
        interrupted |= refitted(self, single, partial(single._fit_to, X, whole.by(loss), labels.relevant))
        self.timing_ = {"total": time.perf_counter() - started}
        for part in ("inference", "products", "calls"):
            self.timing_[part] = sum(clock[part] for clock in [*clocks, single.timing_])
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, loss: Loss, C: float, verbose: int = 0) -> RankSVM:
        """Return the model for one loss and one C."""
        return RankSVM(**self._shared(RankSVM) | {"loss": loss, "C": C, "verbose": verbose})

    def _tasks(
        self, labels: Labels, loss: Loss, qid: ArrayLike | None, weight: ArrayLike | None, folds: list[Fold]
    ) -> tuple[Task, list[Task]]:
        """Return the task of all samples and that of each fold; refuse folds that have nothing to train on."""
        surrogate, n_threads = self._surrogate(), as_threads(self.n_threads)
        given = partial(pose, labels.truth, loss, qid, weight, surrogate=surrogate, n_threads=n_threads)
        whole, tasks = given(), []  # what is wrong with all samples is not a fold's
        for number, fold in enumerate(folds, 1):
            try:
                tasks.append(given(fold.train))
            except ValueError as error:
                raise ValueError(f"fold {number} of cv: {error}") from None
        return whole, tasks

    def _grid(self, objective: Objective) -> Vector:
        """Return the values of C to try for an objective."""
        return grid_of_C(self.Cs, objective, _GRID_ZERO_ONE if objective.task.inference.loss.judges_labels else _GRID)

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
