"""A counting sort of samples by query."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel


@kernel
def order_by_key(keys, n_keys):
    """Positions in ascending order of their keys (0 ≤ key < n_keys), stably, and where each key's positions end."""
    ends = np.zeros(n_keys, np.int64)
    for k in range(keys.shape[0]):
        ends[keys[k]] += 1
    total = 0
    for key in range(n_keys):
        size = ends[key]
        ends[key] = total
        total += size
    order = np.empty(keys.shape[0], np.int64)
    for k in range(keys.shape[0]):
        key = keys[k]
        order[ends[key]] = k
        ends[key] += 1
    return order, ends
