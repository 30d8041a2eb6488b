"""Section 8: how time grows with negatives, positives, threads and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import rankwise as rw
from rankwise.benchmarks.plan import Case, Sizes
from rankwise.benchmarks.report import Row, at_least, at_most
from rankwise.measuring import opponents, scores
from rankwise.measuring.machine import n_cores
from rankwise.measuring.timing import THREADS, Task, compare

__all__ = ["growth"]

# Of each query.
_DOCUMENTS, _RELEVANT = 100, 10


def growth(sizes: Sizes) -> list[Case]:
    """Section 8: more negatives, more positives, a second thread, many queries."""
    whats: dict[str, Callable[[Sizes], Iterator[Row]]] = {
        "more negatives": _negatives,
        "more positives": _positives,
        "two threads": _threads,
        "many queries": _queries,
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


def _threads(sizes: Sizes) -> Iterator[Row]:
    what = f"AP, N = {sizes.large:,}: one thread over two"
    if n_cores() < 2:
        yield Row(what, None, target=at_least(1.6))
        return
    sample = scores.normal(sizes.n_pos, sizes.large)
    found = compare({f"threads: {n}": opponents.hinge(sample, "ap", n_threads=n) for n in (1, 2)}, sizes.repeats)
    one, two = found.values()
    yield Row(what, one / two, target=at_least(1.6), parts=found)


def _queries(sizes: Sizes) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    shape = (sizes.queries, _DOCUMENTS)
    relevant = rng.permuted(np.broadcast_to(np.arange(_DOCUMENTS) < _RELEVANT, shape), axis=1)
    values = rng.standard_normal(shape, dtype=np.float32) + relevant.astype(np.float32)
    qid = np.repeat(np.arange(sizes.queries), _DOCUMENTS)
    shuffle = rng.permutation(qid.size)

    def call(order: slice | np.ndarray) -> Task:
        s, r, q = values.ravel()[order], relevant.ravel()[order], qid[order]
        return lambda: rw.structured_hinge(s, r, "ap", qid=q, n_threads=THREADS)

    shuffled = qid[shuffle]
    tasks: dict[str, Task] = {
        "grouped": call(slice(None)),
        "np.sort": opponents.sort(values),
        "shuffled": call(shuffle),
        "np.argsort": lambda: np.argsort(shuffled, kind="stable"),
    }
    found = compare(tasks, sizes.repeats)
    what = f"AP, {sizes.queries:,} queries of {_DOCUMENTS}"
    parts = {name: found[name] for name in ("grouped", "np.sort")}
    yield Row(f"{what}: over np.sort of the rows", found["grouped"] / found["np.sort"], target=at_most(15), parts=parts)
    extra = max(found["shuffled"] - found["grouped"], 0.0)
    parts = {name: found[name] for name in ("shuffled", "grouped", "np.argsort")}
    what = f"{what}, shuffled: extra time over np.argsort(qid)"
    yield Row(what, extra / found["np.argsort"], target=at_most(1), parts=parts)
