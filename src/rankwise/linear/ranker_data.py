"""What LinearRanker is fitted to: a part of it to try on, and the folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.grouping import group
from rankwise.inputs import is_whole
from rankwise.linear.base import check_counts
from rankwise.linear.cross_validation import Fold, split
from rankwise.linear.labels import Labels
from rankwise.linear.posing import pose
from rankwise.losses import Loss, as_loss
from rankwise.metrics import Metric

# Of many samples, so many are tried on, and of those in queries, which are fewer units; data of less than so many
# entries are small.
_SEARCHED, _SEARCHED_IN_QUERIES, _SMALL = 1 << 15, 200_000, 40_000
# At least so many positives are among those that are tried on.
_POSITIVES = 1000
# How often folds of small data are drawn, and how far apart their seeds are.
_REPEATS, _APART = 3, 500

# The loss of the same name by which rankers are refined for a metric.
_LOSSES = {"ap": "ap", "ndcg": "ndcg", "mrr": "mrr", "auc": "auc"}


class RankerData(NamedTuple):
    """Samples, checked: X (n, d), what labels say, their queries and weights or None, and what the metric judges."""

    X: Any
    labels: Labels
    qid: NDArray[Any] | None
    weight: NDArray[Any] | None
    judged: NDArray[Any]

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which samples are relevant."""
        return self.labels.relevant

    @property
    def is_small(self) -> bool:
        """Whether a fit takes so little that one may afford more of them."""
        return bool(self.X.shape[0] * self.X.shape[1] < _SMALL)

    @property
    def row_weights(self) -> NDArray[np.float64]:
        """(n,) the weight of each sample, at most 1."""
        if self.weight is None:
            return np.ones(self.relevant.size)
        return np.asarray(self.weight.astype(np.float64) / float(self.weight.max()))

    def part(self, rows: NDArray[np.int64]) -> RankerData:
        """The same of some rows, in memory."""
        X = self.X[rows]
        qid, weight = (None if values is None else values[rows] for values in (self.qid, self.weight))
        X = np.asarray(X) if isinstance(X, np.ndarray) else X
        return RankerData(X, self.labels.part(rows), qid, weight, self.judged[rows])

    def can_rank(self, rows: NDArray[np.int64]) -> bool:
        """Whether some query, of a weight above 0, has both classes among these rows."""
        try:
            pose(self.labels.truth, as_loss("ap"), self.qid, self.weight, rows)
        except ValueError:
            return False
        return True

    def tried_on(self, seed: int) -> RankerData:
        """All samples, or of very many a part of them, with whole queries, or as many positives as there are in all."""
        n, rng = self.relevant.size, np.random.default_rng(seed)
        if n <= (_SEARCHED if self.qid is None else _SEARCHED_IN_QUERIES):
            return self
        if self.qid is None:
            order = rng.permutation(n)
            n_pos = max(round(_SEARCHED * float(self.relevant.mean())), min(_POSITIVES, int(self.relevant.sum())))
            pos, neg = order[self.relevant[order]][:n_pos], order[~self.relevant[order]][: _SEARCHED - n_pos]
            return self.part(np.sort(np.concatenate([pos, neg])))
        grouping = group(self.qid, n)
        sizes = np.diff(grouping.starts)
        queries = rng.permutation(sizes.size)
        kept = queries[np.cumsum(sizes[queries]) <= _SEARCHED_IN_QUERIES]
        used = np.zeros(sizes.size, bool)
        used[kept if kept.size else queries[:1]] = True
        rows = np.flatnonzero(grouping.scatter(np.repeat(used, sizes)))
        return self.part(rows) if self.can_rank(rows) else self  # large queries of one class

    def folds(self, cv: Any, seed: int) -> tuple[list[Fold], int]:
        """Folds, and how often they were drawn; none where there are too few samples of a class, or queries.

        A fold that leaves nothing to rank for training, all queries of both classes being left out, is not used.
        """
        cv = 5 if cv is None else cv
        if not is_whole(cv):
            folds = split(self.labels, self.qid, cv, seed)
            if not folds:
                raise ValueError("cv gives no fold; pass a number of folds, or a splitter that gives some")
            return folds, 1
        check_counts(cv=cv)
        n = min(int(self.relevant.sum()), int((~self.relevant).sum()))
        n = n if self.qid is None else pose(self.labels.truth, as_loss("ap"), self.qid).n_queries
        if min(cv, n) < 2:
            return [], 1
        repeats = _REPEATS if self.is_small else 1
        seeds = [seed + _APART * r for r in range(repeats)]
        folds = [fold for s in seeds for fold in split(self.labels, self.qid, min(cv, n), s)]
        return [fold for fold in folds if self.can_rank(fold.train)], repeats


def refined_by(metric: Metric | None) -> Loss:
    """The loss by which rankers are refined for a metric; AP for any other."""
    return as_loss(_LOSSES.get("ap" if metric is None else metric.name.split("@")[0], "ap"))
