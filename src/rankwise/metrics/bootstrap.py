"""How far a metric may be off by the choice of queries, or of samples: percentile intervals of the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.inputs import check_whole, is_number
from rankwise.metrics.grades import FloatArray
from rankwise.metrics.ranking import Metric, MetricLike, as_metric, counted_as, values_of
from rankwise.metrics.steps import Ranked


class Interval(NamedTuple):
    """From low to high."""

    low: float
    high: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


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
    """The quantiles (1 ± level)/2 of the metric over resamples, with replacement, of the queries or of the samples.

    Several queries: as many queries are drawn as count (empty ones only with empty="zero" or "one"). One query: n
    samples are drawn, and drawn again where they leave the metric without a value, so that the interval is given that
    there is one (with empty="zero" or "one" they count as that).

    Parameters
    ----------
    metric : str or Metric
        A name, such as "ap" or "ndcg@10": see `METRICS`.
    scores, relevant : array-like of shape (n,)
        As in `average_precision`; relevant may be grades.
    qid : array-like of shape (n,), optional
        The query of each sample, in any order.
    level : float
        The share of resamples within the interval.
    n_resamples : int
        How many resamples.
    seed : int, Generator or None
        Of the resamples.
    empty : {"skip", "zero", "one", "error"}
        As in `average_precision`.

    Returns
    -------
    Interval
        low and high; NaN where nothing can be drawn: no query that counts, only one of several, or a single query that
        is empty.

    Raises
    ------
    ValueError
        If an option or the samples are not in order.

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
    return quantiles(over_samples(metric, [metric.ranked(scores, relevant, None)[2]], n_resamples, rng, empty), level)


def resampled(metric: MetricLike, scores: ArrayLike, relevant: ArrayLike, counts: ArrayLike) -> FloatArray:
    """(draws,) The metric of one query if its samples were there as often as counts (draws, n) says; NaN where empty.

    For intervals of differences: the same draws for several models, or for several classes.

    >>> resampled("ap", [3.0, 2.0, 1.0], [1, 0, 1], [[1, 1, 1], [0, 1, 1]]).round(3)
    array([0.833, 0.5  ])
    """
    metric = as_metric(metric)
    times = np.asarray(counts, np.float64)
    ranked = metric.ranked(scores, relevant, None)[2]
    n = 0 if ranked is None else ranked.order.size
    if times.ndim != 2 or times.shape[1] != n:
        raise ValueError(f"counts has shape {times.shape}; give it a row a draw, a column for each of {n} samples")
    if not (times >= 0).all():
        raise ValueError("counts has a number below 0, or NaN; a sample is there so many times")
    if ranked is None:
        return np.full(times.shape[0], np.nan)
    return np.array([metric.of_steps(ranked.steps(row))[0] for row in times])


def check_resampling(level: float, n_resamples: int) -> None:
    """Refuse a level that is no share, and a number of resamples that is none."""
    if not is_number(level):
        raise TypeError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {level}")
    check_whole(1, n_resamples=n_resamples)


def interval_of_mean(values: FloatArray, level: float, n_resamples: int, rng: np.random.Generator) -> Interval:
    """The interval of the mean of values, one a query; NaN where there are less than two."""
    if values.size < 2:
        return NO_INTERVAL
    drawn = np.array([values[rng.integers(values.size, size=values.size)].mean() for _ in range(n_resamples)])
    return quantiles(drawn, level)


def quantiles(drawn: FloatArray, level: float) -> Interval:
    """The quantiles (1 ± level)/2."""
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(float(low), float(high))


def over_samples(
    metric: Metric, rankings: Sequence[Ranked | None], n_resamples: int, rng: np.random.Generator, empty: str
) -> FloatArray:
    """(n_resamples, rankings) The metric of rankings of the same samples, by how often each is drawn: sorted once."""
    found = [one for one in rankings if one is not None]
    if not found:
        return np.tile(counted_as(np.full(len(rankings), np.nan), empty), (n_resamples, 1))
    n = found[0].order.size
    drawn = np.full((n_resamples, len(found)), np.nan)
    for b in range(n_resamples):
        # Ends: the query has a value, so a few of its samples do, and these are drawn at last.
        while np.isnan(drawn[b]).any():
            times = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            values = np.array([metric.of_steps(ranked.steps(times))[0] for ranked in found])
            drawn[b] = counted_as(values, empty)
    return drawn
