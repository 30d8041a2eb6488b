"""The calls that are timed: the library's own, and those it is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.losses import Loss
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import THREADS, Task

__all__ = ["argsort", "hinge", "sort", "zero_one", "zero_one_hinge"]


def hinge(sample: Sample, loss: str | Loss, method: str = "auto", n_threads: int = THREADS) -> Task:
    """A whole call of `structured_hinge`: value, gradient and all."""

    def task() -> object:
        return rw.structured_hinge(sample.scores, sample.relevant, loss, method=method, n_threads=n_threads)

    return task


def sort(values: NDArray[Any]) -> Task:
    """np.sort of values that are already gathered, along the last axis."""

    def task() -> object:
        return np.sort(values)

    return task


def argsort(values: NDArray[Any]) -> Task:
    """np.argsort of values that are already gathered: what a sort needs to give a gradient."""

    def task() -> object:
        return np.argsort(values)

    return task


def zero_one_hinge(sample: Sample) -> tuple[float, NDArray[Any]]:
    """The hinge of the 0-1 loss and its gradient: mean of max(0, 1 − y·s)."""
    scores, relevant = sample
    y = np.where(relevant, np.float32(1), np.float32(-1))
    margin = 1 - y * scores
    active = margin > 0
    return float(margin[active].sum()) / scores.size, np.where(active, -y / scores.size, np.float32(0))


def zero_one(sample: Sample) -> Task:
    """A call of `zero_one_hinge`."""

    def task() -> object:
        return zero_one_hinge(sample)

    return task
