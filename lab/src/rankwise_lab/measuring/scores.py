"""Scores to time on, from well-behaved to hostile: float32 unless stated, positives at random places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise import Loss

# The share of negatives that still have a gradient in `trained_like`.
ACTIVE = 0.01

Scores = NDArray[np.float32]


class Sample(NamedTuple):
    """Scores (n,) and which of them belong to positives, or their grades (n,)."""

    scores: NDArray[Any]
    relevant: NDArray[Any]

    @property
    def negatives(self) -> NDArray[Any]:
        negatives: NDArray[Any] = self.scores[~self.relevant]
        return negatives


def normal(n_pos: int, n_neg: int, seed: int = 0, shift: float = 1.0, dtype: str = "float32") -> Sample:
    """Standard normal scores, those of positives higher by `shift`; dtype: "float16", "float32" or "float64"."""
    rng, relevant = _drawn(n_pos, n_neg, seed)
    scores = rng.standard_normal(n_pos + n_neg, dtype=np.float64 if dtype == "float64" else np.float32)
    scores[relevant] += scores.dtype.type(shift)
    return Sample(scores.astype(dtype, copy=False), relevant)


def separated(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Return scores with every positive so far above every negative that J = 0 for AP and NDCG."""
    # A step costs at most N/4 (AP) or 0.19·PN/C with C ≥ P/log2(1 + P) (NDCG), in units of 2/(PN).
    margin = n_neg * max(1.0, 0.2 * float(np.log2(1 + n_pos)))
    return normal(n_pos, n_neg, seed, shift=margin + 20.0)


def trained_like(n_pos: int, n_neg: int, loss: str | Loss, seed: int = 0) -> Sample:
    """Return scores like those of a nearly trained model: a share `ACTIVE` of the negatives has a gradient, rank ≤ P.

    Normal scores whose shift is found by bisection, to within a tenth of `ACTIVE` or one negative.
    """
    rng, relevant = _drawn(n_pos, n_neg, seed)
    base = rng.standard_normal(n_pos + n_neg, dtype=np.float32)
    within = max(ACTIVE / 10, 1 / n_neg)

    def shifted(shift: float) -> Sample:
        scores = base.copy()
        scores[relevant] += np.float32(shift)
        return Sample(scores, relevant)

    low, high = 0.0, 8.0
    while active_share(shifted(high), loss) > ACTIVE:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        sample = shifted(middle)
        share = active_share(sample, loss)
        if abs(share - ACTIVE) <= within:
            break
        low, high = (middle, high) if share > ACTIVE else (low, middle)
    return sample


def active_share(sample: Sample, loss: str | Loss) -> float:
    """The share of negatives with rank ≤ P in the most violating ranking: those with a gradient."""
    gradient: NDArray[Any] = rw.structured_hinge(sample.scores, sample.relevant, loss).gradient
    active = np.count_nonzero(gradient) - np.count_nonzero(gradient[sample.relevant])
    return float(active) / np.count_nonzero(~sample.relevant)


def heavy_tailed(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Standard Cauchy scores, those of positives higher by 1: a few of them span nearly the whole range."""
    rng, relevant = _drawn(n_pos, n_neg, seed)
    scores = rng.standard_cauchy(n_pos + n_neg).astype(np.float32)
    scores[relevant] += np.float32(1)
    return Sample(scores, relevant)


def two_valued(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Scores 0 or 1: 1 for nine positives in ten and for one negative in ten."""
    rng, relevant = _drawn(n_pos, n_neg, seed)
    chance = np.where(relevant, np.float32(0.9), np.float32(0.1))
    return Sample((rng.random(n_pos + n_neg, dtype=np.float32) < chance).astype(np.float32), relevant)


def few_values(n_values: int, n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Return scores of this many values, equally frequent among negatives; positives take the greater of two draws."""
    rng, relevant = _drawn(n_pos, n_neg, seed)
    draws = rng.integers(0, n_values, n_pos + n_neg)
    draws[relevant] = np.maximum(draws[relevant], rng.integers(0, n_values, n_pos))
    return Sample((draws / n_values).astype(np.float32), relevant)


def saturated(n_pos: int, n_neg: int, seed: int = 0, steepness: float = 20.0) -> Sample:
    """Sigmoids of large numbers: by default, a fifth of them are 1 in float32, and as many below 10⁻⁷."""
    scores, relevant = normal(n_pos, n_neg, seed, dtype="float64")
    return Sample((1 / (1 + np.exp(-steepness * scores))).astype(np.float32), relevant)


def all_magnitudes(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Return float64 of either sign, evenly spread over the powers of ten from 10⁻³⁰⁰ to 10³⁰⁰."""
    rng, relevant = _drawn(n_pos, n_neg, seed)
    magnitude = 10.0 ** rng.uniform(-300, 300, n_pos + n_neg)
    return Sample(np.copysign(magnitude, rng.random(n_pos + n_neg) - 0.5), relevant)


def denormal(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """Return normal float64 scores times 10⁻³¹⁰: too small to have all their digits."""
    scores, relevant = normal(n_pos, n_neg, seed, dtype="float64")
    return Sample(scores * 1e-310, relevant)


def with_outlier(sample: Sample, score: float = 1e12) -> Sample:
    """Return the same scores, except that the first negative's is far off."""
    scores = sample.scores.copy()
    scores[np.argmin(sample.relevant)] = score
    return Sample(scores, sample.relevant)


def constant(n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """All scores equal."""
    return Sample(np.zeros(n_pos + n_neg, np.float32), _drawn(n_pos, n_neg, seed)[1])


def in_order(order: str, n_pos: int, n_neg: int, seed: int = 0) -> Sample:
    """The scores of `normal`, the negatives among them rearranged into one of `ORDERS`."""
    scores, relevant = normal(n_pos, n_neg, seed)
    scores[~relevant] = ORDERS[order](np.sort(scores[~relevant]))
    return Sample(scores, relevant)


# Orders that make a careless choice of pivot quadratic, from ascending scores; an organ pipe goes up and down again.
ORDERS: dict[str, Callable[[Scores], Scores]] = {
    "ascending": lambda ascending: ascending,
    "descending": lambda ascending: ascending[::-1],
    "organ pipe": lambda ascending: np.concatenate([ascending[::2], ascending[1::2][::-1]]),
}


def _drawn(n_pos: int, n_neg: int, seed: int) -> tuple[np.random.Generator, NDArray[np.bool_]]:
    """Return which samples are positive, at random places, and the generator for further draws."""
    rng = np.random.default_rng(seed)
    relevant = np.zeros(n_pos + n_neg, dtype=np.bool_)
    relevant[rng.choice(n_pos + n_neg, n_pos, replace=False)] = True
    return rng, relevant
