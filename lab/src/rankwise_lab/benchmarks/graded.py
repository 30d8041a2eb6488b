"""Section 11: what grades and cut-offs cost, against binary calls on the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise_lab.benchmarks.plan import Case, Row, Sizes, at_most, over
from rankwise_lab.benchmarks.small import equal_queries
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import hinge
from rankwise_lab.measuring.timing import THREADS, Task, compare

__all__ = ["graded"]

_LEVELS = 4
_CUT_OFFS = ("precision@100", "ap@100", "ndcg@100", "mrr@100")


def graded(sizes: Sizes) -> list[Case]:
    """Section 11: whole calls, value and gradient, on one thread."""
    return [
        Case("grades, many queries", partial(_grades_of_queries, sizes)),
        Case("grades, one query", partial(_grades_of_one, sizes)),
        Case("cut-offs", partial(_cut_offs, sizes)),
    ]


def _grades(relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Grades 1 to 4 for what is relevant, 0 for the rest."""
    return np.where(relevant, np.random.default_rng(0).integers(1, _LEVELS + 1, relevant.size), 0).astype(np.float64)


def _grades_of_queries(sizes: Sizes) -> Iterator[Row]:
    given = equal_queries(sizes.queries)
    grades = _grades(given.relevant)
    tasks: dict[str, Task] = {
        name: partial(rw.structured_hinge, given.scores, truth, "ndcg", qid=given.qid)
        for name, truth in (("binary", given.relevant), ("grades", grades))
    }
    for loss in ("ndcg", "ndcg@10"):
        tasks[f"smooth {loss}"] = partial(rw.smooth_loss, given.scores, grades, loss, qid=given.qid)
    found = compare(tasks, sizes.repeats)
    what = f"{sizes.queries:,} queries, grades 0 to {_LEVELS}"
    yield over(f"NDCG, hinge, {what}: over the binary hinge", found, "grades", "binary", target=at_most(5))
    for loss in ("ndcg", "ndcg@10"):
        label = f"{loss.upper()}, smooth, {what}: over the binary hinge"
        yield over(label, found, f"smooth {loss}", "binary", target=at_most(2))


def _grades_of_one(sizes: Sizes) -> Iterator[Row]:
    sample = scores.normal(sizes.n_pos, sizes.medium, dtype="float64")
    grades = _grades(sample.relevant)
    tasks: dict[str, Task] = {
        "binary": hinge(sample, "ndcg"),
        "grades": partial(rw.structured_hinge, sample.scores, grades, "ndcg", n_threads=THREADS),
        "smooth": partial(rw.smooth_loss, sample.scores, grades, "ndcg", n_threads=THREADS),
    }
    found = compare(tasks, sizes.repeats)
    for name in ("grades", "smooth"):
        label = f"NDCG, {'hinge' if name == 'grades' else name}, N = {sizes.medium:,}, grades 0 to {_LEVELS}"
        yield over(f"{label}: over the binary hinge", found, name, "binary", target=at_most(5))


def _cut_offs(sizes: Sizes) -> Iterator[Row]:
    sample = scores.normal(sizes.n_pos, sizes.medium, dtype="float64")
    tasks: dict[str, Task] = {name: hinge(sample, name) for name in ("ap", *_CUT_OFFS)}
    found = compare(tasks, sizes.repeats)
    for name in _CUT_OFFS:
        label = f"{name.upper()}, hinge, P = {sizes.n_pos:,}, N = {sizes.medium:,}: over the hinge of AP"
        yield over(label, found, name, "ap", target=at_most(3))
