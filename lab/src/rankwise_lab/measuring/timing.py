"""Fair timing: everything warmed up, opponents alternated within each repeat, the best of several repeats."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

__all__ = ["THREADS", "Progress", "Seconds", "Task", "compare"]

# Threads every timed call is given, unless a row says otherwise. np.sort never uses more than one.
THREADS = 1
# A task is repeated until one measurement takes this long, so that the clock's own cost does not count.
_MEASUREMENT = 1e-3
_MOST_CALLS = 1000

Task = Callable[[], object]


class Seconds(float):
    """What a task returns if it was timed where it ran, as in another process."""


def compare(tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
    """Best seconds of each task over `repeats` rounds; in each round every task is measured once, in order.

    Alternating makes a slow phase of the machine fall on all opponents; the best leaves it out.
    """
    calls = {name: _warm_up(task) for name, task in tasks.items()}
    best = dict.fromkeys(tasks, math.inf)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, task in tasks.items():
                best[name] = min(best[name], _measure(task, calls[name]))
    finally:
        if collecting:
            gc.enable()
    return best


def _warm_up(task: Task) -> int:
    """Calls per measurement, after two calls that compile and fill caches; 0 for a task that times itself."""
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


class Progress:
    """A progress bar on a terminal; elsewhere one line per section."""

    _WIDTH = 24
    _CLEAR = "\r\x1b[K"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._drawing = self._stream.isatty()
        self._title, self._done, self.total = "", 0, 0

    def section(self, title: str, total: int) -> None:
        """Begin a section of `total` steps."""
        self._title, self._done, self.total = title, 0, total
        if not self._drawing:
            self._stream.write(f"{title}\n")
            self._stream.flush()

    def step(self, label: str) -> None:
        """Say what runs now; the step before it is done."""
        if self._drawing:
            full = self._WIDTH * self._done // max(self.total, 1)
            bar = "#" * full + "." * (self._WIDTH - full)
            self._stream.write(f"{self._CLEAR}[{bar}] {self._done}/{self.total} {label}"[:118])
            self._stream.flush()
        self._done += 1

    def clear(self) -> None:
        """Take the bar away, before something else is printed."""
        if self._drawing:
            self._stream.write(self._CLEAR)
            self._stream.flush()
