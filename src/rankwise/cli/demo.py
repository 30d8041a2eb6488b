"""`rankwise demo`: the most violating ranking of real scores, found by every method."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

import rankwise as rw
from rankwise.benchmarks.opponents import hinge
from rankwise.benchmarks.scores import Sample
from rankwise.benchmarks.timing import compare

__all__ = ["Demo", "as_dict", "lines", "run"]

_DIGIT = 8
_SIGNS = 30
_REPEATS = 7
# How closely the methods must agree on J, and the gradient must sum to 0.
_TOLERANCE = 1e-9
_LOSSES = {"AP": "ap", "NDCG": "ndcg"}
_METHODS = ["bucketed", "quicksort", "mohapatra2014", "yue", "chakrabarti"]


@dataclass(frozen=True)
class Method:
    """What one method found, and its best time."""

    name: str
    value: float
    seconds: float


@dataclass(frozen=True)
class Shown:
    """One loss: of the predicted ranking, of the most violating one, and by each method."""

    loss: str
    predicted: float
    value: float
    violating: float
    pattern: str
    gradient_sum: float
    methods: list[Method]

    @property
    def checks(self) -> dict[str, bool]:
        """What must hold, and whether it does."""
        values = [method.value for method in self.methods]
        return {
            f"all methods agree on J to {_TOLERANCE:g}": max(values) - min(values) <= _TOLERANCE,
            "J is no less than the predicted ranking's loss": self.value >= self.predicted - _TOLERANCE,
            "the gradient sums to 0": abs(self.gradient_sum) <= _TOLERANCE,
        }


@dataclass(frozen=True)
class Demo:
    """Everything the demonstration shows."""

    data: str
    n_pos: int
    n_neg: int
    shown: list[Shown]

    @property
    def holds(self) -> bool:
        """Whether all checks hold."""
        return all(all(shown.checks.values()) for shown in self.shown)


def run() -> Demo:
    """Score half of scikit-learn's digits by a model of the other half, and rank it by every method."""
    sample = _digit_scores()
    n_pos = int(sample.relevant.sum())
    data = (
        f"scikit-learn's digits, {_DIGIT} against the others: half of them, scored by a logistic regression on the rest"
    )
    return Demo(data, n_pos, sample.relevant.size - n_pos, [_show(sample, name) for name in _LOSSES])


def _digit_scores() -> Sample:
    """Decision values of a logistic regression for the rows it was not fitted on."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    pixels, digits = load_digits(return_X_y=True)
    features, relevant = pixels / 16, digits == _DIGIT
    held_out = np.random.default_rng(0).permutation(relevant.size) % 2 == 0
    model = LogisticRegression(max_iter=1000).fit(features[~held_out], relevant[~held_out])
    return Sample(model.decision_function(features[held_out]), relevant[held_out])


def _show(sample: Sample, name: str) -> Shown:
    loss = _LOSSES[name]
    result = rw.structured_hinge(*sample, loss)
    seconds = compare({method: hinge(sample, loss, method) for method in _METHODS}, _REPEATS)
    found = [
        Method(method, float(rw.structured_hinge(*sample, loss, method=method).value), seconds[method])
        for method in _METHODS
    ]
    return Shown(
        loss=name,
        predicted=float(rw.ranking_loss(*sample, loss)),
        value=float(result.value),
        violating=float(result.loss),
        pattern=rw.most_violating_ranking(*sample, loss).pattern()[:_SIGNS],
        gradient_sum=float(np.sum(result.gradient, dtype=np.float64)),
        methods=found,
    )


def lines(demo: Demo) -> list[str]:
    """The demonstration as text."""
    text = [demo.data, f"{demo.n_pos} positives, {demo.n_neg} negatives"]
    for shown in demo.shown:
        fastest = min(method.seconds for method in shown.methods)
        text += [
            "",
            f"{shown.loss} loss",
            f"  predicted ranking:       loss {shown.predicted:.4f}",
            f"  most violating ranking:  loss {shown.violating:.4f}, J = {shown.value:.4f}",
            f"  its first {len(shown.pattern)} places:     {shown.pattern}",
            "",
            f"  {'method':<16}{'J':>16}{'time':>12}{'ratio':>8}",
        ]
        for method in shown.methods:
            milliseconds, ratio = 1e3 * method.seconds, method.seconds / fastest
            text.append(f"  {method.name:<16}{method.value:>16.12f}{milliseconds:>9.3f} ms{ratio:>7.1f}x")
        text += [""] + [f"  {'ok    ' if holds else 'FAILED'}  {check}" for check, holds in shown.checks.items()]
    return text


def as_dict(demo: Demo) -> dict[str, Any]:
    """The demonstration as plain data."""
    document = dataclasses.asdict(demo)
    for plain, shown in zip(document["shown"], demo.shown, strict=True):
        plain["checks"] = shown.checks
    document["holds"] = demo.holds
    return document
