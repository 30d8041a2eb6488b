"""Section 3: scores that are difficult for the bucketed engine, against normal ones and against sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from rankwise_lab.benchmarks.plan import LOSSES, Case, Row, Sizes, at_most, over
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import hinge
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import Task, compare

__all__ = ["unfriendly"]


class Kind(NamedTuple):
    """How to make scores, the normal ones to compare with, and how much longer they may take."""

    make: Callable[[int, int], Sample]
    normal: str
    bound: float


_KINDS = {
    "2 values": Kind(scores.two_valued, "float32", 1.5),
    "10 values": Kind(partial(scores.few_values, 10), "float32", 1.5),
    "100 values": Kind(partial(scores.few_values, 100), "float32", 1.5),
    "1,000 values": Kind(partial(scores.few_values, 1000), "float32", 1.5),
    "all equal": Kind(scores.constant, "float32", 1.5),
    "saturated sigmoids": Kind(scores.saturated, "float32", 1.5),
    "sigmoids of 8 deviations": Kind(partial(scores.saturated, steepness=8.0), "float32", 1.5),
    "float16": Kind(partial(scores.normal, dtype="float16"), "float32", 2.0),
    "Cauchy": Kind(scores.heavy_tailed, "float32", 2.0),
    "1e-300 to 1e300, float64": Kind(scores.all_magnitudes, "float64", 2.0),
    "denormal, float64": Kind(scores.denormal, "float64", 2.0),
}


def unfriendly(sizes: Sizes) -> list[Case]:
    """Section 3: kinds of scores, one outlier, and many positives."""
    cases = []
    for loss, name in LOSSES.items():
        for n_pos in sizes.unfriendly_pos:
            label = f"{name}, P = {n_pos:,}"
            cases.append(Case(label, partial(_kinds, label, loss, n_pos, sizes.medium, sizes.repeats)))
        for n in sizes.outlier:
            label = f"{name}, P = {sizes.n_pos:,}, n = {n:,}, one outlier"
            cases.append(Case(label, partial(_outlier, label, loss, sizes.n_pos, n, sizes.repeats)))
        for n_pos, n_neg, bound in (
            (max(sizes.unfriendly_pos), sizes.medium, 1.5),
            (sizes.medium // 2, sizes.medium // 2, 3.0),
        ):
            label = f"{name}, P = {n_pos:,}, N = {n_neg:,}"
            cases.append(Case(label, partial(_against_sort, label, loss, n_pos, n_neg, bound, sizes.repeats)))
    return cases


def _kinds(label: str, loss: str, n_pos: int, n: int, repeats: int) -> Iterator[Row]:
    """Compare each kind with normal scores of its working type, and with np.sort of all its scores."""
    tasks: dict[str, Task] = {
        dtype: hinge(scores.normal(n_pos, n - n_pos, dtype=dtype), loss) for dtype in ("float32", "float64")
    }
    for name, kind in _KINDS.items():
        sample = kind.make(n_pos, n - n_pos)
        tasks[name], tasks[_sort_of(name)] = hinge(sample, loss), partial(np.sort, sample.scores)
    found = compare(tasks, repeats)
    for name, kind in _KINDS.items():
        for other, target in ((kind.normal, at_most(kind.bound)), (_sort_of(name), None)):
            against = "np.sort" if target is None else "normal"
            yield over(f"{label}, {name}: over {against}", found, name, other, target=target)


def _sort_of(kind: str) -> str:
    return f"np.sort, {kind}"


def _outlier(label: str, loss: str, n_pos: int, n: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n - n_pos)
    found = compare({"with": hinge(scores.with_outlier(sample), loss), "without": hinge(sample, loss)}, repeats)
    yield over(f"{label}: over no outlier", found, *found, target=at_most(2))


def _against_sort(label: str, loss: str, n_pos: int, n_neg: int, bound: float, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg)
    found = compare({"hinge": hinge(sample, loss), "np.sort": partial(np.sort, sample.scores)}, repeats)
    yield over(f"{label}: over np.sort of all", found, *found, target=at_most(bound))
