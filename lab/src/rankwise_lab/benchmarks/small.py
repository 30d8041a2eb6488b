"""Section 4: small queries: the published methods, many queries, the cost of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise import Loss
from rankwise_lab.benchmarks.plan import PAPER, Case, Row, Sizes, at_least, at_most, over
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import LogarithmicNDCG, hinge, task_of, zero_one_hinge
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import Task, compare

# Documents per query, and the share that is relevant.
_DOCUMENTS, _RELEVANT = 100, 0.1
# Documents of queries of unequal size.
_FEWEST, _MOST = 10, 1000


def small(sizes: Sizes) -> list[Case]:
    """Section 4: the paper's size against the published methods, then queries of a hundred samples."""
    return [
        Case("AP at the paper's size", partial(_published_ap, sizes.repeats)),
        Case("NDCG at the paper's size", partial(_published_ndcg, sizes.repeats)),
        Case("many queries", partial(_queries, sizes)),
    ]


def _published_ap(repeats: int) -> Iterator[Row]:
    sample = scores.normal(*PAPER)
    tasks: dict[str, Task] = {
        "hinge": hinge(sample, "ap"),
        "quicksort": hinge(sample, "ap", "quicksort"),
        "yue": hinge(sample, "ap", "yue"),
        "0-1": partial(zero_one_hinge, sample),
    }
    found = compare(tasks, repeats)
    yield over("AP: yue over ours", found, "yue", "hinge", target=at_least(25))
    yield over("AP: yue over quicksort (Algorithm 1)", found, "yue", "quicksort", target=at_least(10))
    yield over("AP: ours over NumPy's 0-1 hinge", found, "hinge", "0-1", target=at_most(5))
    methods = {"ours": ("ap", "auto"), "quicksort": ("ap", "quicksort"), "yue": ("ap", "yue")}
    yield _agreement("AP", sample, methods)


def _published_ndcg(repeats: int) -> Iterator[Row]:
    sample = scores.normal(*PAPER)
    untabulated = LogarithmicNDCG()
    tasks: dict[str, Task] = {
        "hinge": hinge(sample, "ndcg"),
        "chakrabarti": hinge(sample, "ndcg", "chakrabarti"),
        "as published": hinge(sample, untabulated, "chakrabarti"),
        "0-1": partial(zero_one_hinge, sample),
    }
    found = compare(tasks, repeats)
    yield over("NDCG: chakrabarti (tabulated) over ours", found, "chakrabarti", "hinge", target=at_least(20))
    yield over(
        "NDCG: chakrabarti (logarithms in the loop) over ours", found, "as published", "hinge", target=at_least(100)
    )
    yield over("NDCG: ours over NumPy's 0-1 hinge", found, "hinge", "0-1", target=at_most(5))
    methods = {"ours": ("ndcg", "auto"), "tabulated": ("ndcg", "chakrabarti")}
    yield _agreement("NDCG", sample, {**methods, "as published": (untabulated, "chakrabarti")})


def _agreement(loss: str, sample: Sample, methods: Mapping[str, tuple[str | Loss, str]]) -> Row:
    """Check that all methods find the same J, so that they solve the same problem."""
    values = {
        name: float(rw.structured_hinge(*sample, which, method=method).value)
        for name, (which, method) in methods.items()
    }
    spread = max(values.values()) - min(values.values())
    return Row(f"{loss}: largest difference in J", spread, unit="", target=at_most(1e-9), parts=values)


class Queries(NamedTuple):
    """Samples of many queries, one query after the other."""

    scores: NDArray[np.float32]
    relevant: NDArray[Any]
    qid: NDArray[np.int64]

    def task(self, what: str = "hinge", loss: str = "ap") -> Task:
        """Return a task: one whole call for all queries."""
        return task_of(what, Sample(self.scores, self.relevant), loss, qid=self.qid)


def equal_queries(n: int, seed: int = 0) -> Queries:
    """Draw this many queries of a hundred samples."""
    return _queries_of(np.random.default_rng(seed), np.full(n, _DOCUMENTS))


def ragged_queries(n_samples: int, seed: int = 0) -> Queries:
    """Draw queries of 10 to 1,000 samples, evenly over orders of magnitude, with about this many samples in all."""
    rng = np.random.default_rng(seed)
    mean = (_MOST - _FEWEST) / np.log(_MOST / _FEWEST)
    drawn = np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST), max(1, round(n_samples / mean))))
    return _queries_of(rng, drawn.round().astype(np.int64))


def _queries_of(rng: np.random.Generator, sizes: NDArray[np.int64]) -> Queries:
    """A tenth of each query, at random places, is relevant and scores higher by 1."""
    qid = np.repeat(np.arange(sizes.size), sizes)
    position = np.arange(qid.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    relevant = np.empty(qid.size, np.bool_)
    by_query = np.lexsort((rng.random(qid.size), qid))
    relevant[by_query] = position < np.repeat(np.ceil(_RELEVANT * sizes), sizes)
    values = rng.standard_normal(qid.size, dtype=np.float32) + relevant.astype(np.float32)
    return Queries(values, relevant, qid)


def _queries(sizes: Sizes) -> Iterator[Row]:
    """Many queries in one call, of one size and of many, in order and not; then one of them alone."""
    equal, ragged = equal_queries(sizes.queries), ragged_queries(sizes.queries * _DOCUMENTS)
    shuffle = np.random.default_rng(0).permutation(equal.qid.size)
    shuffled = Queries(equal.scores[shuffle], equal.relevant[shuffle], equal.qid[shuffle])
    one = Sample(equal.scores[:_DOCUMENTS], equal.relevant[:_DOCUMENTS])
    tasks: dict[str, Task] = {
        "equal": equal.task(),
        "np.sort": partial(np.sort, equal.scores.reshape(-1, _DOCUMENTS)),
        "ragged": ragged.task(),
        "shuffled": shuffled.task(),
        "np.argsort": lambda: np.argsort(shuffled.qid, kind="stable"),
        "one": hinge(one, "ap"),
    }
    found = compare(tasks, sizes.repeats)
    what = f"AP, {sizes.queries:,} queries of {_DOCUMENTS}"
    yield over(f"{what}: over np.sort of the rows", found, "equal", "np.sort", target=at_most(10))
    each = {name: found[name] / of.qid.size for name, of in (("ragged", ragged), ("equal", equal))}
    label = f"AP, queries of {_FEWEST} to {_MOST:,}: time per sample, over queries of {_DOCUMENTS}"
    yield over(label, each, *each, target=at_most(1))
    extra = max(found["shuffled"] - found["equal"], 0.0)
    parts = {name: found[name] for name in ("shuffled", "equal", "np.argsort")}
    label = f"{what}, shuffled: extra time over np.argsort(qid)"
    yield Row(label, extra / found["np.argsort"], target=at_most(1), parts=parts)
    within = found["equal"] / sizes.queries
    parts = {"one": found["one"], "within a batch": within}
    beyond = 1e6 * max(found["one"] - within, 0.0)
    yield Row(f"AP, one call on {_DOCUMENTS} scores minus its share in a batch", beyond, " µs", at_most(15), parts)
