"""LinearRanker: a linear ranker that tunes itself for a metric."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, is_whole
from rankwise.documenting import documented
from rankwise.io.models import ModelFileError
from rankwise.linear.base import BaseLinearRanker
from rankwise.linear.candidates import Samples
from rankwise.linear.cross_validation import Fold, as_jobs
from rankwise.linear.features import Vector, one_thread_each
from rankwise.linear.ranker_data import RankerData, refined_by
from rankwise.linear.standardising import RowSpace, Standardised, standardise
from rankwise.linear.task import Labels, pose
from rankwise.linear.tuning import Search, Values, values_of
from rankwise.linear.tuning_report import TuningReport, check_columns, columns_of
from rankwise.metrics import Metric, MetricLike, as_metric
from rankwise.metrics.registry import as_loss
from rankwise.progress import Progress
from rankwise.surrogates import Surrogate

# Data with fewer entries than this are small. They also get starts with balanced classes, and are split into folds so
# often.
_SMALL, _REPEATS = 40_000, 3
_STARTS, _BALANCED = ("logistic", "squared hinge"), ("balanced logistic", "balanced squared hinge")


@documented
@dataclass(eq=False, repr=False)
class LinearRanker(BaseLinearRanker):
    """Linear ranker that tunes itself for a ranking metric.

    This is the estimator to start with, for imbalanced binary classification (all samples form one ranking) and for
    learning to rank (`qid`): name the metric, and `fit` scales the features and finds all else.

    Parameters
    ----------
    metric : str, Metric or callable, default "ap"
        Metric to train for and to compare candidates by: a name of `rankwise.metrics.METRICS`, such as "ap" (average
        precision) or "ndcg@10"; "map", which is "ap" averaged over queries; or a scikit-learn scorer.
    cv : int or cross-validation splitter, default 5
        Folds, which keep queries whole or else are stratified. A number of folds is at most that of the positives, and
        small data are split three times.
    n_jobs : int, optional
        Number of folds to fit at the same time, in threads; -1 uses all processors. The default is one.
    random_state : int, default 0
        Seed for the folds, and for the samples to search on if there are very many.
    {verbose}
    surrogate : Surrogate, optional
        A differentiable surrogate to refine candidates by. The default is `Smooth` with several widths.

    Attributes
    ----------
    {learnt}
    report_ : TuningReport
        All candidates, with their scores on every fold and their weights in the ranker. Print it for a table.
    best_score_ : float
        Mean score of the best candidate over the folds; NaN if there are too few samples for two folds.
    metric_ : str
        Name of the metric, or "score" for a scorer.
    history_ : dict of str to ndarray
        The columns of `report_`.
    timing_ : dict of str to float
        Seconds that `fit` took: "total", "search" and "fit" (the final fits to all samples).
    {seen}

    See Also
    --------
    RankSVM : Convex ranking SVM, with a certified optimum and for losses of your own.
    RankSVMCV : Ranking SVM whose C is chosen by cross-validation.

    Notes
    -----
    The candidates are logistic regressions, linear SVMs with squared hinge and structured hinges of the ranking loss,
    each with several strengths of regularisation, and refinements of their mean by the smooth loss of the metric
    without its cut-off (of AP for precision, recall and metrics that cannot be trained for), or by `surrogate`.
    Cross-validation compares them by the metric, on at most 32,768 samples (200,000 if there are queries). The ranker
    is the mean of the candidates, fitted to all samples and weighted by exp(−z/¾), where z tells by how many standard
    errors a candidate is worse than the best one.

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

    metric: MetricLike | Callable[..., float] = "ap"
    _: KW_ONLY
    cv: Any = 5
    n_jobs: int | None = None
    random_state: int = 0
    verbose: int = 0
    surrogate: Surrogate | None = None

    def fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> LinearRanker:
        """Fit the ranker to labelled samples.

        Ctrl-C ends the search; `fit` then does the final fits with the candidates compared so far and raises
        KeyboardInterrupt. A second Ctrl-C keeps what is fitted by then.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, whose features need not be scaled. Float32, sparse and memory-mapped data are not converted.
        {of_samples}

        Returns
        -------
        LinearRanker
            The fitted ranker itself.
        """
        started = time.perf_counter()
        if not is_whole(self.random_state) or self.random_state < 0:
            raise ValueError(f"random_state must be an integer, at least 0, got {self.random_state!r}")
        metric, n_jobs = self._judged_by(qid), as_jobs(self.n_jobs)
        X, labels = self._checked_both(X, y, qid)
        metric = None if metric is None else metric.for_grades(labels.grades)
        data = self._data(labels, qid, query_weight, metric)
        with one_thread_each(), closing(Progress(type(self).__name__)) as progress:
            interrupted = self._fit(X, data, metric, n_jobs, progress.say if self.verbose else lambda text: None)
        self.timing_["total"] = time.perf_counter() - started
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _fit(self, X: Any, data: RankerData, metric: Metric | None, n_jobs: int, say: Callable[[str], None]) -> bool:
        """Search, do the final fits, and return whether this was interrupted."""
        started = time.perf_counter()
        rows = data.searched(self.random_state)
        if rows is None:
            search = self._search(X, data, metric, n_jobs, say)
        else:
            part = np.asarray(X[rows]) if isinstance(X, np.ndarray) else X[rows]  # in memory, also of a memory map
            search = self._search(part, data.part(rows), metric, n_jobs, say)
        interrupted = search.run()
        searched = time.perf_counter()
        if rows is not None:
            samples = self._samples(X, data, metric)
            # The sum of the weights stays the same, because C is relative to it.
            search.widen(samples._replace(weights=rows.size / data.relevant.size * samples.weights))
        interrupted |= self._conclude(search, data)
        self.history_ = columns_of(search.tried)
        self.metric_ = self.metric if isinstance(self.metric, str) else getattr(self.metric, "name", "score")
        self.best_score_ = self.report_.best_score
        self.timing_ = {"search": searched - started, "fit": time.perf_counter() - searched}
        return interrupted

    @property
    def report_(self) -> TuningReport:
        """All candidates that were tried, as a table."""
        if not hasattr(self, "history_"):
            raise AttributeError("report_ is only available after fit; call fit first")
        return TuningReport(self.history_, self.metric_)

    def _check_loaded(self, path: str | Path) -> None:
        try:
            check_columns(self.history_)
        except ValueError as error:
            raise ModelFileError(f"{path}: {error}; copy it again, or save the model again") from None
        if not hasattr(self, "metric_"):
            raise ModelFileError(f"{path}: the LinearRanker has no metric_; copy it again, or save the model again")
        self.best_score_ = self.report_.best_score

    def _judged_by(self, qid: ArrayLike | None) -> Metric | None:
        """Return the metric, or None for a scorer."""
        if self.metric == "map":
            if qid is None:
                raise ValueError(
                    "metric='map' averages AP over queries and needs them; pass qid, or metric='ap' for a single query"
                )
            return as_metric("ap")
        if callable(self.metric) and not isinstance(self.metric, Metric):
            return None
        return as_metric(self.metric)

    def _data(
        self, labels: Labels, qid: ArrayLike | None, query_weight: ArrayLike | None, metric: Metric | None
    ) -> RankerData:
        ids = None if qid is None else as_array(qid, "qid")
        weight = None if query_weight is None else as_array(query_weight, "query_weight")
        pose(labels.truth, as_loss("ap"), ids, weight)  # raises if the data cannot be ranked
        ids = None if ids is None or np.unique(ids).size == 1 else ids
        if metric is None:
            return RankerData(labels, ids, weight, labels.truth)
        return RankerData(labels if metric.graded else Labels(labels.relevant), ids, weight, metric.truth(*labels))

    def _samples(self, X: Any, data: RankerData, metric: Metric | None) -> Samples:
        loss = refined_by(metric)
        own: Any = self.surrogate
        if own is not None:
            if not (isinstance(own, Surrogate) and own.is_derivative):
                raise ValueError(f"surrogate must be a Surrogate whose gradient is its derivative, got {own!r}")
            own.accepts(loss)
        return Samples(standardise(X), data, data.row_weights, loss, own)

    def _search(
        self, X: Any, data: RankerData, metric: Metric | None, n_jobs: int, say: Callable[[str], None]
    ) -> Search:
        is_small = X.shape[0] * X.shape[1] < _SMALL
        repeats = _REPEATS if is_small and (self.cv is None or is_whole(self.cv)) else 1
        folds = data.folds(self.cv, self.random_state, repeats)
        samples = self._samples(X, data, metric)
        if metric is None:
            values = [self._scorer(X, data, samples.features, fold) for fold in folds]
        else:
            values = values_of(metric, data, folds)
        starts = (*_STARTS, *_BALANCED) if is_small else _STARTS
        return Search(samples, folds, values, repeats, starts, n_jobs, say)

    def _scorer(self, X: Any, data: RankerData, features: Standardised | RowSpace, fold: Fold) -> Values:
        """Return a function of coefficients that calls the scorer with such a ranker on what a fold leaves out."""
        scorer: Any = self.metric
        y = self.classes_[data.relevant.astype(int)] if data.labels.grades is None else data.labels.grades

        def score(coef: Vector, scores: Vector) -> Vector:
            probe = copy.copy(self)
            probe._take(features, coef, data.relevant)
            return np.array([scorer(probe, X[fold.test], y[fold.test])], np.float64)

        return score

    def _conclude(self, search: Search, data: RankerData) -> bool:
        """Take the mean of the candidates fitted to all samples; return whether this was interrupted."""
        found, interrupted = None, False
        try:
            for mean in search.conclude():
                found = mean
        except KeyboardInterrupt:
            if found is None:
                raise
            interrupted = True
        assert found is not None
        self._take(search.samples.features, found, data.relevant)
        return interrupted

    def _take(self, features: Standardised | RowSpace, coef: Vector, relevant: NDArray[np.bool_]) -> None:
        """Take coefficients for standardised features, converted to the original features."""
        given = features.as_given(coef)
        scores = features.scores(coef) + float(features.centre @ given)
        self._adopt(given, scores, relevant)
