"""What LinearRanker knows of samples beside their features: the rows to search on, and the folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import is_whole
from rankwise.linear.cross_validation import Fold, check_folds, split
from rankwise.linear.task import Labels, rankable
from rankwise.metrics import Metric
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import as_loss
from rankwise.queries import group

# The search uses so many samples at most, without and with queries.
_SEARCHED, _SEARCHED_IN_QUERIES = 1 << 15, 200_000
# The search uses at least so many positives, if there are as many.
_POSITIVES = 1000
# Difference of the seeds of folds that are drawn again.
_APART = 500
# Names of metrics whose own loss refines rankers, with its usual gain.
_REFINED = ("ap", "ndcg", "mrr", "auc")


class RankerData(NamedTuple):
    """Labels, queries and weights or None, and the truth for the metric; all checked."""

    labels: Labels
    qid: NDArray[Any] | None
    weight: NDArray[Any] | None
    judged: NDArray[Any]

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which samples are relevant."""
        return self.labels.relevant

    @property
    def row_weights(self) -> NDArray[np.float64]:
        """Weight of each sample, (n,), at most 1."""
        if self.weight is None:
            return np.ones(self.relevant.size)
        return np.asarray(self.weight.astype(np.float64) / float(self.weight.max()))

    def part(self, rows: NDArray[np.int64]) -> RankerData:
        """Return the same of some rows."""
        qid, weight = (None if values is None else values[rows] for values in (self.qid, self.weight))
        return RankerData(self.labels.part(rows), qid, weight, self.judged[rows])

    def can_rank(self, rows: NDArray[np.int64]) -> bool:
        """Return whether some query with a positive weight has something to rank among these rows."""
        return bool((rankable(self.labels.truth, self.qid, self.weight, rows).weights > 0.0).any())

    def searched(self, seed: int) -> NDArray[np.int64] | None:
        """Return rows to search on if there are very many: whole queries, or a sample with enough positives."""
        n, rng = self.relevant.size, np.random.default_rng(seed)
        if n <= (_SEARCHED if self.qid is None else _SEARCHED_IN_QUERIES):
            return None
        if self.qid is None:
            order = rng.permutation(n)
            n_pos = max(round(_SEARCHED * float(self.relevant.mean())), min(_POSITIVES, int(self.relevant.sum())))
            pos, neg = order[self.relevant[order]][:n_pos], order[~self.relevant[order]][: _SEARCHED - n_pos]
            return np.sort(np.concatenate([pos, neg]))
        grouping = group(self.qid, n)
        sizes = np.diff(grouping.starts)
        queries = rng.permutation(sizes.size)
        kept = queries[np.cumsum(sizes[queries]) <= _SEARCHED_IN_QUERIES]
        used = np.zeros(sizes.size, bool)
        used[kept if kept.size else queries[:1]] = True
        rows = np.flatnonzero(grouping.scatter(np.repeat(used, sizes)))
        return rows if self.can_rank(rows) else None  # only large queries of one class were drawn

    def folds(self, cv: Any, seed: int, repeats: int) -> list[Fold]:
        """Return folds, a number of which is drawn so often; none if a class has too few samples, or queries are few.

        A fold that has nothing to rank in its training samples is not used.
        """
        cv = 5 if cv is None else cv
        if not is_whole(cv):
            folds = split(self.labels, self.qid, cv, seed)
            for number, fold in enumerate(folds, 1):
                if not self.can_rank(fold.train):
                    raise ValueError(
                        f"fold {number} of cv trains on no query with both classes; pass a number of folds, or a "
                        "splitter that is stratified"
                    )
            return folds
        check_folds(cv)
        n = min(int(self.relevant.sum()), int((~self.relevant).sum()))
        n = n if self.qid is None else rankable(self.labels.truth, self.qid).weights.size
        if min(cv, n) < 2:
            return []
        seeds = [seed + _APART * r for r in range(repeats)]
        folds = [fold for s in seeds for fold in split(self.labels, self.qid, min(cv, n), s)]
        return [fold for fold in folds if self.can_rank(fold.train)]


def refined_by(metric: Metric | None) -> Loss:
    """Return the loss that refines rankers for a metric: its own of all places, or AP if it has none."""
    name = "ap" if metric is None else metric.name.split("@")[0]
    if name in _REFINED:
        return as_loss(name)
    if isinstance(metric, Loss) and metric.cut != "always":
        return metric if metric.k is None else metric.replace(k=None)
    return as_loss("ap")
