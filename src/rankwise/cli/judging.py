"""How `rankwise evaluate` judges rankings: by which metrics and truth; values and comparisons as lines and as data."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise import NDCG
from rankwise.cli.inputs import Samples, counted, shown
from rankwise.metrics import Comparison, Metric, as_metric, bootstrap_interval, compare, per_query

LETTERS = ("A", "B")
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


class Judge:
    """Metrics by name, the samples that they judge rankings of, and how intervals are drawn."""

    def __init__(self, metrics: dict[str, Metric], samples: Samples, arguments: argparse.Namespace) -> None:
        self.metrics, self.samples = metrics, samples
        self.level, self.seed, self.empty = arguments.level, arguments.seed, arguments.empty
        self.resamples: int = arguments.resamples
        self._check(arguments.max_grade)

    def _check(self, max_grade: float | None) -> None:
        """Refuse samples that do not suit the metrics."""
        metrics, source, largest = self.metrics, self.samples.source, float(self.samples.grades.max())
        if self.samples.data.qid is None and "map" in metrics:
            raise ValueError(f"{source} has no queries, but map is the mean of AP over queries; use ap instead")
        if largest > _LARGEST_GRADE and any(metric.graded and metric.gain == "exp2" for metric in metrics.values()):
            raise ValueError(
                f"{source}: a label is {shown(largest)}, so the gain in ndcg, 2^label - 1, is too large for a "
                "float64; use --gain linear"
            )
        if max_grade is not None and largest > max_grade:
            raise ValueError(
                f"{source}: a label is {shown(largest)}, above --max-grade {shown(max_grade)}; raise --max-grade"
            )
        if self.empty == "error":  # said before anything else; it does not depend on scores
            for name, metric in metrics.items():
                per_query(metric, np.zeros(self.samples.n), self._truth(name), self.samples.qid, empty="error")

    @property
    def several(self) -> bool:
        """Whether there are several queries."""
        return self.samples.n_queries > 1

    @property
    def over(self) -> str:
        """What is drawn again for an interval."""
        return "queries" if self.several else "samples"

    @property
    def percent(self) -> str:
        """The level of intervals."""
        return f"{100 * self.level:g}%"

    def _truth(self, name: str) -> NDArray[Any]:
        return self.metrics[name].truth(self.samples.relevant, self.samples.grades)

    def judge(self, name: str, scores: NDArray[np.float64]) -> Judged:
        """A metric of scores (n,)."""
        metric, truth, qid = self.metrics[name], self._truth(name), self.samples.qid
        values = per_query(metric, scores, truth, qid)[1]
        value = metric(scores, truth, qid=qid, empty=self.empty)
        low = high = math.nan
        if self.resamples:
            low, high = bootstrap_interval(metric, scores, truth, qid, n_resamples=self.resamples, **self._how())
        return Judged(name, value, low, high, int(np.isfinite(values).sum()))

    def compare(self, name: str, scores: Sequence[NDArray[np.float64]]) -> Comparison:
        """A metric of the scores of two models; without an interval if none is asked for."""
        (a, b), metric, qid = scores, self.metrics[name], self.samples.qid
        return compare(metric, a, b, self._truth(name), qid, n_resamples=max(self.resamples, 1), **self._how())

    def _how(self) -> dict[str, Any]:
        return {"level": self.level, "seed": self.seed, "empty": self.empty}

    def head(self) -> str:
        """What stands above the lines."""
        interval = f"   {self.percent} interval over {self.over}" if self.resamples else ""
        return f"{'':<14}{'value':>8}{interval}"

    def line(self, judged: Judged) -> str:
        """A metric in a line."""
        count = f"   {self._counted(judged)}" if self.several else ""
        return f"{judged.name:<14}{_value(judged.value)}{_interval(judged.low, judged.high)}{count}"

    def lines(self, both: Sequence[Judged], found: Comparison) -> list[str]:
        """A metric of two models and of their difference, a line each."""
        lines = [both[0].name + (f"   {self._counted(both[0])}" if self.several else "")]
        for letter, judged in zip(LETTERS, both, strict=True):
            lines.append(f"  {letter:<6}{_value(judged.value)}{_interval(judged.low, judged.high)}")
        between = _interval(*found.interval, sign="+")[1:] if self.resamples else ""
        tests = "" if math.isnan(found.p_sign_flip) else f"   {found.tests()}"
        lines.append(f"  {'B - A':<6}{_value(found.difference, '+')}{between}{tests}")
        if self.several:
            better = counted(found.better, "query", "queries")
            lines.append(f"  B is better on {better}, worse on {found.worse:,}, equal on {found.equal:,}")
        return lines

    def document(self, both: Sequence[Judged], found: Comparison) -> dict[str, Any]:
        """The same, also by query, as plain data."""
        low, high = found.interval if self.resamples else (math.nan, math.nan)
        a, b = ({"value": judged.value, "low": judged.low, "high": judged.high} for judged in both)
        by_query = {"qid": found.ids, "a": found.values_a, "b": found.values_b, "difference": found.differences}
        return {
            "name": both[0].name,
            "queries": both[0].queries,
            "a": a,
            "b": b,
            "difference": {"value": found.difference, "low": low, "high": high},
            **{name: getattr(found, name) for name in ("p_wilcoxon", "p_sign_flip", "better", "worse", "equal")},
            "by_query": by_query,
        }

    def _counted(self, judged: Judged) -> str:
        return f"{judged.queries:,} of {self.samples.n_queries:,} queries"


def _value(value: float, sign: str = "") -> str:
    return f"{value:>{sign}8.4f}" if math.isfinite(value) else f"{'-':>8}"


def _interval(low: float, high: float, sign: str = "") -> str:
    return f"   {low:{sign}.4f} to {high:{sign}.4f}" if math.isfinite(low) else ""
