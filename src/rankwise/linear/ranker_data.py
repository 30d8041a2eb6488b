"""The data that LinearRanker is fitted to: a subset to search on, and the folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import is_whole
from rankwise.linear.cross_validation import Fold, check_folds, split
from rankwise.linear.labels import Labels
from rankwise.metrics import Metric
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import as_loss
from rankwise.queries import group

# The search uses so many samples at most, without and with queries. Data with fewer entries than the last number are
# small.
_SEARCHED, _SEARCHED_IN_QUERIES, _SMALL = 1 << 15, 200_000, 40_000
# The search uses at least so many positives, if there are as many.
_POSITIVES = 1000
# How often small data are split into folds, and the difference of the seeds.
_REPEATS, _APART = 3, 500

# Names of metrics whose own loss refines rankers, with its usual gain.
_REFINED = ("ap", "ndcg", "mrr", "auc")


@dataclass(frozen=True, eq=False)
class RankerData:
    """Checked samples: X (n, d), labels, queries and weights or None, and the truth for the metric."""

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
        """Whether fits are so cheap that more of them are affordable."""
        return bool(self.X.shape[0] * self.X.shape[1] < _SMALL)

    @property
    def row_weights(self) -> NDArray[np.float64]:
        """Weight of each sample, (n,), at most 1."""
        if self.weight is None:
            return np.ones(self.relevant.size)
        return np.asarray(self.weight.astype(np.float64) / float(self.weight.max()))

    def part(self, rows: NDArray[np.int64]) -> RankerData:
        """Return the data of some rows, in memory."""
        X = self.X[rows]
        qid, weight = (None if values is None else values[rows] for values in (self.qid, self.weight))
        X = np.asarray(X) if isinstance(X, np.ndarray) else X
        return RankerData(X, self.labels.part(rows), qid, weight, self.judged[rows])

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        """Number of each sample's query, (n,)."""
        if self.qid is None:
            return np.zeros(self.relevant.size, np.int64)
        grouping = group(self.qid, self.relevant.size)
        return grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(grouping.starts)))

    def n_rankable(self, rows: NDArray[np.int64] | slice = slice(None)) -> int:
        """Return how many queries have something to rank among these rows."""
        codes, truth = self._codes[rows], self.labels.truth[rows].astype(np.float64)
        least, most = np.full(self._codes.max() + 1, np.inf), np.full(self._codes.max() + 1, -np.inf)
        np.minimum.at(least, codes, truth)
        np.maximum.at(most, codes, truth)
        return int(np.count_nonzero(least < most))

    def can_rank(self, rows: NDArray[np.int64]) -> bool:
        """Return whether some query with a positive weight has something to rank among these rows."""
        return self.n_rankable(rows if self.weight is None else rows[self.weight[rows] > 0]) > 0

    def tried_on(self, seed: int) -> RankerData:
        """Return all samples, or a subset if there are very many: whole queries, or a sample with enough positives."""
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
        return self.part(rows) if self.can_rank(rows) else self  # if only large queries of one class were drawn

    def folds(self, cv: Any, seed: int) -> tuple[list[Fold], int]:
        """Return the folds, and how often they were drawn; no folds if a class has too few samples, or queries are few.

        A fold that has nothing to rank in its training samples is not used.
        """
        cv = 5 if cv is None else cv
        if not is_whole(cv):
            folds = split(self.labels, self.qid, cv, seed)
            if not folds:
                raise ValueError("cv returns no folds; pass a number of folds, or a splitter that returns at least one")
            for number, fold in enumerate(folds, 1):
                if not self.can_rank(fold.train):
                    raise ValueError(
                        f"fold {number} of cv trains on no query with both classes; pass a number of folds, or a "
                        "splitter that is stratified"
                    )
            return folds, 1
        check_folds(cv)
        n = min(int(self.relevant.sum()), int((~self.relevant).sum()))
        n = n if self.qid is None else self.n_rankable()
        if min(cv, n) < 2:
            return [], 1
        repeats = _REPEATS if self.is_small else 1
        seeds = [seed + _APART * r for r in range(repeats)]
        folds = [fold for s in seeds for fold in split(self.labels, self.qid, min(cv, n), s)]
        return [fold for fold in folds if self.can_rank(fold.train)], repeats


def refined_by(metric: Metric | None) -> Loss:
    """Return the loss that refines rankers for a metric: its own of all places, or AP if it has none."""
    name = "ap" if metric is None else metric.name.split("@")[0]
    if name in _REFINED:
        return as_loss(name)
    if isinstance(metric, Loss) and metric.cut != "always":
        whole = metric if metric.k is None else metric.replace(k=None)
        if whole.qs_suitable is not False:
            return whole
    return as_loss("ap")
