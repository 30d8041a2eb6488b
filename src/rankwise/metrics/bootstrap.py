"""Bootstrap intervals: how much a metric depends on the choice of queries or samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arguments import check_whole, is_number
from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, Metric, counted_as, ranking_of, values_of
from rankwise.metrics.registry import MetricLike, as_metric


class Interval(NamedTuple):
    """An interval from low to high.

    Parameters
    ----------
    low, high : float
        Its ends.

    See Also
    --------
    bootstrap_interval : A confidence interval of a metric.

    Examples
    --------
    >>> low, high = Interval(0.25, 0.75)
    >>> high - low
    0.5
    """

    low: float
    high: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


@documented
def bootstrap_interval(
    metric: MetricLike,
    scores: ArrayLike,
    relevant: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int | np.random.Generator | None = 0,
    empty: str = "skip",
) -> Interval:
    """Compute a confidence interval of a metric by the bootstrap.

    Queries are drawn with replacement, or the samples if there is only one query. The interval is between the quantiles
    (1 ± level)/2 of the metric over the resamples.

    {arguments_of_metrics}

    Returns
    -------
    Interval
        Lower and upper end. NaN if nothing can be drawn: fewer than two queries count, or a single query is empty.

    See Also
    --------
    compare : Compare two rankings, with an interval of their difference.

    Notes
    -----
    With one query, a resample on which the metric has no value is drawn again, so the interval is conditional on a
    value; with empty="zero" or "one" it counts as 0 or 1 instead.

    Examples
    --------
    >>> low, high = bootstrap_interval("auc", [3, 2, 1, 0, 4, 2], [1, 0, 1, 0, 0, 1])
    >>> 0.0 <= low < 0.6 < high <= 1.0
    True
    """
    metric = as_metric(metric)
    check_resampling(level, n_resamples)
    rng = np.random.default_rng(seed)
    ids, values = values_of(metric, scores, relevant, qid, empty)
    values = values[~np.isnan(values)]
    if ids.size != 1:
        return interval_of_mean(values, level, n_resamples, rng)
    if values.size == 0:
        return NO_INTERVAL
    return quantiles(over_samples(metric, [scores], relevant, n_resamples, rng, empty), level)


@documented
def resampled(metric: MetricLike, scores: ArrayLike, relevant: ArrayLike, counts: ArrayLike) -> FloatArray:
    """Compute a metric of one query for given resamples of its samples.

    Use the same resamples for several models or classes to get intervals of their differences.

    {arguments_of_metrics}

    Returns
    -------
    ndarray of shape (draws,)
        Value for each resample; NaN if the metric cannot judge it.

    See Also
    --------
    bootstrap_interval : A confidence interval from random resamples.

    Examples
    --------
    >>> resampled("ap", [3.0, 2.0, 1.0], [1, 0, 1], [[1, 1, 1], [0, 1, 1]]).round(3)
    array([0.833, 0.5  ])
    """
    metric = as_metric(metric)
    times = np.asarray(counts, np.float64)
    _, ranked = ranking_of(metric, scores, relevant)
    n = 0 if ranked is None else ranked.order.size
    if times.ndim != 2 or times.shape[1] != n:
        raise ValueError(
            f"counts has shape {times.shape}; it must have one row per draw and one column per sample, {n}"
        )
    if not (times >= 0).all():
        raise ValueError("counts has a number below 0 or NaN; counts must be at least 0")
    if ranked is None:
        return np.full(times.shape[0], np.nan)
    return np.array([metric.of_ties(ranked.ties(row))[0] for row in times])


def check_resampling(level: float, n_resamples: int) -> None:
    """Refuse a level that is not between 0 and 1, and a number of resamples that is not positive."""
    if not is_number(level):
        raise TypeError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {level}")
    check_whole(1, n_resamples=n_resamples)


def interval_of_mean(values: FloatArray, level: float, n_resamples: int, rng: np.random.Generator) -> Interval:
    """Return the interval of the mean of values, one per query; NaN if there are fewer than two."""
    if values.size < 2:
        return NO_INTERVAL
    drawn = np.array([values[rng.integers(values.size, size=values.size)].mean() for _ in range(n_resamples)])
    return quantiles(drawn, level)


def quantiles(drawn: FloatArray, level: float) -> Interval:
    """Return the quantiles (1 ± level)/2."""
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(float(low), float(high))


def over_samples(
    metric: Metric,
    scores: list[ArrayLike],
    relevant: ArrayLike,
    n_resamples: int,
    rng: np.random.Generator,
    empty: str,
) -> FloatArray:
    """Return the metric of the same samples by each of several scores for random resamples, (n_resamples, scores).

    Sorts once. The query must have a value, if empty queries are not counted.
    """
    rankings = [ranked for one in scores if (ranked := ranking_of(metric, one, relevant)[1]) is not None]
    if not rankings:
        return np.tile(counted_as(np.full(len(scores), np.nan), empty), (n_resamples, 1))
    n = rankings[0].order.size
    drawn = np.full((n_resamples, len(scores)), np.nan)
    for b in range(n_resamples):
        # This ends: the query has a value, so some of its samples give one, and these are drawn sooner or later.
        while np.isnan(drawn[b]).any():
            times = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            values = np.array([metric.of_ties(ranked.ties(times))[0] for ranked in rankings])
            drawn[b] = counted_as(values, empty)
    return drawn
