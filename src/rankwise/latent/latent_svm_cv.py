"""LatentRankSVMCV: the C of a ranker of bags by cross-validation over bags."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.inputs import as_scale
from rankwise.latent.bags import Bags
from rankwise.latent.initial import as_starts, bag_means, part_of
from rankwise.latent.latent_svm import BagRanker, LatentRankSVM
from rankwise.linear.cross_validation import Fold, as_jobs, choose, metric_for, refitted, run_jobs, split
from rankwise.linear.features import as_features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective, Task
from rankwise.linear.path import grid_of_C
from rankwise.linear.posing import pose
from rankwise.losses import LossLike
from rankwise.method import as_method
from rankwise.metrics import Metric, MetricLike

# Where a grid of C begins and ends, in powers of ten of the natural C of the bags' means.
_GRID = (-2.0, 2.0)


@dataclass(eq=False, repr=False)
class LatentRankSVMCV(BagRanker):
    """A `LatentRankSVM` whose C is chosen by cross-validation over bags, then fitted to all of them.

    Cs: values of C in ascending order, or how many to lay out around the natural C of the bags' means. cv: folds,
    stratified, or a splitter. scoring: the measure to choose by; by default that of the loss. n_jobs: folds at a time,
    in threads. checkpoint: a folder in which every fit of the search keeps its own file. Others: as in `LatentRankSVM`.

    Fitted, beside what `LatentRankSVM` has: C_ (chosen), Cs_ (Cs,), scores_ (Cs, folds) of the measure on the bags
    left out, best_score_. timing_ covers the search.

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
        """Choose C, then fit; arguments as in `LatentRankSVM.fit`. A given `init` is by bag, and split with them.

        After Ctrl-C the choice is made from what has been measured so far, and the last fit is done; after a second
        one, the best model so far is kept, if there is one. KeyboardInterrupt goes on in either case.
        """
        started = time.perf_counter()
        loss = self._single(1.0).validated()
        metric, n_jobs = metric_for(loss, self.scoring), as_jobs(self.n_jobs)
        checked, relevant = self._checked_bags(bags, y)
        as_starts(self.init, checked.sizes, checked.width)
        folds = split(Labels(relevant), None, self.cv, self.random_state)
        task = pose(relevant, loss, scale=as_scale(self.scale), method=as_method(self.method, loss))
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
        """The model for one C; rows: of the bags it will see, where they are not all."""
        model = LatentRankSVM(C=C, **self._shared(LatentRankSVM))
        if rows is not None:
            model.init = part_of(self.init, rows)
        return model


def grid_of_bags(Cs: int | ArrayLike, bags: Bags, task: Task) -> NDArray[np.float64]:
    """Values of C as they are, or a number of them laid out around the natural one of the bags' means."""
    return grid_of_C(Cs, Objective(as_features(bag_means(bags)), task), _GRID)


class _Search:
    """Scores of every C on every fold; NaN where not measured."""

    def __init__(
        self, model: LatentRankSVMCV, bags: Bags, relevant: NDArray[np.bool_], folds: list[Fold], metric: Metric
    ) -> None:
        self._model, self._bags, self._relevant, self._folds, self._metric = model, bags, relevant, folds, metric
        self.scores = np.full((model.Cs_.size, len(folds)), np.nan)
        self.timings: list[dict[str, Any]] = []
        self._stop = threading.Event()

    def run(self, n_jobs: int) -> bool:
        """Measure everything, several folds at a time; whether it was interrupted."""
        jobs = [(fold,) for fold in range(len(self._folds))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a fold's gap is not the model's
            return run_jobs(self._measure, jobs, n_jobs, self._stop)

    def _measure(self, fold: int) -> bool:
        """Fit every C on one fold: to its end, or to a KeyboardInterrupt."""
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
            print(f"LatentRankSVMCV: {line}", file=sys.stderr, flush=True)
        return True
