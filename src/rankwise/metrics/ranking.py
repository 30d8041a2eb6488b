"""The metrics: over the steps of a ranking, for every query at once.

For a step of t samples, p of them positive, let T and P be those on the steps above it; n_pos positives in all.
A query that a metric cannot judge, for want of positives (for AUC, also of negatives), is empty: NaN here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import check_empty, check_whole
from rankwise.metrics.steps import FloatArray, Steps, rank


@dataclass(frozen=True)
class Metric:
    """A metric by name, "ndcg@10": its function of the steps, (q,) values with NaN for empty queries, and its k.

    cut: whether it is "never", "optionally" or "always" cut at k. graded: whether relevance may be gains at least 0.
    """

    name: str
    function: Callable[[Steps, int | None], FloatArray] = field(repr=False)
    k: int | None = None
    cut: str = field(default="never", repr=False)
    graded: bool = field(default=False, repr=False)

    def __call__(
        self, scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip"
    ) -> float:
        """The value for one query, or the mean over queries if qid is given; NaN where all are skipped."""
        values = values_of(self, scores, relevant, qid, empty)[1]
        values = values[~np.isnan(values)]
        if values.size == 0 and empty == "error":
            raise ValueError(f"there are no queries and so no {self.name}; pass samples, or empty='zero' or 'skip'")
        if values.size == 0:
            return 0.0 if empty == "zero" else float("nan")
        return float(np.mean(values))

    def truth(self, relevant: NDArray[Any], gains: NDArray[Any] | None = None) -> NDArray[Any]:
        """What this metric judges by: gains if it is graded and there are any, else which samples are relevant.

        Parameters
        ----------
        relevant : ndarray of shape (n,)
            Booleans.
        gains : ndarray of shape (n,), optional
            At least 0.

        Returns
        -------
        ndarray of shape (n,)
            One of the two, as it is.

        Examples
        --------
        >>> relevant, gains = np.array([True, False]), np.array([2.0, 1.0])
        >>> as_metric("ndcg@10").truth(relevant, gains), as_metric("ap").truth(relevant, gains)
        (array([2., 1.]), array([ True, False]))
        """
        return gains if self.graded and gains is not None else relevant

    def of_steps(self, steps: Steps) -> FloatArray:
        """(q,) The value of each query."""
        return self.function(steps, self.k)


MetricLike = Metric | str


def average_precision(
    scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """The mean over positives of the precision down to them: AP = (1/n_pos) Σ_steps p (P + p)/(T + t).

    scores: (n,) real numbers. relevant: (n,) booleans, or 0 and 1. qid: (n,) the query of each sample, in any order;
    the mean over queries is returned. empty: a query without positives is left out of the mean ("skip", and NaN if
    none is left), counts as 0 ("zero") or is refused ("error"). Samples of equal score are one step of the
    precision-recall curve, as in scikit-learn's average_precision_score.

    >>> average_precision([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    return METRICS["ap"](scores, relevant, qid=qid, empty=empty)


def ndcg(
    scores: ArrayLike, gains: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """DCG / (DCG of the ranking by gains), DCG = Σ_{places m ≤ k} gain/log2(1 + m).

    gains: (n,) at least 0, taken as they are (linear): pass 2.0**grades - 1 for exponential ones, booleans for binary
    relevance. k: the last place that counts; all if None or beyond the query. A query whose gains are all 0 is empty.
    Samples of equal score share the mean of their gains, k cutting through them or not, as in scikit-learn's
    ndcg_score. qid and empty as in `average_precision`.

    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3), 4)
    0.735
    """
    return as_metric("ndcg", k)(scores, gains, qid=qid, empty=empty)


def reciprocal_rank(
    scores: ArrayLike, relevant: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """1/(place of the first positive), or 0 where that is beyond k; with qid the mean over queries, MRR.

    Of samples with equal score, the expectation over their orders: Σ_{r ≤ t−p} (1/(T + r + 1)) Prob(r of the step's
    negatives are above its first positive). A query without positives is empty. qid and empty as in
    `average_precision`.

    >>> reciprocal_rank([0.9, 0.8, 0.8, 0.1], [False, True, False, True])  # half of 1/2 and of 1/3
    0.41666666666666663
    """
    return as_metric("mrr", k)(scores, relevant, qid=qid, empty=empty)


def auc(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """The fraction of pairs of a positive and a negative that are in order; a tie is half: Σ_steps (t − p)(P + p/2).

    Over n_pos·n_neg; as scikit-learn's roc_auc_score. A query without positives or without negatives is empty. qid and
    empty as in `average_precision`.

    >>> auc([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.75
    """
    return METRICS["auc"](scores, relevant, qid=qid, empty=empty)


def precision_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """The positives among the first k, over k, also for queries of fewer than k samples, as in TREC and LETOR.

    Of samples with equal score, the expectation over their orders: a step cut at k gives its share, p (k − T)/t. A
    query without positives is empty, and not 0, unless empty="zero". qid and empty as in `average_precision`.

    >>> precision_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.75
    """
    return as_metric("precision", k)(scores, relevant, qid=qid, empty=empty)


def per_query(
    metric: MetricLike,
    scores: ArrayLike,
    relevant: ArrayLike,
    qid: ArrayLike,
    *,
    k: int | None = None,
    empty: str = "skip",
) -> tuple[NDArray[Any], FloatArray]:
    """The queries, sorted, and the value of each: an empty one is NaN ("skip"), 0 ("zero") or refused ("error").

    >>> per_query("ap", [0.9, 0.8, 0.7, 0.1, 0.5], [0, 1, 1, 0, 0], qid=[4, 4, 2, 2, 7])
    (array([2, 4, 7]), array([1. , 0.5, nan]))
    """
    return values_of(as_metric(metric, k), scores, relevant, qid, empty)


def as_metric(metric: MetricLike, k: int | None = None) -> Metric:
    """The metric of that name, "ap", "ndcg", "ndcg@10", "precision@5", or the metric itself; cut at k if given.

    >>> as_metric("ndcg@10")
    Metric(name='ndcg@10', k=10)
    """
    if isinstance(metric, str):
        name, at, cut = metric.partition("@")
        if name not in METRICS:
            raise ValueError(
                f"unknown metric {metric!r}; use one of {', '.join(map(repr, METRICS))}, or e.g. 'ndcg@10'"
            )
        if at and not re.fullmatch("[1-9][0-9]*", cut):
            raise ValueError(f"the cut-off of {metric!r} must be a whole number, at least 1, as in '{name}@10'")
        metric = _cut(METRICS[name], int(cut)) if at else METRICS[name]
    elif not isinstance(metric, Metric):
        raise TypeError(f"metric must be a name, such as 'ap' or 'ndcg@10', or a Metric, got {type(metric).__name__}")
    if k is not None:
        metric = _cut(metric, k)
    if metric.cut == "always" and metric.k is None:
        raise ValueError(
            f"{metric.name} needs the last place that counts; pass k, or a name such as '{metric.name}@10'"
        )
    return metric


def _cut(metric: Metric, k: int) -> Metric:
    check_whole(1, k=k)
    if metric.cut == "never":
        able = ", ".join(repr(other.name) for other in METRICS.values() if other.cut != "never")
        raise ValueError(f"{metric.name} is not cut at k={k}; cut one of {able}")
    if metric.k not in (None, k):
        raise ValueError(f"{metric.name} is cut at {metric.k} already, not at k={k}; pass one of the two")
    return replace(metric, name=f"{metric.name.partition('@')[0]}@{k}", k=int(k))


def values_of(
    metric: Metric, scores: ArrayLike, relevant: ArrayLike, qid: ArrayLike | None, empty: str
) -> tuple[NDArray[Any], FloatArray]:
    """The queries and their values, those of empty queries by the policy; one query if qid is None."""
    check_empty(empty)
    metric = as_metric(metric)
    grouping, gain, ranked = rank(scores, relevant, qid, metric.graded)
    values = np.full(grouping.ids.size, np.nan) if ranked is None else metric.of_steps(ranked.steps())
    is_empty = np.isnan(values)
    if is_empty.any() and empty == "error":
        q = int(np.argmax(is_empty))
        part = gain[grouping.starts[q] : grouping.starts[q + 1]]
        n_pos = int(np.count_nonzero(part))
        which = "the query" if qid is None else f"query {grouping.ids[q]}"
        raise ValueError(
            f"{which} has {n_pos} positives and {part.size - n_pos} negatives and so no {metric.name}; remove it, or "
            "pass empty='zero' or empty='skip'"
        )
    if empty == "zero":
        values[is_empty] = 0.0
    return grouping.ids, values


def _over(value: FloatArray, by: FloatArray) -> FloatArray:
    return np.divide(value, by, out=np.full_like(value, np.nan), where=by > 0.0)


def _average_precision(steps: Steps, k: int | None) -> FloatArray:
    found = steps.above(steps.gain) + steps.gain
    seen = np.maximum(steps.above(steps.size) + steps.size, 1.0)
    return _over(steps.total(steps.gain * found / seen), steps.total(steps.gain))


def _auc(steps: Steps, k: int | None) -> FloatArray:
    n_pos, n_neg = steps.total(steps.gain), steps.total(steps.size - steps.gain)
    in_order = (steps.size - steps.gain) * (steps.above(steps.gain) + 0.5 * steps.gain)
    return _over(steps.total(in_order), n_pos * n_neg)


def _precision(steps: Steps, k: int | None) -> FloatArray:
    assert k is not None
    among = np.clip(k - steps.above(steps.size), 0.0, steps.size) / np.maximum(steps.size, 1.0)
    return np.where(steps.total(steps.gain) > 0.0, steps.total(steps.gain * among) / k, np.nan)


def _reciprocal_rank(steps: Steps, k: int | None) -> FloatArray:
    values = np.full(steps.first.size, np.nan)
    lead = np.flatnonzero((steps.gain > 0.0) & (steps.above(steps.gain) == 0.0))  # one a query, if not empty
    cases = np.stack([steps.above(steps.size)[lead], steps.size[lead], steps.gain[lead]], axis=1)
    distinct, which = np.unique(cases.astype(np.int64), axis=0, return_inverse=True)
    expected = np.array([_expected_reciprocal(above, size, n_pos, k) for above, size, n_pos in distinct.tolist()])
    values[steps.total(steps.gain) > 0.0] = expected[which.reshape(-1)]
    return values


def _expected_reciprocal(above: int, size: int, n_pos: int, k: int | None) -> float:
    """E 1/(above + r + 1), r negatives before the first of n_pos positives in a random order of size samples."""
    if size == n_pos:
        return 1.0 / (above + 1) if k is None or above < k else 0.0
    r = np.arange(size - n_pos + 1 if k is None else min(size - n_pos + 1, max(k - above, 0)))
    hit = n_pos / (size - r)
    missed = np.cumprod(np.concatenate([[1.0], 1.0 - hit[:-1]]))[: r.size]
    return float(np.sum(missed * hit / (above + 1 + r)))


def _ndcg(steps: Steps, k: int | None) -> FloatArray:
    assert steps.ideal is not None
    return _over(_dcg(steps, k), _dcg(steps.ideal, k))


def _dcg(steps: Steps, k: int | None) -> FloatArray:
    sizes = steps.total(steps.size).astype(np.int64)
    begins = np.cumsum(sizes) - sizes
    discounts = 1.0 / np.log2(np.arange(2.0, int(sizes.max()) + 2.0))
    if k is not None:
        discounts[k:] = 0.0
    # By place, and a 0 at the end where a last step without samples may begin.
    by_place = np.append(discounts[np.arange(int(sizes.sum())) - np.repeat(begins, sizes)], 0.0)
    by_step = np.add.reduceat(by_place, (np.cumsum(steps.size) - steps.size).astype(np.int64))
    return steps.total(steps.gain / np.maximum(steps.size, 1.0) * by_step)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("ap", _average_precision),
        Metric("ndcg", _ndcg, cut="optionally", graded=True),
        Metric("mrr", _reciprocal_rank, cut="optionally"),
        Metric("auc", _auc),
        Metric("precision", _precision, cut="always"),
    )
}
