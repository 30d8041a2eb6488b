"""Compiles the kernels that tests call, once, before several processes would each: a moment where they are kept.

python tests/helpers/compile_kernels.py float64 float32
"""

from __future__ import annotations

import sys

import numpy as np
from rank_losses import NAMED, OWN

import rankwise as rw
from rankwise.kernels.contract import METHODS

SMALL, LARGE = (3, 5), (100, 60_000)  # positives and negatives


def main(dtypes: list[str]) -> None:
    rng = np.random.default_rng(0)
    for dtype in dtypes:
        for n_pos, n_neg in (SMALL, LARGE):
            relevant = np.arange(n_pos + n_neg) < n_pos
            scores = rng.normal(size=relevant.size).astype(dtype)
            for loss in ("zero-one", OWN, *NAMED):
                rw.structured_hinge(scores, relevant, loss)
            rw.structured_hinge(np.tile(scores, 2), np.tile(relevant, 2), qid=np.repeat([1, 2], scores.size))
            rw.structured_hinge(scores, relevant, "ndcg@3")
            for function in (rw.structured_hinge, rw.smooth_loss, rw.error_driven_loss):
                function(scores, relevant + 2 * relevant, "ap")
            for method in METHODS if n_neg == SMALL[1] else ["quicksort"]:
                rw.most_violating_ranking(scores, relevant, method=method)


if __name__ == "__main__":
    main(sys.argv[1:])
