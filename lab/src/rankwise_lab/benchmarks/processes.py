"""Measurements that need their own process: memory, start-up, and np.sort with other CPU features."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise
from rankwise_lab.data.folder import CACHE_VARIABLE
from rankwise_lab.measuring.machine import avx512_features
from rankwise_lab.measuring.timing import Seconds, Task

__all__ = ["child", "environment", "first_call", "import_seconds", "memory", "sort_without_avx512"]


def import_seconds(module: str) -> float:
    """Seconds that `import module` takes in a new process."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(_run([sys.executable, "-c", code], {}))


def first_call(n_pos: int, n_neg: int, cache: Path | None) -> float:
    """Return seconds of the first `structured_hinge` in a new process; kernels are kept in `cache`, or as usual."""
    extra = {} if cache is None else {CACHE_VARIABLE: str(cache)}
    return float(_run(child("first-call", n_pos, n_neg), extra))


def memory(loss: str, n_pos: int, n_neg: int, what: str = "hinge") -> dict[str, float] | None:
    """Return the bytes of the scores and those that one call adds to peak memory; None if they are not reported."""
    found: dict[str, float] | None = json.loads(_run(child("memory", loss, n_pos, n_neg, what), {}))
    return found


def ranker_memory(rows: int) -> int | None:
    """Return the bytes that a fit of LinearRanker to a memory-mapped file adds; None if they are not reported."""
    found: int | None = json.loads(_run(child("ranker-memory", rows), {}))
    return found


@contextmanager
def sort_without_avx512(values: NDArray[Any]) -> Iterator[Task | None]:
    """Return a task that sorts `values` in a process without AVX-512; None if NumPy does not use it anyway."""
    features = avx512_features()
    if not features:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.npy"
        np.save(file, values)
        variables = environment({"NPY_DISABLE_CPU_FEATURES": " ".join(features)})
        pipe = subprocess.PIPE
        # In its own session it does not get Ctrl-C; this process ends it.
        with subprocess.Popen(
            child("sort", file), env=variables, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        ) as process:
            try:
                yield partial(_ask, process)
            finally:
                process.kill()


def _ask(process: subprocess.Popen[str]) -> Seconds:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write("sort\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise OSError("the process that sorts without AVX-512 ended early")
    return Seconds(answer)


def child(*arguments: object) -> list[str]:
    """The command of a task of `benchmarks.child`."""
    return [sys.executable, "-m", "rankwise_lab.benchmarks.child", *map(str, arguments)]


def _run(command: list[str], extra: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment(extra), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise OSError(f"a measuring process failed ({' '.join(command[1:])[:60]}): {lines[-1]}")
    return done.stdout.strip().splitlines()[-1]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment, with this package on the path."""
    source = str(Path(rankwise.__file__).resolve().parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **extra}
