"""A few threads of our own: Numba's parallel layer is safe neither under several Python threads nor after a fork."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of function(*job), each job but the last in a thread of its own; a thread lives for one call."""
    if len(jobs) <= 1:
        return [function(*job) for job in jobs]
    with ThreadPoolExecutor(len(jobs) - 1) as pool:
        futures = [pool.submit(function, *job) for job in jobs[:-1]]
        last = function(*jobs[-1])
        return [*(future.result() for future in futures), last]
