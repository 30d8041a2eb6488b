"""Two rankings of the same samples: by how much one is better, query by query, and whether that may be chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import check_whole
from rankwise.metrics.bootstrap import (
    NO_INTERVAL,
    Interval,
    check_resampling,
    interval_of_mean,
    over_samples,
    quantiles,
)
from rankwise.metrics.grades import FloatArray
from rankwise.metrics.ranking import Metric, MetricLike, as_metric, values_of

# Values differ by more than this, or are equal: sums in another order differ by as little.
_EQUAL = 1e-12
# A smaller p is not written out.
_SHOWN_P = 0.00005
# Entries of a table of signs that is made at once.
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Comparison:
    """A metric of two rankings, A and B, of the same samples; differences are B − A.

    Attributes
    ----------
    metric : Metric
        What both are judged by.
    mean_a, mean_b, difference : float
        Means over the queries that count, and mean_b − mean_a; NaN if none does.
    interval : Interval
        Of the difference, by the bootstrap: over queries, or over samples where there is one query.
    over : {"queries", "samples"}
        What was drawn.
    level : float
        Of the interval.
    p_wilcoxon, p_sign_flip : float
        Two-sided, by Wilcoxon's signed-rank test, and by flipping the signs of differences at random (of the mean); NaN
        where there are not two queries that count. Neither is corrected for looking at several metrics.
    better, worse, equal : int
        Queries in which B is above A, below A, and as good.
    ids : ndarray of shape (q,)
        The queries that count; the others are left out here as in the means.
    values_a, values_b, differences : ndarray of shape (q,)
        By query.
    """

    metric: Metric
    mean_a: float
    mean_b: float
    difference: float
    interval: Interval
    over: str
    level: float
    p_wilcoxon: float
    p_sign_flip: float
    better: int
    worse: int
    equal: int
    ids: NDArray[Any]
    values_a: FloatArray
    values_b: FloatArray
    differences: FloatArray

    def __str__(self) -> str:
        tests = "" if np.isnan(self.p_sign_flip) else f", {self.tests()}"
        return (
            f"{self.metric.name}: A {self.mean_a:.4f}, B {self.mean_b:.4f}, B - A {self.difference:+.4f} "
            f"({100 * self.level:g}%: {self.interval.low:+.4f} to {self.interval.high:+.4f}){tests}; "
            f"B is better on {self.better} of {self.ids.size} queries, worse on {self.worse}"
        )

    def tests(self) -> str:
        """The p-values as text."""
        each = {"Wilcoxon": self.p_wilcoxon, "sign flips": self.p_sign_flip}
        return ", ".join(f"{name} p {'< 0.0001' if p < _SHOWN_P else f'= {p:.2g}'}" for name, p in each.items())


def compare(
    metric: MetricLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    grades: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    n_flips: int = 10_000,
    seed: int | np.random.Generator | None = 0,
    empty: str = "skip",
) -> Comparison:
    """Compare two rankings of the same samples by the differences B − A of a metric, query by query.

    p of flipping signs is the share of sign patterns with |Σ_q ±d_q| ≥ |Σ_q d_q|: of all patterns where these are at
    most n_flips, else (1 + those among n_flips random ones)/(1 + n_flips). With a single query nothing is tested, and
    the interval is over samples, the same draws for both.

    Parameters
    ----------
    metric : str or Metric
        A name, such as "ap" or "ndcg@10": see `METRICS`.
    scores_a, scores_b : array-like of shape (n,)
        Scores of the same samples by two models.
    grades : array-like of shape (n,)
        Grades of at least 0, or booleans.
    qid : array-like of shape (n,), optional
        The query of each sample, in any order.
    level : float
        Of the interval.
    n_resamples, n_flips : int
        Draws of the bootstrap, and of signs.
    seed : int, Generator or None
        Of both.
    empty : {"skip", "zero", "one", "error"}
        A query that the metric cannot judge is left out, counts as 0 or 1 for both, or is refused.

    Returns
    -------
    Comparison
        Means, their difference with its interval, p-values, and everything by query.

    Raises
    ------
    ValueError
        If an option or the samples are not in order.

    Examples
    --------
    >>> qid, grades = np.repeat(np.arange(6), 3), np.tile([2, 0, 1], 6)
    >>> a, b = np.tile([1.0, 2.0, 3.0], 6), np.tile([3.0, 1.0, 2.0], 6)
    >>> print(compare("ndcg", a, b, grades, qid))
    ndcg: A 0.6885, B 1.0000, B - A +0.3115 (95%: +0.3115 to +0.3115), Wilcoxon p = 0.031, sign flips p = 0.031; ...
    """
    metric = as_metric(metric)
    check_resampling(level, n_resamples)
    check_whole(1, n_flips=n_flips)
    rng = np.random.default_rng(seed)
    ids, values_a = values_of(metric, scores_a, grades, qid, empty)
    values_b = values_of(metric, scores_b, grades, qid, empty)[1]
    counts = ~np.isnan(values_a)  # which depends on grades only, and so is the same for both
    single = ids.size == 1
    ids, values_a, values_b = ids[counts], values_a[counts], values_b[counts]
    differences = values_b - values_a
    differences[np.abs(differences) <= _EQUAL] = 0.0
    if single and ids.size:
        rankings = [metric.ranked(scores, grades, None)[2] for scores in (scores_a, scores_b)]
        drawn = over_samples(metric, rankings, n_resamples, rng, empty)
        interval = quantiles(drawn[:, 1] - drawn[:, 0], level)
    else:
        interval = NO_INTERVAL if single else interval_of_mean(differences, level, n_resamples, rng)
    tested = ids.size > 1
    return Comparison(
        metric=metric,
        mean_a=_mean(values_a),
        mean_b=_mean(values_b),
        difference=_mean(differences),
        interval=interval,
        over="samples" if single else "queries",
        level=float(level),
        p_wilcoxon=_wilcoxon(differences) if tested else float("nan"),
        p_sign_flip=_sign_flip(differences, int(n_flips), rng) if tested else float("nan"),
        better=int((differences > 0.0).sum()),
        worse=int((differences < 0.0).sum()),
        equal=int((differences == 0.0).sum()),
        ids=ids,
        values_a=values_a,
        values_b=values_b,
        differences=differences,
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else float("nan")


def _wilcoxon(differences: FloatArray) -> float:
    """p of Wilcoxon's signed-rank test; differences of 0 are left out, and 1 where all are."""
    apart = differences[differences != 0.0]
    if apart.size == 0:
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(apart).pvalue)


def _sign_flip(differences: FloatArray, n_flips: int, rng: np.random.Generator) -> float:
    """p of the mean difference if each sign were as likely as the other."""
    apart = np.abs(differences[differences != 0.0])
    # Differences are no closer than rounding makes them: a pattern as far out as what was found counts as that.
    found = abs(float(differences.sum())) - _EQUAL * max(1.0, float(apart.sum()))
    n = apart.size
    if n < n_flips.bit_length() and 1 << n <= n_flips:
        signs = 2.0 * ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1) - 1.0
        return float(np.mean(np.abs(signs @ apart) >= found))
    rows, left, reached = max(_AT_ONCE // n, 1), n_flips, 0
    while left:
        size = min(rows, left)
        bits = np.unpackbits(np.frombuffer(rng.bytes(size * -(-n // 8)), np.uint8).reshape(size, -1), axis=1, count=n)
        reached += int((np.abs(2.0 * (bits @ apart) - apart.sum()) >= found).sum())
        left -= size
    return (1.0 + reached) / (1.0 + n_flips)
