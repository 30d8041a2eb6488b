"""Metrics by name: what each judges samples by, its formula, where it is cut, and what an empty query counts."""

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
# What an empty query counts, by policy; left out where it counts NaN.
_COUNTS = {"skip": np.nan, "zero": 0.0, "one": 1.0, "error": np.nan}


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric by name, "ndcg@10": its function of the steps, (q,) values with NaN for empty queries, and its k.

    cut: whether it is "never", "optionally" or "always" cut at k. graded: whether it judges by grades; else by grade >
    0, relevant or not. gain: of grades, "exp2", "linear" or a function, for NDCG. max_grade: for ERR, the largest grade
    there can be; if None, the largest given.
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
        """The value for one query, or the mean over queries if qid is given; NaN where all are skipped.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Real numbers; larger is ranked higher.
        relevant : array-like of shape (n,)
            Booleans, or grades of at least 0.
        qid : array-like of shape (n,), optional
            The query of each sample, in any order.
        empty : {"skip", "zero", "one", "error"}
            What a query counts that the metric cannot judge, as in `average_precision`.

        Returns
        -------
        float
            Larger is better.
        """
        return mean_of(self, values_of(self, scores, relevant, qid, empty)[1], empty)

    def truth(self, relevant: NDArray[Any], grades: NDArray[Any] | None = None) -> NDArray[Any]:
        """What this metric judges by: grades if it is graded and there are any, else which samples are relevant.

        Parameters
        ----------
        relevant : ndarray of shape (n,)
            Booleans.
        grades : ndarray of shape (n,), optional
            At least 0.

        Returns
        -------
        ndarray of shape (n,)
            One of the two, as it is.

        Examples
        --------
        >>> relevant, grades = np.array([True, False]), np.array([2.0, 1.0])
        >>> as_metric("ndcg@10").truth(relevant, grades), as_metric("ap").truth(relevant, grades)
        (array([2., 1.]), array([ True, False]))
        """
        return grades if self.graded and grades is not None else relevant

    def for_grades(self, grades: NDArray[Any] | None) -> Metric:
        """The metric for parts of samples of these grades, (n,): ERR then takes the largest of all for each part."""
        if grades is None or not self.graded or self.gain is not None or self.max_grade is not None:
            return self
        return replace(self, max_grade=float(grades.max()))

    def of_steps(self, steps: Steps) -> FloatArray:
        """(q,) The value of each query."""
        return self.function(steps, self.k)

    def ranked(
        self, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None
    ) -> tuple[Grouping, FloatArray, Ranked | None]:
        """The queries, what their samples are worth to this metric, and the ranking; None if there are no samples."""
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
    """The value of each query.

    Parameters
    ----------
    metric : str or Metric
        A name, such as "ap" or "ndcg@10", or what `as_metric` returns.
    scores, relevant, qid : array-like of shape (n,)
        As in `average_precision`; relevant may be grades.
    k : int, optional
        Where to cut a metric that is not cut by its name.
    empty : {"skip", "zero", "one", "error"}
        An empty query is NaN, 0 or 1, or is refused.

    Returns
    -------
    ids : ndarray of shape (q,)
        The queries, sorted.
    values : ndarray of shape (q,)
        One a query.

    Examples
    --------
    >>> per_query("ap", [0.9, 0.8, 0.7, 0.1, 0.5], [0, 1, 1, 0, 0], qid=[4, 4, 2, 2, 7])
    (array([2, 4, 7]), array([1. , 0.5, nan]))
    """
    return values_of(as_metric(metric, k), scores, relevant, qid, empty)


def as_metric(
    metric: MetricLike, k: int | None = None, *, gain: Gain | None = None, max_grade: float | None = None
) -> Metric:
    """The metric of that name, or the metric itself, cut at k if given.

    Parameters
    ----------
    metric : str or Metric
        "ap", "ndcg", "ndcg@10", "precision@5" and so on: a name of `METRICS`, and where it is cut.
    k : int, optional
        The last place that counts.
    gain : {"exp2", "linear"} or callable, optional
        For NDCG, what a grade y is worth: 2^y − 1 (as a name means), y, or a function of an array of grades that does
        not fall and is 0 for 0.
    max_grade : float, optional
        For ERR, the largest grade there can be; as a name means, the largest that is given.

    Returns
    -------
    Metric
        To be called, or passed wherever a metric is named.

    Raises
    ------
    ValueError
        If the name is unknown, or the metric knows no k, gain or max_grade.

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
        raise ValueError(f"{metric.name} is not cut at k={k}; cut one of {able}")
    if metric.k not in (None, k):
        raise ValueError(f"{metric.name} is cut at {metric.k} already, not at k={k}; pass one of the two")
    return replace(metric, name=f"{metric.name.partition('@')[0]}@{k}", k=int(k))


def check_empty(empty: str) -> None:
    """Refuse an unknown policy for queries that a metric cannot judge."""
    check_known("empty", empty, EMPTY)


def counted_as(values: FloatArray, empty: str) -> FloatArray:
    """(q,) Values with what empty queries, NaN, count by the policy: NaN still where they are left out."""
    return np.where(np.isnan(values), _COUNTS[empty], values)


def mean_of(metric: Metric, values: FloatArray, empty: str) -> float:
    """The mean of values by query, those of empty queries by the policy."""
    values = values[~np.isnan(values)]
    if values.size == 0 and empty == "error":
        raise ValueError(f"there are no queries and so no {metric.name}; pass samples, or another empty=")
    return float(np.mean(values)) if values.size else _COUNTS[empty]


def values_of(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None, empty: str
) -> tuple[NDArray[Any], FloatArray]:
    """The queries and their values, those of empty queries by the policy; one query if qid is None."""
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
            f"{which} has {n_pos} positives and {part.size - n_pos} negatives and so no {metric.name}; remove it, or "
            "pass empty='skip', 'zero' or 'one'"
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
