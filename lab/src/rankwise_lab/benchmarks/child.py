"""The other end of `processes`: run as `python -m rankwise_lab.benchmarks.child TASK …`, answers on standard output."""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import numpy as np

import rankwise as rw
from rankwise_lab.benchmarks.peak import growth_of
from rankwise_lab.benchmarks.plan import PAPER
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import THREADS


def sort_on_request(file: str) -> None:
    """Sort the array in `file` once per line read, and answer with the seconds it took."""
    values = np.load(file)
    for _ in sys.stdin:
        start = time.perf_counter()
        np.sort(values)
        print(time.perf_counter() - start, flush=True)


def first_call(n_pos: int, n_neg: int) -> None:
    """Seconds of the first call, all that it loads or compiles included."""
    sample = normal(n_pos, n_neg)
    start = time.perf_counter()
    rw.structured_hinge(sample.scores, sample.relevant, "ap", n_threads=THREADS)
    print(time.perf_counter() - start)


def memory(loss: str, n_pos: int, n_neg: int) -> None:
    """By how much one call raises peak memory, after a small call has loaded the kernels."""
    small = normal(*PAPER)
    rw.structured_hinge(small.scores, small.relevant, loss, n_threads=THREADS)
    medium = normal(n_pos, max(n_neg // 20, 1))  # large enough for every kernel, a twentieth of the memory
    rw.structured_hinge(medium.scores, medium.relevant, loss, n_threads=THREADS)
    del medium
    sample = normal(n_pos, n_neg)
    growth = growth_of(partial(rw.structured_hinge, sample.scores, sample.relevant, loss, n_threads=THREADS))
    print(json.dumps(None if growth is None else {"scores": sample.scores.nbytes, "growth": growth}))


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if task == "sort":
        sort_on_request(arguments[0])
    elif task == "first-call":
        first_call(int(arguments[0]), int(arguments[1]))
    elif task == "memory":
        memory(arguments[0], int(arguments[1]), int(arguments[2]))
    else:
        raise SystemExit(f"no such task: {task}")
