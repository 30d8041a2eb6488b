"""Which map from score to bucket suits a large query: judged by a small sample of its scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.buckets import KEYS_PER_OCTAVE, BucketMap

SAMPLE = 2048
_CELLS = 256
_JUDGES = 512  # of the sample, to choose among logarithmic maps
# Mean crowding (1 if even, 2 for normal scores) from which a logarithmic map is tried.
_CROWDED = 5.0


def draw(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """A sorted sample of the finite scores, at fixed, irregular positions."""
    n = scores.shape[0]
    k = np.arange(min(SAMPLE, n), dtype=np.int64)
    stride = max(1, n // SAMPLE)
    sample = scores[k * stride + (k * 2654435761) % stride].astype(np.float64)
    return np.sort(sample[np.isfinite(sample)])


def choose(sample: NDArray[np.float64], n_buckets: int) -> BucketMap:
    """The map under which the distinct scores of a sorted sample crowd least."""
    if sample.size == 0 or sample[0] == sample[-1]:
        return BucketMap(0.0, 0.0, 1.0, 1.0, 0.0, 1)
    distinct = sample[np.concatenate([[True], sample[1:] > sample[:-1]])]
    low, high = distinct[0], distinct[-1]
    if _crowding(distinct - low) <= _CROWDED:
        return _linear(low, high, n_buckets)
    few = np.concatenate([distinct[:: max(1, distinct.size // _JUDGES)], [high]])
    best, chart = _crowding(few - low), _linear(low, high, n_buckets)
    middle, spread = few[few.size // 2], few[3 * few.size // 4] - few[few.size // 4]
    for centre in (middle, low, 0.0):
        for width in (spread, np.partition(np.abs(few - centre), few.size // 50)[few.size // 50]):
            if not 1e-280 < width < 1e280 or max(centre - low, high - centre) > 1e280 * min(width, 1.0):
                continue
            zoom = float(16.0 / width)
            y = (few - centre) * zoom
            key = np.copysign(np.log2(1.0 + np.abs(y)), y)
            crowding = _crowding(key - key[0])
            if crowding < 0.8 * best:
                best, chart = crowding, _logarithmic(centre, zoom, key[0], key[-1], n_buckets)
    return chart


def _crowding(t: NDArray[np.float64]) -> float:
    """How many times more neighbours a value has than if they were spread evenly, t ascending from 0."""
    if not 1e-300 < t[-1] < 1e300:  # nothing to divide
        return np.inf
    cells = np.minimum(t * (_CELLS / t[-1]), _CELLS - 1).astype(np.int64)
    share = np.bincount(cells, minlength=_CELLS) / t.size
    return float(np.sum(share * share) * _CELLS)


def _linear(low: float, high: float, n_buckets: int) -> BucketMap:
    if not 1e-300 < high - low < 1e300:
        return BucketMap(0.0, 0.0, 1.0, 1.0, 0.0, 1)
    rate = (n_buckets - 2) / (high - low)
    return BucketMap(float(low), 0.0, float(rate), float(1.0 / rate), 1.0, n_buckets)


def _logarithmic(centre: float, zoom: float, low: float, high: float, n_buckets: int) -> BucketMap:
    rate = (n_buckets - 2) / ((high - low) * KEYS_PER_OCTAVE)
    offset = 1.0 - low * KEYS_PER_OCTAVE * rate
    return BucketMap(float(centre), float(zoom), float(rate), float(1.0 / rate), float(offset), n_buckets)
