"""A few threads of our own: Numba's parallel layer is safe neither under several Python threads nor after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Samples that a thread must have to itself to be worth waking.
WORTH_A_THREAD = 1 << 18

_pools: dict[int, ThreadPoolExecutor] = {}  # by number of threads; those of a parent process do not live in its child
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def run(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of function(*job): the last job in this thread, the others in threads kept for the next call."""
    if len(jobs) <= 1:
        return [function(*job) for job in jobs]
    size = len(jobs) - 1
    pool = _pools.get(size)
    if pool is None:
        pool = _pools.setdefault(size, ThreadPoolExecutor(size, thread_name_prefix="rankwise"))
    futures = [pool.submit(function, *job) for job in jobs[:-1]]
    last = function(*jobs[-1])
    return [*(future.result() for future in futures), last]


def worth(n_samples: int, n_threads: int) -> int:
    """How many of so many threads to use."""
    return max(1, min(n_threads, n_samples // WORTH_A_THREAD))
