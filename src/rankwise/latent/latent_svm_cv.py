"""LatentRankSVMCV: a ranker of bags that chooses C by cross-validation over bags."""

from __future__ import annotations

import os
import threading
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.latent.bags import Bags
from rankwise.latent.base import BagRanker
from rankwise.latent.initial import as_starts, bag_means, part_of
from rankwise.latent.latent_svm import LatentRankSVM
from rankwise.linear.cross_validation import Fold, as_jobs, choose, metric_for, refitted, run_jobs, split
from rankwise.linear.features import as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective, Task
from rankwise.linear.path import grid_of_C
from rankwise.linear.posing import pose
from rankwise.metrics import Metric, MetricLike
from rankwise.metrics.registry import LossLike
from rankwise.progress import tell
from rankwise.surrogates import Hinge

# Ends of the grid of C, in powers of ten times the natural C of the bags' means.
_GRID = (-2.0, 2.0)


@dataclass(eq=False, repr=False)
class LatentRankSVMCV(BagRanker):
    """Linear ranker of bags that chooses C by cross-validation.

    It fits a `LatentRankSVM` for every C on every fold, compares them by a metric on the bags that the fold leaves out,
    and fits the final model to all bags.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise, as in `RankSVM`: "ap", "ndcg", "mrr", "auc", "f1", "zero-one", or a `Loss`.
    Cs : int or array-like of shape (n_Cs,), default 6
        Number of values of C to try, on a logarithmic grid around the natural C of the bags' means (see
        `rankwise.linear.natural_C`), or the values themselves, in ascending order.
    cv : int or cross-validation splitter, default 5
        Number of stratified folds, or a splitter.
    scoring : str or Metric, optional
        Metric to choose by: a name of `rankwise.metrics.METRICS`, such as "ap" or "ndcg@10", or a `Metric`. The
        default is the metric of the loss.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, in threads. -1 uses all processors, and the default is one.
    init : str, array-like, estimator or list of them, default "mean"
        How to choose the first candidate of each positive bag. "mean" fits a ranker to the means of the bags and takes
        the best candidate under it. "first" takes the first candidate, "centre" the one nearest the mean of its bag,
        "random" a random one. You can also pass the candidates' numbers, an array of shape (n_bags,); or a fitted
        linear model or its coefficients, which choose them. The start matters, because the objective has many local
        minima. If you pass a list, all starts are tried and the lowest objective wins.
        Candidates' numbers are split into folds together with the bags.
    self_paced : float, optional
        Fraction of the positive bags to learn from after the first step: those with the highest scores. It grows by a
        factor of 1.3 per step until all are used. Try 0.5 if a few positive bags are outliers. By default all positive
        bags are used from the start.
    method : str, default "auto"
        Algorithm that finds the most violating ranking, as in `rankwise.structured_hinge`. The result is the same for
        all exact methods, so "auto" is the right choice except in benchmarks.
    tol : float, default 1e-3
        Relative duality gap at which each convex problem is solved.
    outer_tol : float, default 1e-3
        The alternation stops when the objective falls by less than this fraction, or when no positive bag changes its
        candidate.
    max_outer : int, default 50
        Maximum number of steps of the alternation with all positive bags in use.
    max_iter : int, default 10000
        Maximum number of iterations of the convex solver in a round.
    scale : float, default 1.0
        Weight of the loss against the margin within the structured hinge. Few users need to change it.
    fit_intercept : bool, default True
        Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it. The
        intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on the
        intercept and learns it, almost without penalty.
    checkpoint : str or Path, optional
        Folder for checkpoints, with one file for every fit of the search. If the search is stopped, the same search
        continues from there. By default there are no checkpoints.
    n_threads : int, default 1
        Number of threads for passes over the features and for the search of most violating rankings. -1 uses all
        processors. The result does not depend on it.
    random_state : int, default 0
        Seed for the random split into folds, and for the start "random".
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
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    scores_ : ndarray of shape (n_Cs, n_folds)
        Metric on the bags that each fold leaves out.
    best_score_ : float
        Score of the chosen C, averaged over the folds.
    objective_ : float
        Value of the objective at the solution, with every bag at its best candidate.
    dual_ : float
        Lower bound of the minimum of the last convex problem.
    gap_ : float
        Certified relative duality gap of the last convex problem.
    converged_ : bool
        Whether the alternation ended by itself and every gap is at most `tol`.
    n_iter_ : int
        Number of outer steps: choices of candidates, each followed by a convex problem.
    history_ : dict of str to ndarray
        Progress with one entry per outer step, for the start that won.
    starts_ : ndarray of shape (n_starts,)
        Final objective for each start in `init`.
    timing_ : dict of str to float
        Seconds that `fit` took, including the search over C: "total", "inference" (the search of most violating
        rankings) and "products" (products with features). "calls" counts how many queries were searched, "passes" the
        passes over all candidates.
    n_features_in_ : int
        Number of features of a candidate, seen during `fit`.

    See Also
    --------
    LatentRankSVM : The same ranker for a single C.
    Bags : Bags of candidates in one feature matrix, also larger than memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(4, 3)) for _ in range(30)]
    >>> for bag in bags[:10]:
    ...     bag[2, 0] += 5.0
    >>> model = LatentRankSVMCV("ap", Cs=3, cv=3).fit(bags, np.arange(30) < 10)
    >>> model.scores_.shape, bool(model.best_score_ > 0.9)
    ((3, 3), True)
    """

    _kind = "latent-rank-svm-cv"

    loss: LossLike = "ap"
    Cs: int | ArrayLike = 6
    _: KW_ONLY
    cv: Any = 5
    scoring: MetricLike | None = None
    n_jobs: int | None = None
    init: Any = "mean"
    self_paced: float | None = None
    method: str = "auto"
    tol: float = 1e-3
    outer_tol: float = 1e-3
    max_outer: int = 50
    max_iter: int = 10_000
    scale: float = 1.0
    fit_intercept: bool = True
    checkpoint: str | os.PathLike[str] | None = None
    n_threads: int = 1
    random_state: int = 0
    verbose: int = 0

    def fit(self, bags: Any, y: ArrayLike) -> LatentRankSVMCV:
        """Choose C by cross-validation, then fit the ranker.

        If you press Ctrl-C during the search, `fit` chooses among the values of C that it has measured so far, fits
        the final model, and then raises KeyboardInterrupt. If you press Ctrl-C again, it keeps the best model so far,
        if there is one.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.
        y : array-like of shape (n_bags,)
            Labels of two classes, of which the greater one is relevant.

        Returns
        -------
        LatentRankSVMCV
            The fitted ranker itself.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the final fit stops early, or if all its coefficients are 0.
        """
        started = time.perf_counter()
        loss = self._single(1.0).validated()
        metric, n_jobs = metric_for(loss, self.scoring), as_jobs(self.n_jobs)
        checked, relevant = self._checked_bags(bags, y)
        as_starts(self.init, checked.sizes, checked.width)
        folds = split(Labels(relevant), None, self.cv, self.random_state)
        task = pose(relevant, loss, surrogate=Hinge(self.scale, self.method))
        self.Cs_ = grid_of_bags(self.Cs, checked, task)
        search = _Search(self, checked, relevant, folds, metric)
        interrupted = search.run(n_jobs)
        self.scores_ = search.scores
        chosen = choose(search.scores[None], metric, interrupted)
        self.C_, self.best_score_ = float(self.Cs_[chosen.C]), chosen.score
        single = self._single(self.C_)
        single.verbose = self.verbose
        interrupted = refitted(self, single, checked, relevant, also=("starts_",)) or interrupted
        parts = [*search.timings, single.timing_]
        self.timing_ = {name: sum(timing[name] for timing in parts) for name in single.timing_}
        self.timing_["total"] = time.perf_counter() - started
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, C: float, rows: NDArray[np.int64] | None = None) -> LatentRankSVM:
        """Return the model for one C. rows: of its training bags, if these are not all."""
        model = LatentRankSVM(C=C, **self._shared(LatentRankSVM))
        if rows is not None:
            model.init = part_of(self.init, rows)
        return model


