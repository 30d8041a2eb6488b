"""Metrics by name: their formula, their cut-off, and the policy for empty queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.gains import Gain, as_gain, gains_of
from rankwise.grouping import Grouping
from rankwise.inputs import check_known, check_whole
from rankwise.metrics import formulas
from rankwise.metrics.cascade import expected_reciprocal_rank
from rankwise.metrics.grades import FloatArray, check_max_grade, satisfaction
from rankwise.metrics.steps import Ranked, Steps, rank

EMPTY = ("skip", "zero", "one", "error")
# The value of an empty query by policy; NaN means left out.
_COUNTS = {"skip": np.nan, "zero": 0.0, "one": 1.0, "error": np.nan}


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric of rankings, such as "ndcg@10".

    Get one from `as_metric` rather than by this constructor. Call it like a function: metric(scores, relevant,
    qid=qid).

    Parameters
    ----------
    name : str
        Name, with the cut-off if there is one.
    function : callable
        Function of the steps of rankings and k that returns the value of each query, NaN for empty queries.
    k : int, optional
        Last place that counts. None if all places count.
    cut : {"never", "optionally", "always"}, default "never"
        Whether the metric can or must be cut at k.
    graded : bool, default False
        Whether the metric judges by grades. Otherwise samples of a grade above 0 are positives.
    gain : {"exp2", "linear"} or callable, optional
        For NDCG, the worth of a grade.
    max_grade : float, optional
        For ERR, the largest possible grade. None means the largest given.

    See Also
    --------
    as_metric : Get a metric by name.
    per_query : The values of each query.

    Examples
    --------
    >>> metric = as_metric("precision@2")
    >>> metric([0.9, 0.8, 0.1], [True, False, True])
    0.5
    """

    name: str
    function: Callable[[Steps, int | None], FloatArray]
    k: int | None = None
    cut: str = field(default="never")
    graded: bool = field(default=False)
    gain: Gain | None = None
    max_grade: float | None = None

    def __repr__(self) -> str:
        more = {"k": self.k, "gain": self.gain, "max_grade": self.max_grade}
        said = "".join(f", {name}={value!r}" for name, value in more.items() if value is not None)
        return f"Metric(name={self.name!r}{said})"

    def __call__(
        self, scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip"
    ) -> float:
        """Compute the metric, or its mean over queries if qid is given.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Finite real numbers. The higher the score, the higher the sample is ranked.
        relevant : array-like of shape (n,)
            Booleans, or grades ≥ 0. Metrics of binary relevance take samples of a grade above 0 as positives.
        qid : array-like of shape (n,), optional
            Query of each sample, as integers or strings in any order. By default all samples form one query.
        empty : {"skip", "zero", "one", "error"}, default "skip"
            What to do with a query that the metric cannot judge, usually for lack of positives: leave it out ("skip"),
            count it as 0 ("zero") or 1 ("one"), or raise a `ValueError` ("error").

        Returns
        -------
        float
            The value; larger is better. NaN if no query is left.
        """
        return mean_of(self, values_of(self, scores, relevant, qid, empty)[1], empty)

    def truth(self, relevant: NDArray[Any], grades: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the grades or the relevance, whichever this metric judges by.

        Parameters
        ----------
        relevant : ndarray of shape (n,)
            Booleans that say which samples are positives.
        grades : ndarray of shape (n,), optional
            Grades ≥ 0.

        Returns
        -------
        ndarray of shape (n,)
            `grades` if the metric is graded and there are grades, otherwise `relevant`.

        Examples
        --------
        >>> relevant, grades = np.array([True, False]), np.array([2.0, 1.0])
        >>> as_metric("ndcg@10").truth(relevant, grades), as_metric("ap").truth(relevant, grades)
        (array([2., 1.]), array([ True, False]))
        """
        return grades if self.graded and grades is not None else relevant

    def for_grades(self, grades: NDArray[Any] | None) -> Metric:
        """Return the metric for use on parts of these samples.

        ERR then uses the largest of all grades for each part. Other metrics are returned unchanged.

        Parameters
        ----------
        grades : ndarray of shape (n,) or None
            Grades of all samples.

        Returns
        -------
        Metric
            The metric with `max_grade` set if it needs one.
        """
        if grades is None or not self.graded or self.gain is not None or self.max_grade is not None:
            return self
        return replace(self, max_grade=float(grades.max()))

    def of_steps(self, steps: Steps) -> FloatArray:
        """Compute the value of each query from the steps of its ranking.

        Parameters
        ----------
        steps : Steps
            Rankings in which samples with equal scores form one step.

        Returns
        -------
        ndarray of shape (q,)
            Value of each query; NaN for empty queries.
        """
        return self.function(steps, self.k)

    def ranked(
        self, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None
    ) -> tuple[Grouping, FloatArray, Ranked | None]:
        """Group the samples by query and rank them.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Finite real numbers. The higher the score, the higher the sample is ranked.
        relevant : array-like of shape (n,)
            Booleans, or grades ≥ 0. Metrics of binary relevance take samples of a grade above 0 as positives.
        qid : array-like of shape (n,) or None
            Query of each sample, as integers or strings in any order. None if all samples form one query.

        Returns
        -------
        grouping : Grouping
            The queries.
        gain : ndarray of shape (n,)
            Worth of each sample to this metric, grouped by query.
        ranking : Ranked or None
            The ranking; None if there are no samples.
        """
        name = "grades" if self.graded else "relevant"
        return rank(scores, relevant, qid, self._worth, name=name, ideal=self.gain is not None)

    def _worth(self, grades: FloatArray) -> FloatArray:
        if not self.graded:
            return (grades > 0.0).astype(np.float64)
        return satisfaction(grades, self.max_grade) if self.gain is None else gains_of(grades, self.gain)


MetricLike = Metric | str


def per_query(
    metric: MetricLike,
    scores: ArrayLike,
    relevant: ArrayLike,
    qid: ArrayLike,
    *,
    k: int | None = None,
    empty: str = "skip",
) -> tuple[NDArray[Any], FloatArray]:
    """Compute a metric for each query.

    Parameters
    ----------
    metric : str or Metric
        Name of a metric, such as "ap" or "ndcg@10" (see `METRICS`), or a `Metric`.
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Booleans, or grades ≥ 0. Metrics of binary relevance take samples of a grade above 0 as positives.
    qid : array-like of shape (n,)
        Query of each sample, as integers or strings in any order.
    k : int, optional
        Last place that counts, for a metric whose name does not say so.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        Value of a query that the metric cannot judge: NaN ("skip"), 0 ("zero") or 1 ("one"). "error" raises a
        `ValueError`.

    Returns
    -------
    ids : ndarray of shape (q,)
        The queries, sorted.
    values : ndarray of shape (q,)
        Value of each query.

    See Also
    --------
    as_metric : Get a metric by name. Call it for the mean over queries.
    compare : Compare two rankings query by query.

    Examples
    --------
    >>> per_query("ap", [0.9, 0.8, 0.7, 0.1, 0.5], [0, 1, 1, 0, 0], qid=[4, 4, 2, 2, 7])
    (array([2, 4, 7]), array([1. , 0.5, nan]))
    """
    return values_of(as_metric(metric, k), scores, relevant, qid, empty)


def as_metric(
    metric: MetricLike, k: int | None = None, *, gain: Gain | None = None, max_grade: float | None = None
) -> Metric:
    """Get a metric by name.

    Parameters
    ----------
    metric : str or Metric
        Name of a metric with an optional cut-off, such as "ap", "ndcg", "ndcg@10" or "precision@5" (see `METRICS`), or
        a `Metric`.
    k : int, optional
        Last place that counts.
    gain : {"exp2", "linear"} or callable, optional
        For NDCG, the worth of a grade y: 2^y − 1 (the default of "ndcg"), y itself, or a function of an array of grades
        that does not fall and is 0 for grade 0.
    max_grade : float, optional
        For ERR, the largest possible grade. By default the largest given.

    Returns
    -------
    Metric
        The metric. Call it, or pass it to any function that takes a metric.

    Raises
    ------
    ValueError
        If the name is unknown, or the metric does not take k, gain or max_grade.

    See Also
    --------
    Metric : The class of metrics.
    per_query : The values of each query.

    Examples
    --------
    >>> as_metric("ndcg@10")
    Metric(name='ndcg@10', k=10, gain='exp2')
    >>> as_metric("ndcg", 5, gain="linear")([3.0, 2.0, 1.0], [1, 2, 0])
    0.8597186998521972
    """
    if isinstance(metric, str):
        metric = _named(metric)
    elif not isinstance(metric, Metric):
        raise TypeError(f"metric must be a name, such as 'ap' or 'ndcg@10', or a Metric, got {type(metric).__name__}")
    if k is not None:
        metric = _cut(metric, k)
    if metric.cut == "always" and metric.k is None:
        raise ValueError(
            f"{metric.name} needs the last place that counts; pass k, or a name such as '{metric.name}@10'"
        )
    if gain is not None:
        as_gain(gain)
        if metric.gain is None:
            raise ValueError(f"{metric.name} has no gains; gain= is for 'ndcg'")
        metric = replace(metric, gain=gain)
    if max_grade is not None:
        check_max_grade(max_grade)
        if not metric.graded or metric.gain is not None:
            raise ValueError(f"{metric.name} has no largest grade; max_grade= is for 'err'")
        metric = replace(metric, max_grade=float(max_grade))
    return metric


def _named(text: str) -> Metric:
    name, at, cut = text.partition("@")
    if name not in METRICS:
        raise ValueError(f"unknown metric {text!r}; use one of {', '.join(map(repr, METRICS))}, or e.g. 'ndcg@10'")
    if at and not re.fullmatch("[1-9][0-9]*", cut):
        raise ValueError(f"the cut-off of {text!r} must be a whole number, at least 1, as in '{name}@10'")
    return _cut(METRICS[name], int(cut)) if at else METRICS[name]


def _cut(metric: Metric, k: int) -> Metric:
    check_whole(1, k=k)
    if metric.cut == "never":
        able = ", ".join(repr(other.name) for other in METRICS.values() if other.cut != "never")
        raise ValueError(f"{metric.name} cannot be cut at k={k}; only {able} can")
    if metric.k not in (None, k):
        raise ValueError(f"{metric.name} is already cut at {metric.k}, not at k={k}; pass only one of them")
    return replace(metric, name=f"{metric.name.partition('@')[0]}@{k}", k=int(k))


def check_empty(empty: str) -> None:
    """Refuse an unknown policy for queries that a metric cannot judge."""
    check_known("empty", empty, EMPTY)


def counted_as(values: FloatArray, empty: str) -> FloatArray:
    """Return values (q,) with NaN of empty queries replaced by the policy; NaN remains if they are left out."""
    return np.where(np.isnan(values), _COUNTS[empty], values)


def mean_of(metric: Metric, values: FloatArray, empty: str) -> float:
    """Return the mean of values by query, with empty queries treated by the policy."""
    values = values[~np.isnan(values)]
    if values.size == 0 and empty == "error":
        raise ValueError(f"there are no queries, so there is no {metric.name}; pass samples, or another empty=")
    return float(np.mean(values)) if values.size else _COUNTS[empty]


def values_of(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None, empty: str
) -> tuple[NDArray[Any], FloatArray]:
    """Return the queries and their values, with empty queries treated by the policy; one query if qid is None."""
    check_empty(empty)
    metric = as_metric(metric)
    grouping, gain, ranked = metric.ranked(scores, relevant, qid)
    values = np.full(grouping.ids.size, np.nan) if ranked is None else metric.of_steps(ranked.steps())
    is_empty = np.isnan(values)
    if is_empty.any() and empty == "error":
        q = int(np.argmax(is_empty))
        part = gain[grouping.starts[q] : grouping.starts[q + 1]]
        n_pos = int(np.count_nonzero(part))
        which = "the query" if qid is None else f"query {grouping.ids[q]}"
        raise ValueError(
            f"{which} has {n_pos} positives and {part.size - n_pos} negatives, so it has no {metric.name}; remove it, "
            "or pass empty='skip', 'zero' or 'one'"
        )
    return grouping.ids, counted_as(values, empty)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("ap", formulas.average_precision, cut="optionally"),
        Metric("ndcg", formulas.ndcg, cut="optionally", graded=True, gain="exp2"),
        Metric("mrr", formulas.reciprocal_rank, cut="optionally"),
        Metric("auc", formulas.auc),
        Metric("f1", formulas.f_measure),
        Metric("precision", formulas.precision, cut="always"),
        Metric("recall", formulas.recall, cut="always"),
        Metric("err", expected_reciprocal_rank, cut="optionally", graded=True),
    )
}
