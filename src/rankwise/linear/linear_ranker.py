"""LinearRanker: a linear ranker for a metric, with nothing to choose but the metric."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array, is_whole
from rankwise.io.models import ModelFile, ModelFileError
from rankwise.linear.base import BaseLinearRanker
from rankwise.linear.blas import one_thread_each
from rankwise.linear.candidates import Samples
from rankwise.linear.cross_validation import Fold, as_jobs
from rankwise.linear.features import Vector
from rankwise.linear.judging import Judge
from rankwise.linear.labels import Labels
from rankwise.linear.objective import Objective
from rankwise.linear.path import NoSlopeError, grid_of_C
from rankwise.linear.posing import pose
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.standardising import Standardised
from rankwise.linear.tuning import Search
from rankwise.linear.tuning_report import TuningReport, check_columns, columns_of
from rankwise.losses import as_loss
from rankwise.metrics import Metric, MetricLike, as_metric
from rankwise.progress import Progress

__all__ = ["LinearRanker"]

# How many C of the structured hinge are tried, and where they begin and end, in powers of ten of the natural C. With
# several queries it is often the best start, and worth a finer grid.
_ONE_QUERY, _QUERIES = (4, (1.0, 4.0)), (6, (0.0, 4.0))
# Where data are few, classes are balanced, too.
_STARTS, _BALANCED = ("logistic", "squared hinge"), ("balanced logistic", "balanced squared hinge")


class LinearRanker(BaseLinearRanker):
    """A linear ranker for a metric: tuned classifiers, refined for the metric, and their mean by merit.

    `fit` scales the features, tries logistic regressions, squared hinges and structured hinges of several strengths,
    and refines the mean of the best by the smooth loss of the metric, see `rankwise.smooth_loss`. Folds judge all of
    these by the metric. The ranker is the mean of their coefficients, weighted by exp(−z/¾), z being how many standard
    errors one is worse than the best: so a choice is not misled by chance where positives are few.

    Parameters
    ----------
    metric : str, Metric or callable
        What the ranker is judged by: "ap", "ndcg", "ndcg@10", "mrr", "auc", another name of `rankwise.metrics.METRICS`,
        "map", which is "ap" with queries, or a scikit-learn scorer, scorer(estimator, X, y). Rankers are refined by the
        smooth loss of the same name, for other metrics by that of AP.
    cv : int or splitter
        Folds, or what makes them. They keep queries whole, else they are stratified. There are no more of them than
        positives; folds of little data are drawn three times.
    n_jobs : int, optional
        Folds at a time, in threads; −1 for all processors. Results do not depend on it.
    random_state : int
        Of the folds.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d)
        For the features as they were given.
    intercept_ : ndarray of shape (1,)
        Where `predict` has its threshold: where F1 on the training samples is highest. No ranking depends on it.
    classes_ : ndarray of shape (2,)
        The greater label is the relevant one.
    report_ : TuningReport
        What was tried, with the score of every fold and the share in the ranker; it prints and plots.
    best_score_ : float
        The mean over folds of the best single candidate.
    metric_ : str
        The name of the metric; "score" for a scorer.
    timing_ : dict
        Seconds of the search and of the last fits.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    RankSVM : the convex structured hinge of the paper alone, with a certified gap.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearRanker("ap", cv=3).fit(X[::2], y[::2])
    >>> int(model.rank(X[1::2]).min()), bool(model.best_score_ > 0.99)
    (1, True)
    """

    _kind = "linear-ranker"
    fit_intercept = True

    def __init__(
        self,
        metric: MetricLike | Callable[..., float] = "ap",
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> LinearRanker:
        """Fit to labelled samples.

        After Ctrl-C, what has been tried so far decides, and the last fits are done; after a second one, the mean of
        what is fitted by then is kept, if there is anything. KeyboardInterrupt is raised in either case.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples; float32, sparse and memory-mapped data are used as they are.
        y : array-like of shape (n,)
            Labels of two classes; with qid, more than two numbers are grades, at least 0. Metrics that see grades, such
            as "ndcg@10", train for them; others see what is above the lowest grade. classes_ is then 0 and 1.
        qid : array-like of shape (n,), optional
            The query of each sample, in any order; without it all samples are one.
        query_weight : array-like of shape (n,), optional
            The weight of each sample's query in training.

        Returns
        -------
        LinearRanker
            Itself, fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are not in order.
        KeyboardInterrupt
            After Ctrl-C.
        """
        started = time.perf_counter()
        metric, n_jobs = self._judged_by(qid), self._n_jobs()
        X, labels = self._checked_both(X, y, qid)
        metric = None if metric is None else metric.for_grades(labels.grades)
        self._fit_to(self._data(X, labels, qid, query_weight, metric), metric, n_jobs, started)
        return self

    def _n_jobs(self) -> int:
        """The number of jobs, if that and the seed are in order."""
        if not is_whole(self.random_state) or self.random_state < 0:
            raise ValueError(f"random_state must be an integer, at least 0, got {self.random_state!r}")
        return as_jobs(self.n_jobs)

    def _fit_to(self, data: RankerData, metric: Metric | None, n_jobs: int, started: float) -> None:
        progress = Progress(type(self).__name__) if self.verbose else None
        try:
            with one_thread_each():
                interrupted = self._fit(data, metric, n_jobs, started, progress)
        finally:
            if progress is not None:
                progress.close()
        if interrupted:
            raise KeyboardInterrupt

    def _fit(
        self, data: RankerData, metric: Metric | None, n_jobs: int, started: float, progress: Progress | None
    ) -> bool:
        """Search and conclude; whether that was interrupted."""
        tried_on = data.tried_on(self.random_state)
        search = self._search(tried_on, metric, n_jobs)
        if progress is not None:
            search.say = progress.say
        interrupted = search.run()
        searched = time.perf_counter()
        if tried_on is not data:  # weights add up as they did, since C is against their sum
            self._widen(search, data, metric, tried_on.relevant.size / data.relevant.size)
        interrupted |= self._conclude(search, data)
        now = time.perf_counter()
        self.history_, self.metric_ = columns_of(search.tried), self._metric_name()
        self.best_score_ = self.report_.best_score
        self.timing_ = {"total": now - started, "search": searched - started, "fit": now - searched}
        return interrupted

    def _widen(self, search: Search, data: RankerData, metric: Metric | None, share: float) -> None:
        """Let the last fits of a search be to all samples, whose weights are multiplied by a share."""
        whole = self._samples(data, metric)
        search.samples = whole._replace(weights=share * whole.weights)

    @property
    def report_(self) -> TuningReport:
        """What was tried."""
        if not hasattr(self, "history_"):
            raise AttributeError("report_ is there after fit")
        return TuningReport(self.history_, self.metric_)

    @classmethod
    def from_file(cls, file: ModelFile, path: str | Path) -> LinearRanker:
        """The ranker in an open model file; for `rankwise.load`."""
        model = cast(LinearRanker, super().from_file(file, path))
        try:
            check_columns(model.history_)
        except ValueError as error:
            raise ModelFileError(f"{path}: {error}; copy it again, or save the model again") from None
        if not hasattr(model, "metric_"):
            raise ModelFileError(f"{path}: a LinearRanker without metric_; copy it again, or save the model again")
        model.best_score_ = model.report_.best_score
        return model

    def _metric_name(self) -> str:
        return self.metric if isinstance(self.metric, str) else getattr(self.metric, "name", "score")

    def _judged_by(self, qid: ArrayLike | None) -> Metric | None:
        """The metric; None for a scorer."""
        if self.metric == "map":
            if qid is None:
                raise ValueError("'map' is the mean of AP over queries: pass qid, or metric='ap' for a single query")
            return as_metric("ap")
        if callable(self.metric) and not isinstance(self.metric, Metric):
            return None
        return as_metric(self.metric)

    def _data(
        self,
        X: Any,
        labels: Labels,
        qid: ArrayLike | None,
        query_weight: ArrayLike | None,
        metric: Metric | None,
    ) -> RankerData:
        ids = None if qid is None else as_array(qid, "qid")
        weight = None if query_weight is None else as_array(query_weight, "query_weight")
        pose(labels.truth, as_loss("ap"), ids, weight)  # refuses what is not in order
        ids = None if ids is None or np.unique(ids).size == 1 else ids
        if metric is None:
            return RankerData(X, labels, ids, weight, labels.truth)
        judged = metric.truth(*labels)
        return RankerData(X, labels if metric.graded else Labels(labels.relevant), ids, weight, judged)

    def _samples(self, data: RankerData, metric: Metric | None) -> Samples:
        features = Standardised(data.X)
        loss = refined_by(metric)
        weights = data.row_weights
        starts = (*_STARTS, *_BALANCED) if data.is_small else _STARTS
        samples = Samples(features, data.labels, weights, loss, data.qid, data.weight, starts=starts)
        task = samples.pose(graded=False)
        n_Cs, ends = _QUERIES if task.n_queries > 1 else _ONE_QUERY
        try:
            Cs = grid_of_C(n_Cs, Objective(features, task), ends)
        except NoSlopeError:
            return samples
        return samples._replace(Cs=tuple(Cs.tolist()))

    def _search(self, data: RankerData, metric: Metric | None, n_jobs: int) -> Search:
        folds, repeats = data.folds(self.cv, self.random_state)
        samples = self._samples(data, metric)
        scorer = None if metric is not None else self._scorer(data, samples.features)
        judge = Judge(metric, data.judged, data.qid, folds, repeats, scorer) if folds else None
        return Search(samples, judge, n_jobs)

    def _scorer(self, data: RankerData, features: Standardised) -> Callable[[Vector, Fold], float]:
        """A function of coefficients and a fold: what the scorer says of a ranker with these."""
        scorer: Any = self.metric
        y = self.classes_[data.relevant.astype(int)] if data.labels.grades is None else data.labels.grades

        def score(coef: Vector, fold: Fold) -> float:
            probe = copy.copy(self)
            probe._take(features, coef, data.relevant)
            return float(scorer(probe, data.X[fold.test], y[fold.test]))

        return score

    def _conclude(self, search: Search, data: RankerData) -> bool:
        """Take the mean of what is fitted to all samples; whether that was interrupted."""
        found, interrupted = None, False
        try:
            for mean in search.conclude():
                found = mean
        except KeyboardInterrupt:
            if found is None:
                raise
            interrupted = True
        assert found is not None
        self._take_found(search, found, data)
        return interrupted

    def _take_found(self, search: Search, coef: Vector, data: RankerData) -> None:
        self._take(search.samples.features, coef, data.relevant)

    def _take(self, features: Standardised, coef: Vector, relevant: NDArray[np.bool_]) -> None:
        """Coefficients of standardised features, brought back to those that were given."""
        given = features.as_given(coef)
        scores = features.scores(coef) + float(features.centre @ given)
        self._adopt(given, lambda learnt: scores, relevant)
