"""`rankwise bench trees`: what our objectives cost beside the trees that LightGBM grows for them.

Their quality is in `rankwise bench quality --tasks mq2008`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.boosting import SURROGATES, objective
from rankwise_lab import pieces
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_most, over
from rankwise_lab.measuring.timing import THREADS, Task, compare

_FEATURES, _LEAVES, _FIRST = 50, 31, 10
_SHARE = 0.05
# Labels by name: the lowest value of a normal variable for grades 1, 2, …
_LABELS = {"0.2 % relevant": (3.3,), "1 % relevant": (2.5,), "grades 0 to 4": (1.0, 1.5, 2.0, 2.5)}
_LOSSES = ("ap", "ndcg", "ndcg@30")


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """Rows of the one query, and how often everything is timed."""

    rows: int = 10**6
    repeats: int = 5

    @classmethod
    def quick(cls) -> Sizes:
        return cls(rows=3000, repeats=1)


def _costs(sizes: Sizes) -> list[Case]:
    """Section 1: one query, whole calls of an objective, against growing one tree for given gradients."""
    return [Case(name, partial(_over_tree, name, sizes)) for name in _LABELS]


def _over_tree(name: str, sizes: Sizes) -> Iterator[Row]:
    if find_spec("lightgbm") is None:
        yield Row(f"{name}: LightGBM is not installed", None, target=at_most(_SHARE))
        return
    features, labels = _made_up(sizes.rows, _LABELS[name])
    booster, data = _begun(features, labels)
    scores = booster.predict(features, num_threads=THREADS)
    given = objective("ap", "error-driven")(scores, data)
    tasks: dict[str, Task] = {"tree": lambda: booster.update(fobj=lambda scores, data: given)}
    for loss in _LOSSES:
        for surrogate in SURROGATES:
            tasks[f"{loss}, {surrogate}"] = partial(objective(loss, surrogate, n_threads=THREADS), scores, data)
    found = compare(tasks, sizes.repeats)
    for task in list(tasks)[1:]:
        what = f"{name}, {sizes.rows:,} rows, {task}: over LightGBM's tree"
        yield over(what, found, task, "tree", target=at_most(_SHARE))


def _made_up(rows: int, least: tuple[float, ...]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Make features, and labels that depend on three of them and on noise."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((rows, _FEATURES), np.float32)
    told = (features[:, 0] + features[:, 1] * features[:, 2] + rng.standard_normal(rows)) / np.sqrt(3.0)
    return features, np.searchsorted(least, told).astype(np.float64)


def _begun(features: NDArray[Any], labels: NDArray[Any]) -> tuple[Any, Any]:
    """Return a model of a few trees, for scores as in the middle of a training, and its data set, one query."""
    import lightgbm

    data = lightgbm.Dataset(features, labels, group=[labels.size], free_raw_data=False)
    settings = {"objective": "none", "num_leaves": _LEAVES, "num_threads": THREADS, "verbose": -1, "seed": 0}
    booster, ours = lightgbm.Booster(settings, data), objective("ap", "error-driven")
    for _ in range(_FIRST):
        booster.update(fobj=ours)
    return booster, data


_SECTIONS = [Section(1, "One query of many rows: objectives against LightGBM's tree", _costs)]
BENCHMARK = Benchmark("trees", _SECTIONS, Sizes)
