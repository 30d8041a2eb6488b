"""Every experiment of the report on data with which it takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action, detection, scaling
from rankwise_lab.reproduce.action_data import ActionData

CLASSES = ("emu", "sea cow", "yak")
ACTION = action.Plan(Cs=3, ends=(0.5, 2.5), ends_zero_one=(-0.5, 1.5), folds=3, draws=30)
SCALING = scaling.Plan(training_points=2, training_repeats=1, points=3, repeats=1, rounds=2, largest=4000, pairs=2e5)
DETECTION = detection.Plan(Cs=(1.0, 100.0), least=4)
Say = Callable[[str], None]


def cifar_plan() -> Any:
    from rankwise_lab.reproduce.cifar import Plan

    few = {"pretrain_epochs": 1, "warmup_epochs": 1, "max_passes": 1, "max_epochs": 1, "timed_rounds": 1}
    return Plan(width=2, n_train=18, n_val=6, seeds=(3,), block_size=9, timed_blocks=(9,), **few)


def draw_samples(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Samples that may be of several classes, each told, but not well, by a feature."""
    Y = rng.random((n, len(CLASSES))) < 0.25
    X = rng.normal(size=(n, 7))
    X[:, : len(CLASSES)] += Y
    return X.astype(np.float32), Y


_RNG = np.random.default_rng(7)
DATA = ActionData(*draw_samples(_RNG, 150), *draw_samples(_RNG, 120), CLASSES, "noise", True, "abc")


class Case(NamedTuple):
    """An experiment: how its part is made in a folder, its plan, and another; before: whose pieces it needs."""

    make: Callable[[Path, Any, Say], Part]
    plan: Any
    other: Any
    before: str | None = None


def put(found: Any, path: Sequence[Any], value: Any) -> None:
    """Change one number of a document."""
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = value
