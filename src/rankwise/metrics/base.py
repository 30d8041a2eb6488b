"""Metrics: what rankings are judged by. `Loss` in loss.py adds what it takes to train for one.

A metric is a class: its name, and its value from the ties of a ranking: groups of samples of one score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_cutoff, as_grades, as_scores, check_known, first_true, raise_not_finite
from rankwise.documenting import documented
from rankwise.metrics.gains import Gain, as_gain, gains_of
from rankwise.metrics.ranked import Gains, Ranked, Ties

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Self = TypeVar("Self", bound="Metric")

# The value of an empty query by policy; NaN means left out.
_COUNTS = {"skip": np.nan, "zero": 0.0, "one": 1.0, "error": np.nan}
EMPTY = tuple(_COUNTS)


@documented
class Metric(ABC):
    """A metric of rankings, such as "ndcg@10".

    Get one from `as_metric`, and call it like a function. To define your own, pass a weight and a discount to
    `rankwise.DiscountedLoss`, which can also be trained for, or override `of_ties`; `register` gives it a name.

    Parameters
    ----------
    {k}
    {gain}
    {options}

    Attributes
    ----------
    name : str
        Name, with the cut-off if there is one.
    k : int or None
        Last place that counts. None if all places count.
    graded : bool
        Whether the metric judges by grades. Otherwise samples of a grade above 0 are positives.
    gain : {"exp2", "linear"} or callable
        Worth of a grade: 2^y − 1, y itself, or a function of y.
    cut : {"never", "optionally", "always"}
        Whether the metric can or must be cut at k.
    judges_labels : bool
        Whether it judges labels, as the 0-1 loss does, and not rankings. It then changes if all scores are shifted.

    See Also
    --------
    as_metric : Get a metric by name.
    per_query : The values of each query.
    rankwise.Loss : A metric that can be trained for.

    Examples
    --------
    >>> from rankwise.metrics import as_metric
    >>> metric = as_metric("precision@2")
    >>> metric([0.9, 0.8, 0.1], [True, False, True])
    0.5
    """

    name: str
    k: int | None = None
    graded: bool = False
    gain: Gain = "linear"
    cut: ClassVar[str] = "never"
    judges_labels: ClassVar[bool] = False
    train_instead: ClassVar[str] = ""  # what to do if it cannot be trained for; by default to train for another one
    _needs_ideal = False  # whether `of_ties` reads ties.ideal
    _options: dict[str, Any] = {}  # what it was made with  # noqa: RUF012

    def __init__(self, *, k: int | None = None, gain: Gain | None = None, **options: Any) -> None:
        if k is not None:
            self.k = as_cutoff(k)
            self.name = f"{self.name}@{k}"
        if gain is not None:
            self.gain = as_gain(gain)
        given = {"k": k, "gain": gain, **options}
        self._options = {key: value for key, value in given.items() if value is not None}

    def __repr__(self) -> str:
        said = ", ".join(f"{key}={getattr(value, '__name__', repr(value))}" for key, value in self._options.items())
        return f"{type(self).__name__}({said})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and (type(self), self._options) == (type(other), other._options)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def replace(self: Self, **options: Any) -> Self:
        """Return the same metric with other options.

        Parameters
        ----------
        **options : Any
            Options of the class, such as k=10.

        Returns
        -------
        Metric
            The metric.
        """
        return type(self)(**{**self._options, **options})

    @abstractmethod
    def of_ties(self, ties: Ties) -> FloatArray:
        """Compute the value of each query from its ties: groups of samples with equal scores.

        Parameters
        ----------
        ties : Ties
            Sizes and gains of ties, from the top of each query.

        Returns
        -------
        ndarray of shape (Q,)
            Value of each query; NaN if it cannot be judged.
        """

    def __call__(
        self, scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip"
    ) -> float:
        """Compute the metric, or its mean over queries if qid is given; NaN if no query is left."""
        return mean_of(self, values_of(self, scores, relevant, qid, empty)[1], empty)

    def truth(self, relevant: NDArray[Any], grades: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return what this metric judges by: the grades if it is graded and there are grades, else the relevance.

        Parameters
        ----------
        relevant, grades : ndarray of shape (n,)
            Booleans that say which samples are positives, and grades ≥ 0.

        Returns
        -------
        ndarray of shape (n,)
            One of the two.
        """
        return grades if self.graded and grades is not None else relevant

    def for_grades(self, grades: NDArray[Any] | None) -> Metric:
        """Return the metric for use on parts of these samples: ERR then uses the largest of all grades.

        Parameters
        ----------
        grades : ndarray of shape (n,) or None
            Grades of all samples.

        Returns
        -------
        Metric
            The metric.
        """
        return self

    def gains(self, grades: FloatArray) -> FloatArray:
        """Return what samples are worth to the metric: 1 for grades above 0, or their gains if it is graded.

        Parameters
        ----------
        grades : ndarray of shape (n,)
            Grades ≥ 0.

        Returns
        -------
        ndarray of shape (n,)
            The gains.
        """
        return gains_of(grades, self.gain) if self.graded else (grades > 0.0).astype(np.float64)


