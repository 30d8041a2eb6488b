"""Cross-validation: candidates are fitted on every fold, and the samples that a fold leaves out judge them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv

from rankwise.arguments import as_array, as_threads, is_whole
from rankwise.linear.features import Vector
from rankwise.linear.task import Labels
from rankwise.metrics import Metric, MetricLike, as_metric
from rankwise.metrics.base import mean_of, measured_by
from rankwise.metrics.loss import Loss
from rankwise.queries import as_queries, group

Item = TypeVar("Item")
Rows = NDArray[np.int64]
# Attributes that the final fit sets.
_FITTED = ("coef_", "intercept_", "objective_", "dual_", "gap_", "n_iter_", "converged_", "history_")


class Fold(NamedTuple):
    """Rows to train on, and rows that are left out."""

    train: Rows
    test: Rows


def split(labels: Labels, qid: ArrayLike | None, cv: Any, seed: int) -> list[Fold]:
    """Split samples into folds, which keep queries whole if there are several, and else are stratified by relevance.

    cv: a number of folds; None means 5; or a splitter, which receives the queries as groups and uses no seed.
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
        # about classes with fewer samples than folds, which is checked above
        warnings.simplefilter("ignore", UserWarning)
        folds = [Fold(*map(_as_rows, pair)) for pair in cv.split(np.zeros((relevant.size, 1)), relevant, codes)]
    if not folds:
        raise ValueError("cv returns no folds; pass a number of folds, or a splitter that returns at least one")
    if any(np.unique(fold.train).size != fold.train.size for fold in folds):
        raise ValueError(
            "cv has a fold that trains on the same row twice; pass a splitter that draws without replacement"
        )
    return folds


def check_folds(cv: int) -> None:
    """Refuse a number of folds of which none has both samples to train on and samples to leave out."""
    if cv < 2:
        raise ValueError(f"cv must be at least 2, got {cv}; pass a number of folds, or a splitter")


def _as_rows(part: ArrayLike) -> Rows:
    """Return row numbers from the output of a splitter: numbers or a mask."""
    array = np.asarray(part)
    return np.flatnonzero(array) if array.dtype == np.bool_ else array.astype(np.int64)


def as_jobs(n_jobs: int | None) -> int:
    """Return how many folds to fit at the same time: None means one, −1 all processors."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be at least 1, or -1 for all processors, got {n_jobs!r}")
    return as_threads(n_jobs)


def metric_for(loss: Loss, scoring: MetricLike | None) -> Metric:
    """Return the metric to choose by: `scoring`, or the one that is trained for, or AP for a loss of labels."""
    return as_metric(loss if scoring is None and not loss.judges_labels else scoring or "ap")


def judges(
    metric: Metric, truth: NDArray[Any], qid: NDArray[Any] | None, folds: Sequence[Fold]
) -> list[Callable[[Vector], Vector]]:
    """Return for each fold a function from scores of the samples that it leaves out to the value of each query."""
    return [measured_by(metric, truth[test], None if qid is None else qid[test]) for _, test in folds]


class Stop(threading.Event):
    """Set on Ctrl-C, which reaches only one thread, for the others to look at."""

    def check(self, *_: Any) -> None:
        """Raise KeyboardInterrupt if it is set."""
        if self.is_set():
            raise KeyboardInterrupt


def together(paths: Sequence[Iterator[Item]], n_jobs: int, stop: Stop) -> Iterator[list[Item]]:
    """Yield the next items of all paths, n_jobs of them computed at a time in threads, until the first path ends."""
    with ThreadPoolExecutor(n_jobs) if n_jobs > 1 else nullcontext() as pool:
        each: Any = map if pool is None else pool.map
        while True:
            try:
                found = [item for items in each(lambda path: list(islice(path, 1)), paths) for item in items]
            except KeyboardInterrupt:
                stop.set()
                raise
            if len(found) < len(paths):
                return
            yield found


@dataclass(eq=False)
class Search:
    """A path of ascending C, followed on all folds at once and scored on what these leave out.

    scores: (n_Cs, n_folds), NaN where nothing is measured.
    """

    folds: list[Fold]
    metric: Metric
    labels: Labels
    qid: ArrayLike | None
    Cs: Vector
    n_jobs: int = 1
    stop: Stop = field(default_factory=Stop)

    def __post_init__(self) -> None:
        self.scores = np.full((self.Cs.size, len(self.folds)), np.nan)

    def run(self, follow: Callable[[int], Iterator[Vector]], name: str, say: Callable[[str], None] | None) -> bool:
        """Score all C; return whether this was interrupted. What is measured by then stays.

        follow(fold) yields the scores of the samples that the fold leaves out, C after C. It raises KeyboardInterrupt
        if `stop` is set. say: called with a line of text for every C, which begins with the name.
        """
        qid = None if self.qid is None else as_array(self.qid, "qid")
        each = judges(self.metric, self.metric.truth(*self.labels), qid, self.folds)

        def judged(fold: int) -> Iterator[float]:
            for scores in follow(fold):
                yield mean_of(self.metric, each[fold](scores), "skip")

        try:
            paths = [judged(fold) for fold in range(len(self.folds))]
            for k, found in enumerate(together(paths, self.n_jobs, self.stop)):
                self.scores[k] = found
                if say is not None:
                    mean = mean_of(self.metric, self.scores[k], "skip")
                    say(f"{name}, C = {self.Cs[k]:.3g}: {self.metric.name} {mean:.4f}")
        except KeyboardInterrupt:
            return True
        return False

    def choose(self, interrupted: bool) -> tuple[float, float]:
        """Return the C with the highest mean score over the folds, of equal ones the smallest, and this score.

        Only C that are measured on the largest number of folds take part.
        """
        measured = np.isfinite(self.scores).sum(axis=1)
        if not measured.any():
            if interrupted:
                raise KeyboardInterrupt("interrupted before any C was measured")
            raise ValueError(
                f"no fold of cv leaves out samples that {self.metric.name} can judge; pass a cv whose folds leave out "
                "positives"
            )
        sums = np.where(measured == measured.max(), np.nansum(self.scores, axis=1), -np.inf)
        best = int(np.argmax(sums / measured.max()))
        return float(self.Cs[best]), float(sums[best] / measured.max())


def refitted(model: Any, single: Any, fit: Callable[[], Any]) -> bool:
    """Fit `single` and copy its fitted attributes to `model`; return whether this was interrupted."""
    interrupted = False
    try:
        fit()
    except KeyboardInterrupt:
        if not hasattr(single, "timing_"):  # nothing is fitted yet
            raise
        interrupted = True
    for name in _FITTED:
        setattr(model, name, getattr(single, name))
    return interrupted
