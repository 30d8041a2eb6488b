"""The oracle: every interleaving of a tiny problem, in plain NumPy, by the definitions alone."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.contract import AnyLoss

MOST_INTERLEAVINGS = 1_000_000


@lru_cache(maxsize=64)
def interleavings(n_pos: int, n_neg: int) -> NDArray[np.int64]:
    """above (all interleavings, n_pos): the number of negatives above the k-th positive."""
    total = comb(n_pos + n_neg, n_pos)
    if total > MOST_INTERLEAVINGS:
        raise ValueError(
            f"method 'exhaustive' would enumerate {total} interleavings of {n_pos} positives and {n_neg} negatives; "
            f"its limit is {MOST_INTERLEAVINGS}, use method='auto'"
        )
    places = np.array(list(combinations(range(n_pos + n_neg), n_pos)), dtype=np.int64)
    return places - np.arange(n_pos)


def best_above(pos: NDArray[np.float64], neg: NDArray[np.float64], loss: AnyLoss, scale: float) -> NDArray[np.int64]:
    """The c_k of a ranking that maximises scale·Δ(R*, R) + F(R) − F(R*); scores in any order."""
    middle = pos[pos.size // 2]  # a common offset cancels, and would cost digits
    pos, neg = np.sort(pos - middle)[::-1], np.sort(neg - middle)[::-1]
    above = interleavings(pos.size, neg.size)
    unit = 2.0 / (pos.size * neg.size)
    highest = np.concatenate([[0.0], np.cumsum(neg)])  # Σ_j (P + 1 − r_j) s_j = Σ_k Σ_{j ≤ c_k} s_j
    objective = scale * loss.of_counts(above, neg.size) + unit * (highest[above].sum(axis=1) - above @ pos)
    return above[int(np.argmax(objective))]