def check_judges(metric: Metric) -> None:
    """Refuse a loss of labels where a ranking is judged."""
    if metric.judges_labels:
        raise ValueError(f"{metric.name} judges labels, not rankings; use a metric of rankings, such as 'ap'")


def counted_as(values: FloatArray, empty: str) -> FloatArray:
    """Return values (q,) with NaN of empty queries replaced by the policy; NaN remains if they are left out."""
    return np.where(np.isnan(values), _COUNTS[empty], values)


def over(value: FloatArray, by: FloatArray) -> FloatArray:
    """Return value/by, (q,); NaN where by is 0: a query that cannot be judged."""
    return np.divide(value, by, out=np.full_like(value, np.nan), where=by > 0.0)


def mean_of(metric: Metric, values: FloatArray, empty: str) -> float:
    """Return the mean of values by query, with empty queries treated by the policy."""
    values = values[~np.isnan(values)]
    if values.size == 0 and empty == "error":
        raise ValueError(f"there are no queries, so there is no {metric.name}; pass samples, or another empty=")
    return float(np.mean(values)) if values.size else _COUNTS[empty]


def ranking_of(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None = None
) -> tuple[Gains, Ranked | None]:
    """Return the gains of the samples by query, and their ranking, which is None if there are no samples."""
    array, _ = as_scores(scores)
    grades = as_grades(relevant, array.shape[0], "grades" if metric.graded else "relevant")
    raise_not_finite(array)
    gains = Gains.of(metric.gains(grades), qid, metric._needs_ideal)
    return gains, gains.rank(array)


def measured_by(
    metric: Metric, relevant: ArrayLike, qid: ArrayLike | None = None
) -> Callable[[NDArray[np.floating]], FloatArray]:
    """Return a function from scores (n,) to the value of each query, NaN if it is empty.

    Queries are grouped and ideal rankings sorted once.
    """
    truth = np.asarray(relevant)
    gains = Gains.of(metric.gains(as_grades(truth, truth.size, "relevant")), qid, metric._needs_ideal)

    def values(scores: NDArray[np.floating]) -> FloatArray:
        raise_not_finite(scores)
        return _judged(metric, gains, gains.rank(scores))

    return values


def _judged(metric: Metric, gains: Gains, ranked: Ranked | None) -> FloatArray:
    """Return the value of each query, (q,); NaN if it is empty."""
    return np.full(gains.grouping.ids.size, np.nan) if ranked is None else metric.of_ties(ranked.ties())


def values_of(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None, empty: str
) -> tuple[NDArray[Any], FloatArray]:
    """Return the queries and their values, with empty queries treated by the policy; one query if qid is None."""
    check_known("empty", empty, EMPTY)
    check_judges(metric)
    gains, ranked = ranking_of(metric, scores, relevant, qid)
    values = _judged(metric, gains, ranked)
    ids, starts = gains.grouping.ids, gains.grouping.starts
    if empty == "error" and (q := first_true(np.isnan(values))) is not None:
        own = gains.gain[starts[q] : starts[q + 1]]
        n_pos = int(np.count_nonzero(own))
        which = "the query" if qid is None else f"query {ids[q]}"
        raise ValueError(
            f"{which} has {n_pos} positives and {own.size - n_pos} negatives, so it has no {metric.name}; remove it, "
            "or pass empty='skip', 'zero' or 'one'"
        )
    return ids, counted_as(values, empty)
