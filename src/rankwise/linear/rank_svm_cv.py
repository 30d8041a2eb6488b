"""RankSVMCV: a ranking SVM that chooses C by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from rankwise.arguments import as_threads
from rankwise.documenting import documented
from rankwise.linear.cross_validation import Fold, Search, as_jobs, metric_for, refitted, split
from rankwise.linear.features import Vector, as_features
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C, solve_path
from rankwise.linear.rank_svm import ConvexRanker, RankSVM
from rankwise.linear.scales import check_scales
from rankwise.linear.task import Labels, Task, pose
from rankwise.metrics import MetricLike
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike
from rankwise.progress import tell

# Ends of the grid of C, in powers of ten times the natural C. For the 0-1 hinge with imbalanced classes the natural C
# is larger, because positives and negatives cancel at v = 0.
_GRID, _GRID_ZERO_ONE = (-1.2, 4.8), (-3.2, 3.2)


@documented
@dataclass(eq=False, repr=False)
class RankSVMCV(ConvexRanker):
    """Ranking SVM that chooses C by cross-validation.

    It fits a `RankSVM` for every C on every fold, compares them by a metric on the samples that the fold leaves out,
    and fits the final model to all samples. All folds share the memory of X.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise, as in `RankSVM`.
    Cs : int or array-like of shape (n_Cs,), default 10
        Number of values of C to try, on a logarithmic grid around the natural C (see
        `rankwise.linear.grid_of_C`), or the values themselves, in ascending order.
    {svm_problem}
    cv : int or cross-validation splitter, default 5
        Folds, which keep queries whole; those of one query are stratified.
    scoring : str or Metric, optional
        Metric to choose by, such as "ndcg@10": its mean over queries, then over folds. The default is that of the loss.
    n_jobs : int, optional
        Number of folds to fit at the same time, in threads; -1 uses all processors. The default is one.
    random_state : int, default 0
        Seed for the folds.

    Attributes
    ----------
    {learnt}
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    scores_ : ndarray of shape (n_Cs, n_folds)
        Metric on the samples that each fold leaves out. `query_weight` has no effect on it.
    best_score_ : float
        Score of the chosen C, averaged over the folds.
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
    (True, (4, 3))
    """

    _kind = "rank-svm-cv"

    loss: LossLike = "ap"
    Cs: int | ArrayLike = 10
    _: KW_ONLY
    cv: Any = 5
    scoring: MetricLike | None = None
    n_jobs: int | None = None
    random_state: int = 0

    def fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> RankSVMCV:
        """Choose C by cross-validation, then fit the ranker.

        Ctrl-C ends the search; `fit` then chooses among the values of C measured so far, fits the final model and
        raises KeyboardInterrupt. A second Ctrl-C keeps the best model so far.

        Parameters
        ----------
        {X_unscaled}
        {of_samples}

        Returns
        -------
        RankSVMCV
            The fitted ranker itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the solver of the final model stops before the gap is at most `tol`.
        UserWarning
            If features differ in scale by more than a factor of 1,000.
        """
        started = time.perf_counter()
        loss = self._single(1.0)._validated()
        metric, n_jobs = metric_for(loss, self.scoring), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        folds = split(labels, qid, self.cv, self.random_state)
        whole, tasks = self._tasks(labels, loss, qid, query_weight, folds)
        features = self._features(X, loss)
        # Without the column of the intercept, which does not reflect the features.
        self.Cs_ = grid_of_C(self.Cs, Objective(as_features(X), whole), _GRID_ZERO_ONE if loss.judges_labels else _GRID)
        search = Search(folds, metric.for_grades(labels.grades), labels, qid, self.Cs_, n_jobs)
        self.scores_ = search.scores
        clocks: list[dict[str, float]] = []

        def follow(fold: int) -> Iterator[Vector]:
            objective = Objective(features, tasks[fold])
            clocks.append(vars(objective.clock))
            options = {"tol": self.tol, "max_iter": self.max_iter, "report": search.stop.check}
            for result in solve_path(objective, self.Cs_, **options):
                yield objective.scores(result.coef)[folds[fold].test]

        interrupted = search.run(follow, f"RankSVMCV: {loss.name} loss", tell if self.verbose else None)
        self.C_, self.best_score_ = search.choose(interrupted)
        single = self._single(self.C_, self.verbose)
        single.n_features_in_ = self.n_features_in_
        interrupted |= refitted(self, single, partial(single._fit_to, X, whole, labels.relevant))
        self.timing_ = {"total": time.perf_counter() - started}
        for part in ("inference", "products", "calls"):
            self.timing_[part] = sum(clock[part] for clock in [*clocks, single.timing_])
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, C: float, verbose: int = 0) -> RankSVM:
        """Return the model for one C."""
        return RankSVM(**self._shared(RankSVM) | {"C": C, "verbose": verbose})

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
