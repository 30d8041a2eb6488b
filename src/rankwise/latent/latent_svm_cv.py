"""LatentRankSVMCV: a ranker of bags that chooses C by cross-validation over bags."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.latent.initial import Start, as_start, bag_means
from rankwise.latent.latent_svm import BagRanker, LatentRankSVM
from rankwise.linear.cross_validation import Search, as_jobs, choose, metric_for, refitted, split
from rankwise.linear.features import as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C
from rankwise.linear.task import pose
from rankwise.metrics import MetricLike
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
    init, outer_tol, max_outer, checkpoint, random_state, method, tol, max_iter, scale : optional
        As in `LatentRankSVM`. Candidates' numbers in `init` are split into folds together with the bags. There is one
        checkpoint for every fit of the search. `random_state` is also the seed for the random split into folds.
    fit_intercept, n_threads, verbose : optional
        As in `LatentRankSVM`.
    cv, scoring, n_jobs : optional
        As in `RankSVMCV`: the folds, which are stratified, one metric to choose by, and how many folds are fitted at
        the same time.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    scores_ : ndarray of shape (n_Cs, n_folds)
        Metric on the bags that each fold leaves out.
    best_score_ : float
        Score of the chosen C, averaged over the folds.
    coef_, intercept_, classes_, n_features_in_, objective_, dual_, gap_, converged_, n_iter_, history_ : optional
        Those of the `LatentRankSVM` that was fitted to all bags.
    timing_ : dict of str to float
        Where the time went, as in `LatentRankSVM`, including the search over C.

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
        """
        started = time.perf_counter()
        loss = self._single(1.0)._validated()
        metric, n_jobs = metric_for(loss, self.scoring), as_jobs(self.n_jobs)
        checked, relevant = self._checked_bags(bags, y)
        start = as_start(self.init, checked.sizes, checked.width)
        folds = split(Labels(relevant), None, self.cv, self.random_state)
        task = pose(relevant, loss, surrogate=Hinge(self.scale, self.method))
        self.Cs_ = grid_of_C(self.Cs, Objective(as_features(bag_means(checked)), task), _GRID)
        timings: list[dict[str, Any]] = []
        search = Search(folds, [metric], Labels(relevant), None, (1, self.Cs_.size))
        if self.verbose:
            search.say = lambda line: tell(f"LatentRankSVMCV: {line}")
        self.scores_ = search.scores[0]

        def follow(path: int, number: int) -> Iterator[NDArray[np.float64]]:
            train, test = folds[number]
            for C in self.Cs_.tolist():
                single = self._single(C, start, train)
                single._stop = search.stop
                single.fit(checked[train], relevant[train])
                timings.append(single.timing_)
                yield single.decision_function(checked[test])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # only the gap of the final model matters
            interrupted = search.run(follow, n_jobs)
        chosen = choose(search.scores, metric, interrupted)
        self.C_, self.best_score_ = float(self.Cs_[chosen.at]), chosen.score
        single = self._single(self.C_)
        single.verbose = self.verbose
        interrupted = refitted(self, single, partial(single.fit, checked, relevant)) or interrupted
        timings.append(single.timing_)
        self.timing_ = {name: sum(timing[name] for timing in timings) for name in single.timing_}
        self.timing_["total"] = time.perf_counter() - started
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _single(self, C: float, start: Start | None = None, rows: NDArray[np.int64] | None = None) -> LatentRankSVM:
        """Return the model for one C. start, rows: of all bags, and those to train on, if these are not all."""
        model = LatentRankSVM(C=C, **self._shared(LatentRankSVM))
        if start is not None and start.candidates is not None:
            model.init = start.candidates[rows]
        return model
