"""The losses that a network is trained for layer by layer, and J of a block by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

import rankwise as rw

OWN = rw.DiscountedLoss(lambda k: 1.0 + 0 * k, lambda m: 1.0 / m**2, name="own")
LOSSES: dict[str, Any] = {name: name for name in ("hinge", "zero-one", "ap", "ndcg", "mrr", "auc")} | {"own": OWN}


def by_class(loss: str, scores: Any, labels: Any, scale: float) -> list[float]:
    """J of a block: for each class (1,) of the mean over classes, or in one for the multi-class hinge."""
    scores, labels, found = np.asarray(scores, np.float64), np.asarray(labels), []
    if loss == "hinge":
        for row, label in zip(scores, labels, strict=True):
            found.append(max(scale * (y != label) + row[y] - row[label] for y in range(row.size)))
        return [float(np.mean(found))]
    for c in range(scores.shape[1]):
        relevant = labels == c
        if relevant.all() or not relevant.any():
            found.append(0.0)
        elif loss == "zero-one":
            found.append(float(np.maximum(0.0, scale - np.where(relevant, 1.0, -1.0) * scores[:, c]).mean()))
        else:
            found.append(rw.structured_hinge(scores[:, c], relevant, LOSSES[loss], scale=scale).value)
    return [one / scores.shape[1] for one in found]