def grid_of_bags(Cs: int | ArrayLike, bags: Bags, task: Task) -> NDArray[np.float64]:
    """Return the values of C, or a grid of so many around the natural C of the bags' means."""
    return grid_of_C(Cs, Objective(as_features(bag_means(bags)), task), _GRID)


class _Search:
    """Scores of every C on every fold; NaN means not measured."""

    def __init__(
        self, model: LatentRankSVMCV, bags: Bags, relevant: NDArray[np.bool_], folds: list[Fold], metric: Metric
    ) -> None:
        self._model, self._bags, self._relevant, self._folds, self._metric = model, bags, relevant, folds, metric
        self.scores = np.full((model.Cs_.size, len(folds)), np.nan)
        self.timings: list[dict[str, Any]] = []
        self._stop = threading.Event()

    def run(self, n_jobs: int) -> bool:
        """Measure every C on every fold; return whether this was interrupted."""
        jobs = [(fold,) for fold in range(len(self._folds))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # only the gap of the final model matters
            return run_jobs(self._measure, jobs, n_jobs, self._stop)

    def _measure(self, fold: int) -> bool:
        """Fit and score every C on one fold, and return True; raise KeyboardInterrupt if stopped."""
        train, test = self._folds[fold]
        for k, C in enumerate(self._model.Cs_):
            single = self._model._single(float(C), train)
            single._stop = self._stop
            single.fit(self._bags[train], self._relevant[train])
            self.timings.append(single.timing_)
            scores = single.decision_function(self._bags[test])
            self.scores[k, fold] = self._metric(scores, self._relevant[test], empty="skip")
        if self._model.verbose:
            best = np.nanmax(self.scores[:, fold], initial=0.0)
            line = f"fold {fold + 1} of {len(self._folds)}: best {self._metric.name} {best:.4f}"
            tell(f"LatentRankSVMCV: {line}")
        return True
