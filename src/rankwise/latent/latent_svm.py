"""LatentRankSVM and LatentRankSVMCV: linear rankers of bags, where the best candidate counts, as classifiers."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.arguments import as_threads, is_whole
from rankwise.documenting import SHARED, documented
from rankwise.latent.bags import Bags, as_bags, bag_means
from rankwise.latent.cccp import OuterStep, Problem, State, best_of
from rankwise.latent.training import as_start, train
from rankwise.linear.base import BaseLinearRanker, check_counts, check_numbers
from rankwise.linear.cross_validation import Search, as_jobs, metric_for, refitted, split
from rankwise.linear.features import INTERCEPT, Vector, as_features
from rankwise.linear.objective import Clock, Objective
from rankwise.linear.path import grid_of_C, usual_C
from rankwise.linear.task import Labels, Task, pose, two_classes
from rankwise.metrics import MetricLike
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import Progress, tell
from rankwise.surrogates import Hinge

SHARED["bags"] = """\
bags : Bags or list of array-like
    A `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag."""
SHARED["y_bags"] = """\
y : array-like of shape (n_bags,)
    Labels of two classes, of which the greater one is relevant."""
# Default C divided by the natural C of the bags' means: the middle of what cross-validation chose on real data.
_USUAL = 3.0
# Ends of the grid of C, in powers of ten times that natural C.
_GRID = (-2.0, 2.0)


@documented
@dataclass(eq=False, repr=False)
class BagRanker(BaseLinearRanker):
    """Base class of the linear rankers of bags."""

    _: KW_ONLY
    init: Any = "mean"
    outer_tol: float = 1e-3
    max_outer: int = 50
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int = 0
    method: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    scale: float = 1.0
    fit_intercept: bool = True
    n_threads: int = 1
    verbose: int = 0

    def __post_init__(self) -> None:
        self._stop: threading.Event | None = None  # if set by another thread, a fit stops after the current round

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Score bags by their best candidates.

        Parameters
        ----------
        {bags}

        Returns
        -------
        ndarray of shape (n_bags,)
            The highest score in each bag. `predict` returns classes_[1] for scores above 0.
        """
        return self._best(bags)[0]

    def best_candidate(self, bags: Any) -> NDArray[np.int64]:
        """Find the best candidate of each bag.

        Parameters
        ----------
        {bags}

        Returns
        -------
        ndarray of int of shape (n_bags,)
            Its number in the bag, from 0. Of equal ones, the first.
        """
        return self._best(bags)[1]

    def candidate_scores(self, bags: Any) -> NDArray[np.float64]:
        """Score every candidate.

        Parameters
        ----------
        {bags}

        Returns
        -------
        ndarray of shape (n_candidates,)
            Features times coef_, plus intercept_; bag after bag.
        """
        check_is_fitted(self, "coef_")
        checked = as_bags(bags)
        if checked.width != self.n_features_in_:
            raise ValueError(
                f"bags have {checked.width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        scores: Vector = checked.scores(self.coef_[0], as_threads(self.n_threads)) + self.intercept_[0]
        return scores

    def _best(self, bags: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        bags = as_bags(bags)
        scores = self.candidate_scores(bags)
        if not len(bags):
            return np.zeros(0), np.zeros(0, np.int64)
        best, at = best_of(scores, bags.offsets[:-1])
        return best, at - bags.offsets[:-1]

    def _checked_bags(self, bags: Any, y: Any) -> tuple[Bags, NDArray[np.bool_]]:
        checked = as_bags(bags)
        if not len(checked):
            raise ValueError("there are no bags; pass positive and negative bags")
        labels = column_or_1d(y, warn=True)
        if labels.size != len(checked):
            raise ValueError(f"there are {len(checked)} bags, but {labels.size} labels; pass one label per bag")
        self.classes_, relevant = two_classes(labels)
        self.n_features_in_ = checked.width
        return checked, relevant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


@documented
@dataclass(eq=False, repr=False)
class LatentRankSVM(BagRanker):
    """Linear ranker of bags, which learns which candidate of a bag counts.

    A positive bag contains at least one positive candidate, but it is not known which one; a negative bag contains
    none. With φ(x_i, h) the features of candidate h of bag i and J_q the hinge of query q, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(s),    s_i = max_h w·φ(x_i, h).

    Training alternates between the choice of the best candidate of each positive bag and the convex problem that
    remains (CCCP, Behl et al. 2014). If no candidate of the start tells positives from negatives, w = 0 is a minimum
    and all scores are 0: then try another `init`.

    Parameters
    ----------
    {loss}
    C : float, optional
        Weight of the loss against the penalty. The default is a multiple of the natural C of the bags' means.
    init : str, array-like or estimator, default "mean"
        First candidate of each positive bag: the best under a ranker of the bags' means ("mean"), the first ("first")
        or a random one ("random"); or the candidates' numbers, an array of shape (n_bags,); or a linear model or its
        coefficients, which choose them. It decides which of many local minima is found.
    outer_tol : float, default 1e-3
        The alternation stops when the objective falls by less than this fraction.
    max_outer : int, default 50
        Maximum number of steps of the alternation.
    checkpoint : str or Path, optional
        Folder for checkpoints, from which the same fit continues if it is stopped.
    random_state : int, default 0
        Seed for the start "random".
    method, tol, max_iter, scale, fit_intercept, n_threads, verbose : optional
        As in `RankSVM`, for each convex problem. Threads also share the passes over the features.

    Attributes
    ----------
    coef_, intercept_, classes_, C_, n_features_in_ : ndarray, float or int
        As in `RankSVM`. Coefficients and features are those of a candidate.
    objective_ : float
        Value of the objective at the solution.
    dual_, gap_ : float
        Lower bound and certified relative duality gap of the last convex problem.
    converged_ : bool
        Whether the alternation ended by itself and every gap is at most `tol`.
    n_iter_, history_ : int, dict of str to ndarray
        Number of outer steps, and the progress with one entry for each.
    timing_ : dict of str to float
        As in `RankSVM`, and "passes", how often all candidates were scored.

    See Also
    --------
    LatentRankSVMCV : The same ranker, with C chosen by cross-validation.
    Bags : Bags of candidates in one feature matrix, also larger than memory.
    RankSVM : Linear ranker of ordinary samples.

    Examples
    --------
    >>> bags = np.random.default_rng(0).normal(size=(30, 4, 3))
    >>> bags[:10, 2, 0] += 5.0
    >>> model = LatentRankSVM("ap", C=10.0).fit(bags, np.arange(30) < 10)
    >>> model.best_candidate(bags[:4]).tolist(), bool(model.gap_ <= 1e-3)
    ([2, 2, 2, 2], True)
    """

    _kind = "latent-rank-svm"

    loss: LossLike = "ap"
    C: float | None = None

    def fit(
        self, bags: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> LatentRankSVM:
        """Fit the ranker to labelled bags.

        After Ctrl-C, `fit` keeps the best model so far, if there is one. A ConvergenceWarning says if the alternation
        or a convex problem stops early, or if all coefficients are 0.

        Parameters
        ----------
        {bags}
        {y_bags}
        qid : array-like of shape (n_bags,), optional
            Query of each bag, in any order. By default all bags form one query.
        query_weight : array-like of shape (n_bags,), optional
            Weight of each bag's query, the same for all bags of a query.

        Returns
        -------
        LatentRankSVM
            The fitted ranker itself.
        """
        started = time.perf_counter()
        loss = self._validated()
        checked, relevant = self._checked_bags(bags, y)
        start = as_start(self.init, checked.sizes, checked.width, self.random_state)
        surrogate, n_threads = Hinge(self.scale, self.method), as_threads(self.n_threads)
        task = pose(relevant, loss, qid, query_weight, surrogate=surrogate, n_threads=n_threads)
        self.C_ = float(usual_C(_of_means(checked, task), _USUAL) if self.C is None else self.C)
        intercept = INTERCEPT if self.fit_intercept and loss.judges_labels else 0.0
        limits = (float(self.tol), float(self.outer_tol), int(self.max_outer), int(self.max_iter))
        problem = Problem(checked, relevant, task, self.C_, intercept, *limits, n_threads)
        with closing(Progress(f"LatentRankSVM {loss.name}, C={self.C_:.4g}")) as progress:
            report = progress.say if self.verbose else None
            state, interrupted = train(problem, start, self.checkpoint, report, self._stop)
        self._keep(problem, state, started, interrupted)
        return self

    def _validated(self) -> Loss:
        """Check all parameters, and return the loss that is meant."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol, outer_tol=self.outer_tol)
        check_counts(max_outer=self.max_outer, max_iter=self.max_iter)
        Hinge(self.scale, self.method).accepts(loss)
        if not is_whole(self.random_state) or self.random_state < 0:
            raise ValueError(f"random_state must be an integer, at least 0, got {self.random_state!r}")
        return loss

    def _keep(self, problem: Problem, state: State, started: float, interrupted: bool) -> None:
        if not state.learnt:
            raise KeyboardInterrupt
        self._adopt(state.coef, state.best, problem.relevant)
        self.objective_ = problem.value(state.coef, state.best, Clock())
        self.dual_, self.gap_, self.n_iter_ = state.dual, state.gap, len(state.history)
        self.history_ = {name: np.array([getattr(step, name) for step in state.history]) for name in OuterStep._fields}
        self.converged_ = state.finished and not state.reason
        self.timing_ = {"total": time.perf_counter() - started} | vars(state.clock)
        self.timing_["passes"] = state.passes + 1  # the first look at every feature
        if interrupted:
            raise KeyboardInterrupt
        said = []
        if not self.converged_:
            said.append(f"stopped at a relative duality gap of {self.gap_:.1e}, tol={self.tol:g}: {state.reason}")
        if not self.coef_.any():
            said.append("found only coefficients of 0, so all scores are equal; try another init or C")
        for what in said:
            warnings.warn(f"LatentRankSVM {what}", ConvergenceWarning, stacklevel=3)


def _of_means(bags: Bags, task: Task) -> Objective:
    """Return the risk of rankers of the bags' means, from which C takes its scale."""
    return Objective(as_features(bag_means(bags)), task)


@documented
@dataclass(eq=False, repr=False)
class LatentRankSVMCV(BagRanker):
    """Linear ranker of bags that chooses C by cross-validation.

    It fits a `LatentRankSVM` for every C on every fold, and judges it by the bags that the fold leaves out.

    Parameters
    ----------
    {loss}
    Cs : int or array-like of shape (n_Cs,), default 6
        Number of values of C to try, on a grid around the natural C of the bags' means, or the values, ascending.
    init, outer_tol, max_outer, checkpoint, random_state, method, tol, max_iter, scale : optional
        As in `LatentRankSVM`. Every fit has a checkpoint. `random_state` also decides on the folds.
    fit_intercept, n_threads, verbose : optional
        As in `LatentRankSVM`.
    cv, scoring, n_jobs : optional
        As in `RankSVMCV`, but with one metric.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    scores_ : ndarray of shape (n_Cs, n_folds)
        Metric of the bags that each fold leaves out.
    best_score_ : float
        Score of the chosen C, averaged over the folds.
    coef_, intercept_, classes_, n_features_in_, objective_, dual_, gap_, converged_, n_iter_, history_ : optional
        Those of the `LatentRankSVM` that was fitted to all bags.
    timing_ : dict of str to float
        As in `LatentRankSVM`, including the search.

    See Also
    --------
    LatentRankSVM : The same ranker for a single C.
    Bags : Bags of candidates in one feature matrix, also larger than memory.

    Examples
    --------
    >>> bags = np.random.default_rng(0).normal(size=(30, 4, 3))
    >>> bags[:10, 2, 0] += 5.0
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

    def fit(self, bags: Any, y: ArrayLike) -> LatentRankSVMCV:
        """Choose C by cross-validation, then fit the ranker.

        After Ctrl-C, `fit` chooses among the values of C that it has measured so far, and fits the final model. After a
        second Ctrl-C it keeps the best model so far.

        Parameters
        ----------
        {bags}
        {y_bags}

        Returns
        -------
        LatentRankSVMCV
            The fitted ranker itself.
        """
        started = time.perf_counter()
        loss = self._single(1.0)._validated()
        metric, n_jobs = metric_for(loss, self.scoring), as_jobs(self.n_jobs)
        checked, relevant = self._checked_bags(bags, y)
        start = as_start(self.init, checked.sizes, checked.width, self.random_state)
        given = start.candidates if start.name == "given" else None
        folds = split(Labels(relevant), None, self.cv, self.random_state)
        task = pose(relevant, loss, surrogate=Hinge(self.scale, self.method))
        self.Cs_ = grid_of_C(self.Cs, _of_means(checked, task), _GRID)
        timings: list[dict[str, Any]] = []
        search = Search(folds, metric, Labels(relevant), None, self.Cs_, n_jobs)
        self.scores_ = search.scores

        def follow(number: int) -> Iterator[NDArray[np.float64]]:
            train, test = folds[number]
            for C in self.Cs_.tolist():
                single = self._single(C, init=self.init if given is None else given[train])
                single._stop = search.stop
                single.fit(checked[train], relevant[train])
                timings.append(single.timing_)
                yield single.decision_function(checked[test])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # only the gap of the final model matters
            interrupted = search.run(follow, "LatentRankSVMCV", tell if self.verbose else None)
        self.C_, self.best_score_ = search.choose(interrupted)
        single = self._single(self.C_, verbose=self.verbose)
        interrupted = refitted(self, single, partial(single.fit, checked, relevant)) or interrupted
        timings.append(single.timing_)
        self.timing_ = {name: sum(timing[name] for timing in timings) for name in single.timing_}
        self.timing_["total"] = time.perf_counter() - started
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, C: float, **others: Any) -> LatentRankSVM:
        """Return the model for one C."""
        return LatentRankSVM(**self._shared(LatentRankSVM) | {"C": C} | others)
