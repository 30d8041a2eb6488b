"""Compare two rankings of the same samples: the differences by query, and whether they may be due to chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import check_whole
from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray, Metric, values_of
from rankwise.metrics.bootstrap import (
    NO_INTERVAL,
    Interval,
    check_resampling,
    interval_of_mean,
    over_samples,
    quantiles,
)  # fmt: skip
from rankwise.metrics.registry import MetricLike, as_metric

# Values that differ by at most this are equal: sums in another order differ by as little.
_EQUAL = 1e-12
# A smaller p is shown as < 0.0001.
_SHOWN_P = 0.00005
# Number of entries of a table of signs that is made at once.
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare`: a metric of two rankings A and B of the same samples.

    Differences are B − A. Queries that the metric cannot judge are left out with empty="skip".

    Parameters
    ----------
    metric : Metric
        Metric that both rankings are judged by.
    mean_a, mean_b, difference : float
        Means of A and B over the queries that count, and mean_b − mean_a; NaN if there are none.
    interval : Interval
        Bootstrap interval of the difference.
    over : {"queries", "samples"}
        What the bootstrap draws: queries, or the samples of a single query.
    level : float
        Level of the interval.
    p_wilcoxon, p_sign_flip : float
        Two-sided p-values of Wilcoxon's signed-rank test, and of the mean difference by random sign flips; NaN with
        fewer than two queries.
    better, worse, equal : int
        Numbers of queries in which B is better than A, worse, and as good.
    ids, values_a, values_b, differences : ndarray of shape (q,)
        The queries that count, the values of A and B for each, and the differences B − A.

    See Also
    --------
    compare : Compute this result.

    Notes
    -----
    The p-values are not corrected for multiple tests, such as tests of several metrics.

    Examples
    --------
    >>> found = compare("ap", [1, 2, 1, 2], [2, 1, 2, 1], [1, 0, 1, 0], qid=[0, 0, 1, 1])
    >>> found.better, found.worse, found.difference
    (2, 0, 0.5)
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
        each = {"Wilcoxon": self.p_wilcoxon, "sign flips": self.p_sign_flip}
        tests = [f", {name} p {'< 0.0001' if p < _SHOWN_P else f'= {p:.2g}'}" for name, p in each.items() if p == p]
        return (
            f"{self.metric.name}: A {self.mean_a:.4f}, B {self.mean_b:.4f}, B - A {self.difference:+.4f} "
            f"({100 * self.level:g}%: {self.interval.low:+.4f} to {self.interval.high:+.4f}){''.join(tests)}; "
            f"B is better on {self.better} of {self.ids.size} queries, worse on {self.worse}"
        )


@documented
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
    """Compare two rankings of the same samples by a metric, query by query.

    The difference of the means gets a bootstrap interval and two tests. With a single query, nothing is tested, and the
    interval is over samples, with the same resamples for both rankings.

    {arguments_of_metrics}

    Returns
    -------
    Comparison
        Means, their difference with its interval, p-values, and the values of each query.

    See Also
    --------
    bootstrap_interval : A confidence interval of one ranking.

    Notes
    -----
    The p-value of the sign-flip test is the share of sign patterns with |Σ_q ±d_q| ≥ |Σ_q d_q|: of all patterns if
    there are at most `n_flips`, otherwise of this many random ones and the one observed.

    Examples
    --------
    >>> qid, grades = np.repeat(np.arange(6), 3), np.tile([2, 0, 1], 6)
    >>> print(compare("ndcg", np.tile([1.0, 2.0, 3.0], 6), np.tile([3.0, 1.0, 2.0], 6), grades, qid))
    ndcg: A 0.6885, B 1.0000, B - A +0.3115 (95%: +0.3115 to +0.3115), Wilcoxon p = 0.031, sign flips p = 0.031; ...
    """
    metric = as_metric(metric)
    check_resampling(level, n_resamples)
    check_whole(1, n_flips=n_flips)
    rng = np.random.default_rng(seed)
    ids, values_a = values_of(metric, scores_a, grades, qid, empty)
    values_b = values_of(metric, scores_b, grades, qid, empty)[1]
    counts = ~np.isnan(values_a)  # depends on grades only, so it is the same for both
    single = ids.size == 1
    ids, values_a, values_b = ids[counts], values_a[counts], values_b[counts]
    differences = values_b - values_a
    differences[np.abs(differences) <= _EQUAL] = 0.0
    if single and ids.size:
        drawn = over_samples(metric, [scores_a, scores_b], grades, n_resamples, rng, empty)
        interval = quantiles(drawn[:, 1] - drawn[:, 0], level)
    else:
        interval = NO_INTERVAL if single else interval_of_mean(differences, level, n_resamples, rng)
    p_values = float("nan"), float("nan")
    if ids.size > 1:
        p_values = _wilcoxon(differences), _sign_flip(differences, int(n_flips), rng)
    return Comparison(
        metric=metric,
        mean_a=_mean(values_a),
        mean_b=_mean(values_b),
        difference=_mean(differences),
        interval=interval,
        over="samples" if single else "queries",
        level=float(level),
        p_wilcoxon=p_values[0],
        p_sign_flip=p_values[1],
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
    """Return p of Wilcoxon's signed-rank test without differences of 0; 1 if all are 0."""
    apart = differences[differences != 0.0]
    if apart.size == 0:
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(apart).pvalue)


def _sign_flip(differences: FloatArray, n_flips: int, rng: np.random.Generator) -> float:
    """Return p of the mean difference if both signs were equally likely."""
    apart = np.abs(differences[differences != 0.0])
    # Allow for rounding: a pattern that is as extreme as the observed one must count.
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
