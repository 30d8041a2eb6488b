"""The search behind RankSVMCV: every fold follows a path of C, and what it left out says how good each C is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv

from rankwise.grouping import group
from rankwise.inputs import as_array, as_threads, is_whole
from rankwise.linear.features import Features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Clock, Objective, Task
from rankwise.linear.path import solve_path
from rankwise.linear.prior import Prior
from rankwise.linear.solvers import Settings, SolverResult, Step
from rankwise.losses import Loss
from rankwise.metrics import METRICS, Metric, MetricLike, as_metric
from rankwise.queries import as_queries

Rows = NDArray[np.int64]
Scoring = MetricLike | list[MetricLike] | tuple[MetricLike, ...] | None
# What is learnt by the last fit.
_FITTED = ("coef_", "intercept_", "objective_", "dual_", "gap_", "n_iter_", "converged_", "history_")


class Fold(NamedTuple):
    """Rows to train on, and rows left out."""

    train: Rows
    test: Rows


def split(labels: Labels, qid: ArrayLike | None, cv: Any, seed: int) -> list[Fold]:
    """Folds that keep queries whole where there are several, else stratified by what is relevant.

    cv: how many (None: 5), or a splitter, which is given the queries as groups.
    """
    cv = 5 if cv is None else cv
    relevant, codes, n_queries = labels.relevant, None, 0
    if qid is not None:
        grouping = group(qid, relevant.size)
        n_queries = int(as_queries(grouping.gather(labels.truth), grouping.starts).can_rank.sum())
        codes = grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(grouping.starts)))
        if grouping.ids.size == 1:
            codes = None
    if is_whole(cv):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}")
        what, n = "samples in the smaller class", min(int(relevant.sum()), int((~relevant).sum()))
        if codes is not None:
            what, n = "queries with both classes", n_queries
        if n < cv:
            raise ValueError(f"cv={cv} folds need as many {what}, and there are {n}; pass a smaller cv")
        of = StratifiedKFold if codes is None else GroupKFold
        cv = of(cv, shuffle=True, random_state=seed)
    else:
        cv = check_cv(cv, relevant, classifier=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes rarer than folds, which were counted above
        folds = [Fold(*map(_as_rows, pair)) for pair in cv.split(np.zeros((relevant.size, 1)), relevant, codes)]
    for fold in folds:
        if np.unique(fold.train).size != fold.train.size:
            raise ValueError("cv gives a fold that trains on the same row twice; pass a splitter without replacement")
    return folds


def as_jobs(n_jobs: int | None) -> int:
    """How many folds at a time; None for one, −1 for all processors."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be at least 1, or -1 for all processors, got {n_jobs!r}")
    return as_threads(n_jobs)


def metric_for(loss: Loss, scoring: MetricLike | None) -> Metric:
    """The measure to choose by: the one that is asked for, else that of the loss's name, else AP."""
    if scoring is not None:
        return as_metric(scoring)
    name = loss.name.partition("@")[0]
    if name not in METRICS:
        return METRICS["ap"]
    return METRICS[name] if METRICS[name].cut == "never" else as_metric(loss.name)


def metrics_for(loss: Loss, scoring: Scoring) -> list[Metric]:
    """The measures to judge by, of which the first chooses: `metric_for` of one, or of each in a list."""
    if not isinstance(scoring, list | tuple):
        return [metric_for(loss, scoring)]
    metrics = [as_metric(one) for one in scoring]
    names = [metric.name for metric in metrics]
    if not names:
        raise ValueError("scoring is an empty list; name a measure, or several, of which the first chooses")
    if len(set(names)) < len(names):
        raise ValueError(f"scoring names a measure twice: {', '.join(names)}; name each once")
    return metrics


def run_jobs(work: Callable[..., bool], jobs: Sequence[tuple[Any, ...]], n_jobs: int, stop: threading.Event) -> bool:
    """Call work(*job) for all jobs, n_jobs at a time in threads; whether one was interrupted, or said it was: False.

    stop: set on Ctrl-C, for work to look at.
    """
    try:
        if n_jobs == 1:
            return not all(work(*job) for job in jobs)
        with ThreadPoolExecutor(n_jobs) as pool:
            futures = [pool.submit(work, *job) for job in jobs]
            try:
                wait(futures)
            except KeyboardInterrupt:
                stop.set()
                raise
            return not all(future.result() for future in futures)
    except KeyboardInterrupt:
        return True


