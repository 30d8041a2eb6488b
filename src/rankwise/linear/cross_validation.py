"""The search behind RankSVMCV: every fold fits a path of C, and the samples that it leaves out judge each C."""

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

from rankwise.arguments import as_array, as_threads, is_whole
from rankwise.linear.features import Features
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Clock, Objective, Task
from rankwise.linear.path import solve_path
from rankwise.linear.prior import Prior
from rankwise.linear.solvers import Settings, SolverResult, Step
from rankwise.metrics import Metric, MetricLike, as_metric
from rankwise.metrics.loss import Loss
from rankwise.queries import as_queries, group

Rows = NDArray[np.int64]
Scoring = MetricLike | list[MetricLike] | tuple[MetricLike, ...] | None
# Attributes that the final fit sets.
_FITTED = ("coef_", "intercept_", "objective_", "dual_", "gap_", "n_iter_", "converged_", "history_")


class Fold(NamedTuple):
    """Rows to train on, and rows that are left out."""

    train: Rows
    test: Rows


def split(labels: Labels, qid: ArrayLike | None, cv: Any, seed: int) -> list[Fold]:
    """Split samples into folds for cross-validation.

    Folds keep queries whole if there are several. Otherwise they are stratified by relevance.

    Parameters
    ----------
    labels : Labels
        Which samples are relevant, and their grades if there are any.
    qid : array-like of shape (n_samples,) or None
        Query of each sample, in any order. None means that all samples form one query.
    cv : int, cross-validation splitter or None
        Number of folds, or a splitter, which receives the queries as groups. None means 5.
    seed : int
        Seed for the random split. Splitters do not use it.

    Returns
    -------
    list of Fold
        Pairs (train, test) of row numbers.

    Raises
    ------
    ValueError
        If there are too few samples or queries for so many folds, or if a splitter trains on the same row twice.

    See Also
    --------
    Search : Fits all candidates on the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.linear.labels import Labels
    >>> folds = split(Labels(np.array([True, False, True, False])), qid=None, cv=2, seed=0)
    >>> [(fold.train.size, fold.test.size) for fold in folds]
    [(2, 2), (2, 2)]
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
        check_folds(cv)
        what, n = "samples in the smaller class", min(int(relevant.sum()), int((~relevant).sum()))
        if codes is not None:
            what, n = "queries with both classes", n_queries
        if n < cv:
            raise ValueError(f"cv={cv} needs at least {cv} {what}, but there are only {n}; pass a smaller cv")
        of = StratifiedKFold if codes is None else GroupKFold
        cv = of(cv, shuffle=True, random_state=seed)
    else:
        cv = check_cv(cv, relevant, classifier=True)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # about classes with fewer samples than folds, which is checked above
        folds = [Fold(*map(_as_rows, pair)) for pair in cv.split(np.zeros((relevant.size, 1)), relevant, codes)]
    for fold in folds:
        if np.unique(fold.train).size != fold.train.size:
            raise ValueError(
                "cv has a fold that trains on the same row twice; pass a splitter that draws without replacement"
            )
    return folds


def check_folds(cv: int) -> None:
    """Refuse a number of folds of which none has both samples to train on and samples to leave out."""
    if cv < 2:
        raise ValueError(f"cv must be at least 2, got {cv}; pass a number of folds, or a splitter")


def as_jobs(n_jobs: int | None) -> int:
    """Return how many folds to fit at the same time: None means one, −1 all processors."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be at least 1, or -1 for all processors, got {n_jobs!r}")
    return as_threads(n_jobs)


def metric_for(loss: Loss, scoring: MetricLike | None) -> Metric:
    """Return the metric to choose by: `scoring`, or the one that is trained for, or AP for a loss of labels."""
    return as_metric(loss if scoring is None and loss.has_grades else scoring or "ap")


def metrics_for(loss: Loss, scoring: Scoring) -> list[Metric]:
    """Return the metrics to measure, of which the first one chooses."""
    if not isinstance(scoring, list | tuple):
        return [metric_for(loss, scoring)]
    metrics = [as_metric(one) for one in scoring]
    names = [metric.name for metric in metrics]
    if not names:
        raise ValueError("scoring is an empty list; pass a metric, or several of which the first one chooses")
    if len(set(names)) < len(names):
        raise ValueError(f"scoring lists a metric twice: {', '.join(names)}; list each metric once")
    return metrics


