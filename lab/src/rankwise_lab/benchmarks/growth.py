"""Sections 2 and 8: how time falls with a second thread, and grows with negatives and positives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rankwise_lab.benchmarks.plan import Case, Sizes
from rankwise_lab.benchmarks.report import Row, at_least, at_most
from rankwise_lab.benchmarks.sorting import LOSSES
from rankwise_lab.measuring import opponents, scores
from rankwise_lab.measuring.machine import n_cores
from rankwise_lab.measuring.timing import compare

__all__ = ["growth", "threads"]


def threads(sizes: Sizes) -> list[Case]:
    """Section 2: never slower with two threads, and nearly twice as fast on large queries."""
    return [
        Case(f"{LOSSES[loss]}, N = {n_neg:,}", partial(_threads, loss, sizes.n_pos, n_neg, least, sizes.repeats))
        for n_neg, least in ((sizes.small, 1.0), (sizes.medium, 1.5), (sizes.large, 1.7))
        for loss in LOSSES
    ]


def _threads(loss: str, n_pos: int, n_neg: int, least: float, repeats: int) -> Iterator[Row]:
    what = f"{LOSSES[loss]}, N = {n_neg:,}: one thread over two"
    if n_cores() < 2:
        yield Row(what, None, target=at_least(least))
        return
    sample = scores.normal(n_pos, n_neg)
    found = compare({f"threads: {n}": opponents.hinge(sample, loss, n_threads=n) for n in (1, 2)}, repeats)
    one, two = found.values()
    yield Row(what, one / two, target=at_least(least), parts=found)


def growth(sizes: Sizes) -> list[Case]:
    """Section 8: more negatives, more positives."""
    whats: dict[str, Callable[[Sizes], Iterator[Row]]] = {
        "more negatives": _negatives,
        "more positives": _positives,
    }
    return [Case(label, partial(rows, sizes)) for label, rows in whats.items()]


def _negatives(sizes: Sizes) -> Iterator[Row]:
    tasks = {
        f"N = {n_neg:,}": opponents.hinge(scores.normal(sizes.n_pos, n_neg), "ap")
        for n_neg in (sizes.medium, sizes.large)
    }
    found = compare(tasks, sizes.repeats)
    fewer, more = found.values()
    what = f"AP, P = {sizes.n_pos:,}, N from {sizes.medium:,} to {sizes.large:,}"
    yield Row(what, more / fewer, target=at_most(12), parts=found)


def _positives(sizes: Sizes) -> Iterator[Row]:
    tasks = {
        f"P = {n_pos:,}": opponents.hinge(scores.normal(n_pos, sizes.medium), "ap")
        for n_pos in (sizes.few_pos, sizes.many_pos)
    }
    found = compare(tasks, sizes.repeats)
    fewer, more = found.values()
    what = f"AP, N = {sizes.medium:,}, P from {sizes.few_pos:,} to {sizes.many_pos:,}"
    yield Row(what, more / fewer, target=at_most(6), parts=found)
