"""Sections 10 and 11: smooth and error-driven losses against the hinge, a sort and all pairs; grades and cut-offs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.benchmarks import processes
from rankwise_lab.benchmarks.plan import Case, Row, Sizes, at_least, at_most, over
from rankwise_lab.benchmarks.small import equal_queries
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import hinge, task_of
from rankwise_lab.measuring.timing import Task, compare

_SOFT = ("smooth", "error-driven")
# Of section 11: the highest grade, and metrics with a cut-off.
_LEVELS = 4
_CUT_OFFS = ("precision@100", "ap@100", "ndcg@100", "mrr@100")


def tight(sizes: Sizes) -> list[Case]:
    """Section 10: whole calls, value and gradient, on one thread, at widths of 1 and 0.01 deviations of the scores."""
    cases = [
        Case(f"N = {n_neg:,}, {dtype}", partial(_over_hinge_and_sort, sizes.n_pos, n_neg, dtype, sizes.repeats))
        for n_neg in (sizes.medium, sizes.large)
        for dtype in ("float32", "float64")
    ]
    pairs, few, many = (sizes.pairs_pos, sizes.pairs_neg), sizes.few_pos, sizes.many_pos
    more = (
        f"AP, smooth, P = {sizes.n_pos:,}, N up",
        {f"N = {n:,}": (sizes.n_pos, n) for n in (sizes.medium, sizes.large)},
    )
    denser = f"AP, smooth, N = {sizes.medium:,}, P up", {f"P = {n:,}": (n, sizes.medium) for n in (few, many)}
    return [
        *cases,
        Case("as many positives", partial(_equal, sizes.large, min(sizes.repeats, 3))),
        Case("many queries", partial(_queries, sizes)),
        Case("all pairs", partial(_over_all_pairs, *pairs, sizes.repeats)),
        Case("more negatives", partial(growth, "smooth", *more, 12, sizes.repeats)),
        Case("more positives", partial(growth, "smooth", *denser, 6, sizes.repeats)),
    ]


def _over_hinge_and_sort(n_pos: int, n_neg: int, dtype: str, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg, dtype=dtype)
    tasks: dict[str, Task] = {"hinge": hinge(sample, "ap"), "np.sort": partial(np.sort, sample.negatives)}
    tasks |= {f"{name}, width {w:g}": task_of(name, sample, "ap", width=w) for name in _SOFT for w in (1.0, 0.01)}
    found = compare(tasks, repeats)
    for name in list(tasks)[2:]:
        label = f"AP, {name}, N = {n_neg:,}, {dtype}"
        yield over(f"{label}: over hinge", found, name, "hinge", target=at_most(1.5))
        yield over(f"{label}: over np.sort", found, name, "np.sort", target=at_most(2))


def _equal(n: int, repeats: int) -> Iterator[Row]:
    """As many positives as negatives: time, and peak memory beyond the inputs, each in a process of its own."""
    sample = scores.normal(n, n)
    found = compare({name: task_of(name, sample, "ap") for name in ("hinge", *_SOFT)}, repeats)
    growth = {name: processes.memory("ap", n, n, name) for name in found}
    for name in _SOFT:
        label = f"AP, {name}, P = N = {n:,}, float32"
        yield over(f"{label}: over hinge", found, name, "hinge", target=at_most(3))
        what, bytes_of = f"{label}: peak extra memory over hinge", {k: v["growth"] for k, v in growth.items() if v}
        if name in bytes_of:
            yield over(what, bytes_of, name, "hinge", target=at_most(2))
        else:
            yield Row(what, None, target=at_most(2))


def _queries(sizes: Sizes) -> Iterator[Row]:
    given = equal_queries(sizes.queries)
    found = compare({name: given.task(name) for name in ("hinge", *_SOFT)}, sizes.repeats)
    for name in _SOFT:
        what = f"AP, {name}, {sizes.queries:,} queries: over hinge"
        yield over(what, found, name, "hinge", target=at_most(1.5))


def _over_all_pairs(n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg, dtype="float64")
    tasks: dict[str, Task] = {"all pairs": partial(all_pairs(), sample.scores, sample.relevant, 1.0)}
    found = compare(tasks | {"smooth": task_of("smooth", sample, "ap")}, repeats)
    what = f"AP, smooth, P = {n_pos:,}, N = {n_neg:,}: all pairs over ours"
    yield over(what, found, "all pairs", "smooth", target=at_least(50))


def growth(loss: str, what: str, of: dict[str, tuple[int, int]], bound: float, repeats: int) -> Iterator[Row]:
    """A call on more samples over one on fewer; of: both numbers of positives and of negatives, by name."""
    found = compare({name: task_of(loss, scores.normal(*size), "ap") for name, size in of.items()}, repeats)
    fewer, more = found
    yield over(what, found, more, fewer, target=at_most(bound))


@cache
def all_pairs() -> Callable[..., Any]:
    """The smooth loss of AP and its gradient by its formula, O(PN): compiled, several pairs at a time."""
    from numba import njit

    @njit(fastmath=True, nogil=True)
    def counts(pos: Any, neg: Any, width: float, above: Any, near: Any) -> None:
        for k in range(pos.size):
            total, within = 0.0, 0.0
            for j in range(neg.size):
                x = neg[j] - pos[k]
                total += min(max(x * (0.5 / width) + 0.5, 0.0), 1.0)
                within += 1.0 if abs(x) < width else 0.0
            above[k], near[k] = total, within

    @njit(fastmath=True, nogil=True)
    def slopes(pos: Any, neg: Any, width: float, weight: Any, out: Any) -> None:
        for k in range(pos.size):
            step = weight[k] * (0.5 / width)
            for j in range(neg.size):
                out[j] += step if abs(neg[j] - pos[k]) < width else 0.0

    def loss(s: Any, relevant: Any, width: float) -> tuple[float, Any]:
        order = np.flatnonzero(relevant)
        order = order[np.argsort(-s[order])]
        pos, neg, k = s[order], s[~relevant], np.arange(1, order.size + 1)
        above, near, out = np.empty(pos.size), np.empty(pos.size), np.zeros(neg.size)
        counts(pos, neg, width, above, near)
        weight = k / (k + above) ** 2 / k.size
        slopes(pos, neg, width, weight, out)
        gradient = np.empty(s.size)
        gradient[order], gradient[~relevant] = -weight * near * (0.5 / width), out
        return float(1.0 - np.mean(k / (k + above))), gradient

    return loss


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
    graded_queries = given._replace(relevant=_grades(given.relevant))
    tasks = {"binary": given.task("hinge", "ndcg"), "grades": graded_queries.task("hinge", "ndcg")}
    tasks |= {f"smooth {loss}": graded_queries.task("smooth", loss) for loss in ("ndcg", "ndcg@10")}
    found = compare(tasks, sizes.repeats)
    what = f"{sizes.queries:,} queries, grades 0 to {_LEVELS}"
    yield over(f"NDCG, hinge, {what}: over the binary hinge", found, "grades", "binary", target=at_most(5))
    for loss in ("ndcg", "ndcg@10"):
        label = f"{loss.upper()}, smooth, {what}: over the binary hinge"
        yield over(label, found, f"smooth {loss}", "binary", target=at_most(2))


def _grades_of_one(sizes: Sizes) -> Iterator[Row]:
    sample = scores.normal(sizes.n_pos, sizes.medium, dtype="float64")
    of_grades = sample._replace(relevant=_grades(sample.relevant))
    tasks = {"binary": hinge(sample, "ndcg"), "grades": hinge(of_grades, "ndcg")}
    found = compare(tasks | {"smooth": task_of("smooth", of_grades, "ndcg")}, sizes.repeats)
    for name in ("grades", "smooth"):
        label = f"NDCG, {'hinge' if name == 'grades' else name}, N = {sizes.medium:,}, grades 0 to {_LEVELS}"
        yield over(f"{label}: over the binary hinge", found, name, "binary", target=at_most(5))


def _cut_offs(sizes: Sizes) -> Iterator[Row]:
    sample = scores.normal(sizes.n_pos, sizes.medium, dtype="float64")
    found = compare({name: hinge(sample, name) for name in ("ap", *_CUT_OFFS)}, sizes.repeats)
    for name in _CUT_OFFS:
        label = f"{name.upper()}, hinge, P = {sizes.n_pos:,}, N = {sizes.medium:,}: over the hinge of AP"
        yield over(label, found, name, "ap", target=at_most(3))
