"""Fair timing: after a warm-up, opponents alternate within each repeat, and the best of several repeats counts."""

from __future__ import annotations

import gc
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

# Threads of every timed call, unless a row says otherwise. np.sort never uses more than one.
THREADS = 1
# A task is repeated until one measurement takes this long, so that the cost of the clock does not matter.
_MEASUREMENT = 1e-3
_MOST_CALLS = 1000

Task = Callable[[], object]
_K = TypeVar("_K")
_F = TypeVar("_F")


class Seconds(float):
    """What a task returns if it times itself, for example in another process."""


def compare(tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
    """Return the best seconds of each task over `repeats` rounds; each round measures every task once, in order.

    Alternating spreads a slow phase of the machine over all opponents; taking the best leaves it out.
    """
    calls = {name: _warm_up(task) for name, task in tasks.items()}
    best = dict.fromkeys(tasks, math.inf)
    with no_collection():
        for _ in range(repeats):
            for name, task in tasks.items():
                best[name] = min(best[name], _measure(task, calls[name]))
    return best


def fastest(fits: Mapping[_K, Callable[[], _F]], repeats: int, seconds: Callable[[_F], float]) -> dict[_K, _F]:
    """Return the fastest fit of each kind, by its own timing, over rounds in which all kinds take turns."""
    with no_collection():
        rounds = [{name: fit() for name, fit in fits.items()} for _ in range(repeats)]
    return {name: min((found[name] for found in rounds), key=seconds) for name in fits}


@contextmanager
def no_collection() -> Iterator[None]:
    """Turn garbage collection off while something is timed."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def unconverged() -> Iterator[None]:
    """Silence warnings about fits that miss their gap, where gaps are among the results."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _warm_up(task: Task) -> int:
    """Return the calls per measurement, after two that compile and fill caches; 0 for a task that times itself."""
    if isinstance(task(), Seconds):
        return 0
    start = time.perf_counter()
    task()
    elapsed = time.perf_counter() - start
    return min(_MOST_CALLS, max(1, math.ceil(_MEASUREMENT / max(elapsed, 1e-9))))


def _measure(task: Task, calls: int) -> float:
    if calls == 0:
        own = task()
        assert isinstance(own, Seconds)
        return float(own)
    start = time.perf_counter()
    for _ in range(calls):
        task()
    return (time.perf_counter() - start) / calls
