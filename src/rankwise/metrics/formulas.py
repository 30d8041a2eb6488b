"""The metrics as formulas over the steps of a ranking, for all queries at once.

A step has t samples, p of them positive; T samples and P positives are on the steps above it; n_pos positives in all.
A query that a metric cannot judge, for lack of positives (for AUC, also of negatives), is empty: NaN here.
"""

from __future__ import annotations

import numpy as np

from rankwise.metrics.grades import FloatArray
from rankwise.metrics.steps import Steps


def average_precision(steps: Steps, k: int | None) -> FloatArray:
    """Σ_steps p (P + p)/(T + t), over n_pos; at k, with the share of a step above the cut, over min(n_pos, k)."""
    gain, size, best = steps.gain, steps.size, steps.total(steps.gain)
    if k is not None:
        gain, size, best = gain * steps.share(k), size * steps.share(k), np.minimum(best, k)
    found = steps.above(gain) + gain
    seen = np.maximum(steps.above(size) + size, 1.0)
    return _over(steps.total(gain * found / seen), best)


def auc(steps: Steps, k: int | None) -> FloatArray:
    """Σ_steps (t − p)(P + p/2), over n_pos·n_neg."""
    n_pos, n_neg = steps.total(steps.gain), steps.total(steps.size - steps.gain)
    in_order = (steps.size - steps.gain) * (steps.above(steps.gain) + 0.5 * steps.gain)
    return _over(steps.total(in_order), n_pos * n_neg)


def precision(steps: Steps, k: int | None) -> FloatArray:
    """Positives among the first k, over k."""
    assert k is not None
    return np.where(steps.total(steps.gain) > 0.0, steps.total(steps.gain * steps.share(k)) / k, np.nan)


def recall(steps: Steps, k: int | None) -> FloatArray:
    """Positives among the first k, over n_pos."""
    return _over(steps.total(steps.gain * steps.share(k)), steps.total(steps.gain))


def f_measure(steps: Steps, k: int | None) -> FloatArray:
    """The highest 2(P + p)/(T + t + n_pos) of all steps: thresholds lie only between different scores."""
    n_pos = steps.total(steps.gain)
    found, seen = steps.above(steps.gain) + steps.gain, steps.above(steps.size) + steps.size
    whole = np.maximum(seen + np.repeat(n_pos, np.diff(steps.first, append=seen.size)), 1.0)
    return np.where(n_pos > 0.0, np.maximum.reduceat(2.0 * found / whole, steps.first), np.nan)


def reciprocal_rank(steps: Steps, k: int | None) -> FloatArray:
    """1/(place of the first positive), 0 beyond k, expected over the orders of equal scores."""
    values = np.full(steps.first.size, np.nan)
    lead = np.flatnonzero((steps.gain > 0.0) & (steps.above(steps.gain) == 0.0))  # one per query, if not empty
    cases = np.stack([steps.above(steps.size)[lead], steps.size[lead], steps.gain[lead]], axis=1)
    distinct, which = np.unique(cases.astype(np.int64), axis=0, return_inverse=True)
    expected = np.array([_expected_reciprocal(above, size, n_pos, k) for above, size, n_pos in distinct.tolist()])
    values[steps.total(steps.gain) > 0.0] = expected[which.reshape(-1)]
    return values


def _expected_reciprocal(above: int, size: int, n_pos: int, k: int | None) -> float:
    """E 1/(above + r + 1), with r negatives before the first of n_pos positives in a random order of size samples."""
    if size == n_pos:
        return 1.0 / (above + 1) if k is None or above < k else 0.0
    r = np.arange(size - n_pos + 1 if k is None else min(size - n_pos + 1, max(k - above, 0)))
    hit = n_pos / (size - r)
    missed = np.cumprod(np.concatenate([[1.0], 1.0 - hit[:-1]]))[: r.size]
    return float(np.sum(missed * hit / (above + 1 + r)))


def ndcg(steps: Steps, k: int | None) -> FloatArray:
    """DCG divided by that of the ranking by gains."""
    assert steps.ideal is not None
    return _over(_dcg(steps, k), _dcg(steps.ideal, k))


def _dcg(steps: Steps, k: int | None) -> FloatArray:
    sizes = steps.total(steps.size).astype(np.int64)
    begins = np.cumsum(sizes) - sizes
    discounts = 1.0 / np.log2(np.arange(2.0, int(sizes.max()) + 2.0))
    if k is not None:
        discounts[k:] = 0.0
    # One per place, and a 0 at the end, where a last step without samples may begin.
    by_place = np.append(discounts[np.arange(int(sizes.sum())) - np.repeat(begins, sizes)], 0.0)
    by_step = np.add.reduceat(by_place, (np.cumsum(steps.size) - steps.size).astype(np.int64))
    return steps.total(steps.gain / np.maximum(steps.size, 1.0) * by_step)


def _over(value: FloatArray, by: FloatArray) -> FloatArray:
    return np.divide(value, by, out=np.full_like(value, np.nan), where=by > 0.0)