def _as_rows(part: ArrayLike) -> Rows:
    """Row numbers from what splitters give: numbers, or a mask."""
    array = np.asarray(part)
    return np.flatnonzero(array) if array.dtype == np.bool_ else array.astype(np.int64)


class Candidate(NamedTuple):
    """A loss and a C by their numbers, and the mean score of the folds."""

    loss: int
    C: int
    score: float


@dataclass(eq=False)
class Search:
    """Scores of every loss and C on every fold, (losses, Cs, folds); NaN where not measured.

    features, tasks: by loss, and by loss and fold. priors: by fold, or None. also: further measures of the same models.
    scores: by `metric`; scores_by: by the name of each measure.
    """

    features: list[Features]
    tasks: list[list[Task]]
    Cs: NDArray[np.float64]
    folds: list[Fold]
    priors: list[Prior | None]
    labels: Labels
    qid: ArrayLike | None
    metric: Metric
    solver: str
    settings: Settings
    say: Callable[[str], None] = lambda line: None
    also: Sequence[Metric] = ()
    results: dict[tuple[int, int, int], SolverResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._judges = [(one, one.truth(*self.labels)) for one in (self.metric, *self.also)]
        shape = (*self.Cs.shape, len(self.folds))
        self.scores_by = {metric.name: np.full(shape, np.nan) for metric, _ in self._judges}
        self.scores = self.scores_by[self.metric.name]
        self.clocks: list[Clock] = []
        self._stop = threading.Event()
        self._qid = None if self.qid is None else as_array(self.qid, "qid")

    def run(self, n_jobs: int) -> bool:
        """Measure everything, several folds at a time; whether it was interrupted."""
        jobs = [(loss, fold) for fold in range(len(self.folds)) for loss in range(len(self.tasks))]
        return run_jobs(self._follow, jobs, n_jobs, self._stop)

    def _follow(self, loss: int, fold: int) -> bool:
        """Follow the path of C of one loss on one fold; whether it came to the end."""
        features, prior, test = self.features[loss], self.priors[fold], self.folds[fold].test
        objective = Objective(features, self.tasks[loss][fold], None if prior is None else prior.scores)
        self.clocks.append(objective.clock)
        settings = Settings(self.settings.tol, self.settings.max_iter, None, self._check, self.settings.seed)
        path: Iterator[SolverResult] = solve_path(objective, self.Cs[loss], self.solver, settings)
        for C, result in enumerate(path):
            if result.interrupted:
                return False
            scores = objective.scores(result.coef)[test]
            qid = None if self._qid is None else self._qid[test]
            self.results[loss, C, fold] = result
            for metric, truth in self._judges:
                self.scores_by[metric.name][loss, C, fold] = metric(scores, truth[test], qid=qid, empty="skip")
        best = np.nanmax(self.scores[loss, :, fold], initial=0.0)
        name = self.tasks[loss][fold].inference.loss.name
        self.say(f"fold {fold + 1} of {len(self.folds)}, {name} loss: best {self.metric.name} {best:.4f}")
        return True

    def _check(self, step: Step) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt


def choose(scores: NDArray[np.float64], metric: Metric, interrupted: bool = False) -> Candidate:
    """The highest mean of scores (losses, Cs, folds) among candidates measured on most folds; of several, the least C.

    NaN is not measured.
    """
    measured = np.isfinite(scores).sum(axis=2)
    if not measured.any():
        if interrupted:
            raise KeyboardInterrupt("interrupted before any C was measured")
        raise ValueError(f"no fold of cv leaves out samples that {metric.name} can judge; leave out positives")
    mean = np.where(measured == measured.max(), np.nansum(scores, axis=2) / np.maximum(measured, 1), -np.inf)
    loss, C = np.unravel_index(int(np.argmax(mean)), mean.shape)
    return Candidate(int(loss), int(C), float(mean[loss, C]))


def refitted(model: Any, single: Any, *data: Any, also: tuple[str, ...] = ()) -> bool:
    """Fit `single` to all data and give `model` what it learnt, `also` among it; whether it was interrupted."""
    interrupted = False
    try:
        single.fit(*data)
    except KeyboardInterrupt:
        if not hasattr(single, "timing_"):  # nothing was learnt yet
            raise
        interrupted = True
    for name in (*_FITTED, *also):
        setattr(model, name, getattr(single, name))
    return interrupted
