"""The timed calls: the library's own, and the 0-1 hinge that it is compared with."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise import NDCG
from rankwise.metrics import LossLike
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import THREADS, Task

_CALLS = {"hinge": rw.structured_hinge, "smooth": rw.smooth_loss, "error-driven": rw.error_driven_loss}


def hinge(sample: Sample, loss: LossLike, method: str = "auto", n_threads: int = THREADS) -> Task:
    """Return a task: one whole call of `structured_hinge`, value and gradient."""
    return partial(rw.structured_hinge, *sample, loss, method=method, n_threads=n_threads)


def task_of(what: str, sample: Sample, loss: LossLike, **options: Any) -> Task:
    """Return a task: one whole call of the "hinge", "smooth" or "error-driven" loss, value and gradient."""
    call: Any = _CALLS[what]
    return partial(call, *sample, loss, n_threads=THREADS, **options)


def zero_one_hinge(sample: Sample) -> tuple[float, NDArray[Any]]:
    """Return the hinge of the 0-1 loss and its gradient: mean of max(0, 1 − y·s)."""
    scores, relevant = sample
    y = np.where(relevant, np.float32(1), np.float32(-1))
    margin = 1 - y * scores
    active = margin > 0
    return float(margin[active].sum()) / scores.size, np.where(active, -y / scores.size, np.float32(0))


class LogarithmicNDCG(NDCG):
    """NDCG whose logarithms are computed at every use, as in the published baselines."""

    table_size = 0
