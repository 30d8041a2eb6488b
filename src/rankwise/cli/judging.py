"""How `rankwise evaluate` judges a ranking: by which metrics and truth; values with intervals, as lines."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise import NDCG
from rankwise.cli.inputs import grades, shown
from rankwise.io import Dataset
from rankwise.metrics import Metric, as_metric, bootstrap_interval, per_query

# Beyond this, 2^grade is no float64.
_LARGEST_GRADE = 1023.0


class Judged(NamedTuple):
    """A metric's value, the interval around it, and how many queries it could judge."""

    name: str
    value: float
    low: float
    high: float
    queries: int


def metrics_of(arguments: argparse.Namespace) -> dict[str, Metric]:
    """The metrics by the names that were given; "map" is "ap"."""
    found = {}
    for name in arguments.metrics:
        metric = as_metric("ap" if name == "map" else name)
        if isinstance(metric, NDCG):
            metric = as_metric(metric, gain=arguments.gain)
        elif metric.graded:
            metric = as_metric(metric, max_grade=arguments.max_grade)
        found["map" if name == "map" else metric.name] = metric
    return found


@dataclass(frozen=True, eq=False)
class Judge:
    """Metrics by name, what they judge by (relevant, grades and queries, (n,) each), and how intervals are drawn."""

    metrics: dict[str, Metric]
    relevant: NDArray[np.bool_]
    grades: NDArray[np.float64]
    qid: NDArray[Any]
    n_queries: int
    level: float
    resamples: int
    seed: int
    empty: str

    @classmethod
    def of(
        cls, metrics: dict[str, Metric], data: Dataset, relevant: NDArray[np.bool_], arguments: argparse.Namespace
    ) -> Judge:
        """That of some data; refused where these do not suit the metrics."""
        if data.qid is None and "map" in metrics:
            raise ValueError(f"{data.source} has no queries, but map is the mean of AP over queries; use ap instead")
        labels = grades(data, relevant)
        largest = float(labels.max())
        if largest > _LARGEST_GRADE and any(metric.graded and metric.gain == "exp2" for metric in metrics.values()):
            raise ValueError(
                f"{data.source}: a label is {shown(largest)}, so the gain in ndcg, 2^label - 1, is too large for a "
                "float64; use --gain linear"
            )
        if arguments.max_grade is not None and largest > arguments.max_grade:
            raise ValueError(
                f"{data.source}: a label is {shown(largest)}, above --max-grade {shown(arguments.max_grade)}; raise "
                "--max-grade"
            )
        qid = np.zeros(labels.size, np.int64) if data.qid is None else data.qid
        options = (arguments.level, arguments.resamples, arguments.seed, arguments.empty)
        judge = cls(metrics, relevant, labels, qid, np.unique(qid).size, *options)
        if judge.empty == "error":  # said before anything else; it does not depend on scores
            for name, metric in metrics.items():
                per_query(metric, np.zeros(labels.size), judge.truth(name), qid, empty="error")
        return judge

    @property
    def over(self) -> str:
        """What is drawn again for an interval."""
        return "queries" if self.n_queries > 1 else "samples"

    def truth(self, name: str) -> NDArray[Any]:
        """(n,) What a metric judges by."""
        return self.metrics[name].truth(self.relevant, self.grades)

    def judge(self, name: str, scores: NDArray[np.float64]) -> Judged:
        """A metric of scores (n,)."""
        metric, truth = self.metrics[name], self.truth(name)
        values = per_query(metric, scores, truth, self.qid)[1]
        value = metric(scores, truth, qid=self.qid, empty=self.empty)
        low = high = math.nan
        if self.resamples:
            how: dict[str, Any] = {"level": self.level, "n_resamples": self.resamples, "seed": self.seed}
            low, high = bootstrap_interval(metric, scores, truth, self.qid, empty=self.empty, **how)
        return Judged(name, value, low, high, int(np.isfinite(values).sum()))

    def head(self) -> str:
        """What stands above the lines."""
        interval = f"   {self.percent} interval over {self.over}" if self.resamples else ""
        return f"{'':<14}{'value':>8}{interval}"

    def line(self, judged: Judged) -> str:
        """A metric in a line."""
        value = f"{judged.value:.4f}" if math.isfinite(judged.value) else "-"
        count = f"   {self.counted(judged.queries)}" if self.n_queries > 1 else ""
        return f"{judged.name:<14}{value:>8}{interval(judged.low, judged.high)}{count}"

    def counted(self, queries: int) -> str:
        """How many queries a metric could judge."""
        return f"{queries:,} of {self.n_queries:,} queries"

    @property
    def percent(self) -> str:
        """The level of intervals."""
        return f"{100 * self.level:g}%"


def interval(low: float, high: float, sign: str = "") -> str:
    """An interval beside a value, or nothing."""
    return f"   {low:{sign}.4f} to {high:{sign}.4f}" if math.isfinite(low) else ""