def run_jobs(work: Callable[..., bool], jobs: Sequence[tuple[Any, ...]], n_jobs: int, stop: threading.Event) -> bool:
    """Call work(*job) for all jobs, n_jobs at a time in threads; return whether a job was interrupted.

    A job is interrupted if it raises KeyboardInterrupt or returns False. stop: set on Ctrl-C, for jobs to look at.
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
    """Return row numbers from the output of a splitter: numbers or a mask."""
    array = np.asarray(part)
    return np.flatnonzero(array) if array.dtype == np.bool_ else array.astype(np.int64)


class Candidate(NamedTuple):
    """A loss and a C by their positions, and the mean score over the folds."""

    loss: int
    C: int
    score: float


@dataclass(eq=False)
class Search:
    """Cross-validation of ranking SVMs over losses and values of C.

    Parameters
    ----------
    features : list of Features
        Features of all samples, one entry per loss.
    tasks : list of list of Task
        Ranking task of the training samples, by loss and fold.
    Cs : ndarray of shape (n_losses, n_Cs)
        Values of C to try for each loss, in ascending order.
    folds : list of Fold
        Folds, as `split` returns them.
    priors : list of Prior or None
        Model to refine on each fold. An entry is None if nothing is refined.
    labels : Labels
        Labels of all samples.
    qid : array-like of shape (n_samples,) or None
        Query of each sample.
    metric : Metric
        Metric to choose by.
    solver : str
        Name of a solver in `SOLVERS`.
    settings : Settings
        Tolerance, maximum number of iterations and seed of the solver.
    say : callable, optional
        Called with a line of text whenever a fold is done.
    also : sequence of Metric, optional
        Further metrics of the same models.
    results : dict, optional
        Results of the solver by (loss, C, fold), filled in by `run`.

    Attributes
    ----------
    scores : ndarray of shape (n_losses, n_Cs, n_folds)
        Scores by `metric` on the samples that are left out. NaN where nothing is measured.
    scores_by : dict of str to ndarray
        Scores by the name of each metric.
    clocks : list of Clock
        Where the time went, one entry per loss and fold.

    See Also
    --------
    choose : Picks the best candidate from the scores.
    rankwise.RankSVMCV : The estimator that uses this search.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import Search, Settings, as_features, pose, split
    >>> from rankwise.linear.labels import Labels
    >>> from rankwise.metrics import as_metric
    >>> features = [as_features(np.array([[0.0], [1.0], [2.0], [3.0]]))]
    >>> labels = Labels(np.array([False, False, True, True]))
    >>> folds, Cs = split(labels, qid=None, cv=2, seed=0), np.array([[1.0, 10.0]])
    >>> tasks = [[pose(labels.truth, AveragePrecision(), rows=fold.train) for fold in folds]]
    >>> inputs = (features, tasks, Cs, folds, [None, None], labels, None, as_metric("ap"))
    >>> search = Search(*inputs, solver="cutting-plane", settings=Settings())
    >>> search.run(n_jobs=1), search.scores.shape
    (False, (1, 2, 2))
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
        """Fit and score every loss and C on every fold.

        Parameters
        ----------
        n_jobs : int
            Number of folds that are fitted at the same time, in threads.

        Returns
        -------
        bool
            Whether the search was interrupted by Ctrl-C. What is measured by then stays in `scores`.
        """
        jobs = [(loss, fold) for fold in range(len(self.folds)) for loss in range(len(self.tasks))]
        return run_jobs(self._follow, jobs, n_jobs, self._stop)

    def _follow(self, loss: int, fold: int) -> bool:
        """Fit the path of C of one loss on one fold; return whether it was completed."""
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
    """Choose the loss and the C with the highest mean score over the folds.

    Only candidates that are measured on the largest number of folds take part. Of equal ones, the smallest C wins.

    Parameters
    ----------
    scores : ndarray of shape (n_losses, n_Cs, n_folds)
        Scores of the candidates. NaN means not measured.
    metric : Metric
        Metric of the scores, for error messages.
    interrupted : bool, default False
        Whether the search was interrupted. Decides which error is raised if nothing is measured.

    Returns
    -------
    Candidate
        Positions of the loss and of the C, and the mean score.

    Raises
    ------
    KeyboardInterrupt
        If nothing is measured because the search was interrupted.
    ValueError
        If nothing is measured because the metric cannot judge the samples that the folds leave out.

    See Also
    --------
    Search : Measures the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import as_metric
    >>> choose(np.array([[[0.5, 0.6], [0.8, 0.7]]]), as_metric("ap"))
    Candidate(loss=0, C=1, score=0.75)
    """
    measured = np.isfinite(scores).sum(axis=2)
    if not measured.any():
        if interrupted:
            raise KeyboardInterrupt("interrupted before any C was measured")
        raise ValueError(
            f"no fold of cv leaves out samples that {metric.name} can judge; pass a cv whose folds leave out positives"
        )
    mean = np.where(measured == measured.max(), np.nansum(scores, axis=2) / np.maximum(measured, 1), -np.inf)
    loss, C = np.unravel_index(int(np.argmax(mean)), mean.shape)
    return Candidate(int(loss), int(C), float(mean[loss, C]))


def refitted(model: Any, single: Any, *data: Any, also: tuple[str, ...] = ()) -> bool:
    """Fit `single` to all data and copy its fitted attributes to `model`; return whether it was interrupted."""
    interrupted = False
    try:
        single.fit(*data)
    except KeyboardInterrupt:
        if not hasattr(single, "timing_"):  # nothing is fitted yet
            raise
        interrupted = True
    for name in (*_FITTED, *also):
        setattr(model, name, getattr(single, name))
    return interrupted
