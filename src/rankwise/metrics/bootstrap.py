"""How far a metric may be off by the choice of queries, or of samples: percentile intervals of the bootstrap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.inputs import check_whole, is_number
from rankwise.metrics.ranking import Metric, MetricLike, as_metric, values_of
from rankwise.metrics.steps import FloatArray, rank


class Interval(NamedTuple):
    """From low to high."""

    low: float
    high: float


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

    Several queries: as many queries are drawn as have a value (empty ones count as 0 with empty="zero", else they are
    not drawn). One query: n samples are drawn, and drawn again where they leave the metric without a value, so that the
    interval is given that there is one (with empty="zero" they count as 0). NaN where nothing can be drawn: no query
    with a value, only one of several with a value, or a single query that is empty.

    >>> low, high = bootstrap_interval("auc", [3, 2, 1, 0, 4, 2], [1, 0, 1, 0, 0, 1])
    >>> 0.0 <= low < 0.6 < high <= 1.0
    True
    """
    metric = as_metric(metric)
    if not is_number(level):
        raise TypeError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {level}")
    check_whole(1, n_resamples=n_resamples)
    rng = np.random.default_rng(seed)
    ids, values = values_of(metric, scores, relevant, qid, empty)
    values = values[~np.isnan(values)]
    if values.size < min(2, ids.size) or ids.size == 0:
        return Interval(float("nan"), float("nan"))
    if ids.size > 1:
        drawn = np.array([values[rng.integers(values.size, size=values.size)].mean() for _ in range(n_resamples)])
    else:
        drawn = _over_samples(metric, scores, relevant, int(n_resamples), rng, empty)
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(float(low), float(high))


def resampled(metric: MetricLike, scores: ArrayLike, relevant: ArrayLike, counts: ArrayLike) -> FloatArray:
    """(draws,) The metric of one query if its samples were there as often as counts (draws, n) says; NaN where empty.

    For intervals of differences: the same draws for several models, or for several classes.

    >>> resampled("ap", [3.0, 2.0, 1.0], [1, 0, 1], [[1, 1, 1], [0, 1, 1]]).round(3)
    array([0.833, 0.5  ])
    """
    metric = as_metric(metric)
    times = np.asarray(counts, np.float64)
    ranked = rank(scores, relevant, None, metric.graded)[2]
    n = 0 if ranked is None else ranked.order.size
    if times.ndim != 2 or times.shape[1] != n:
        raise ValueError(f"counts has shape {times.shape}; give it a row a draw, a column for each of {n} samples")
    if not (times >= 0).all():
        raise ValueError("counts has a number below 0, or NaN; a sample is there so many times")
    if ranked is None:
        return np.full(times.shape[0], np.nan)
    return np.array([metric.of_steps(ranked.steps(row))[0] for row in times])


def _over_samples(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, n_resamples: int, rng: np.random.Generator, empty: str
) -> FloatArray:
    """(n_resamples,) The metric by how many times each sample is drawn: sorted once."""
    ranked = rank(scores, relevant, None, metric.graded)[2]
    if ranked is None:
        return np.zeros(n_resamples)
    n = ranked.order.size
    drawn = np.full(n_resamples, np.nan)
    for b in range(n_resamples):
        # Ends: the query has a value, so a few of its samples do, and these are drawn at last.
        while np.isnan(drawn[b]):
            times = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            drawn[b] = metric.of_steps(ranked.steps(times))[0]
            if empty == "zero":
                drawn[b] = np.nan_to_num(drawn[b])
    return drawn
