"""Measurements in processes of their own: memory, start-up, np.sort with other CPU features, losses of others.

`python -m rankwise_lab.benchmarks.processes TASK …` is such a process: it calls a function of `_TASKS`, which prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise_lab.benchmarks.plan import PAPER
from rankwise_lab.data.folder import CACHE_VARIABLE
from rankwise_lab.measuring.machine import avx512_features, growth_of, own_growth_of
from rankwise_lab.measuring.opponents import task_of
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import THREADS, Seconds, Task, compare

# Part of the error of torch's allocator when memory runs out; others raise MemoryError.
_REFUSED = "allocate memory"
# Batches that load all code before memory is measured.
_SMALL = {"scores": 400, "rare": 2002, "embeddings": 64}


def import_seconds(module: str) -> float:
    """Seconds that `import module` takes in a new process."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(_answer([sys.executable, "-c", code], {}))


def first_call(n_pos: int, n_neg: int, cache: Path | None) -> float:
    """Return seconds of the first `structured_hinge` in a new process; kernels are kept in `cache`, or as usual."""
    extra = {} if cache is None else {CACHE_VARIABLE: str(cache)}
    return float(_answer(child("first-call", n_pos, n_neg), extra))


def _first_call(n_pos: str, n_neg: str) -> None:
    """Print the seconds of the first call, including what it loads or compiles."""
    sample = normal(int(n_pos), int(n_neg))
    start = time.perf_counter()
    rw.structured_hinge(sample.scores, sample.relevant, "ap", n_threads=THREADS)
    print(time.perf_counter() - start)


def memory(loss: str, n_pos: int, n_neg: int, what: str = "hinge") -> dict[str, float] | None:
    """Return the bytes of the scores and those that one call adds to peak memory; None if they are not reported."""
    found: dict[str, float] | None = json.loads(_answer(child("memory", loss, n_pos, n_neg, what), {}))
    return found


def _memory(loss: str, n_pos: str, n_neg: str, what: str) -> None:
    """Print by how much one call raises peak memory, after a small call has loaded the kernels."""
    few = max(int(n_neg) // 20, 1)
    for size in (PAPER, (min(int(n_pos), few), few)):  # enough for every kernel, a twentieth of the memory
        task_of(what, normal(*size), loss)()
    sample = normal(int(n_pos), int(n_neg))
    growth = growth_of(task_of(what, sample, loss))
    print(json.dumps(None if growth is None else {"scores": sample.scores.nbytes, "growth": growth}))


def ranker_memory(rows: int) -> int | None:
    """Return the bytes that a fit of LinearRanker to a memory-mapped file adds; None if they are not reported."""
    found: int | None = json.loads(_answer(child("ranker-memory", rows), {}))
    return found


def _ranker_memory(rows: str) -> None:
    """Print the bytes that a fit to a memory-mapped file of float32 adds, after a small fit has loaded everything."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, n = Path(folder) / "X.npy", int(rows)
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, 100))
        for k in range(0, n, 100_000):
            X[k : k + 100_000] = rng.standard_normal((len(X[k : k + 100_000]), 100), dtype=np.float32)
        y = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(n) > 5.0
        X.flush()
        del X
        rw.LinearRanker(cv=2).fit(np.array(np.load(path, mmap_mode="r")[:2000]), y[:2000])
        mapped = np.load(path, mmap_mode="r")
        print(json.dumps(own_growth_of(lambda: rw.LinearRanker().fit(mapped, y))))


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


def _sort_on_request(file: str) -> None:
    """Sort the array in `file` once per line read, and answer with the seconds it took."""
    values = np.load(file)
    for _ in sys.stdin:
        start = time.perf_counter()
        np.sort(values)
        print(time.perf_counter() - start, flush=True)


def _beside_peer(name: str, size: str, repeats: str, limit: str) -> None:
    """Print extra peak memory and best seconds of forward and backward in torch: of ours, then of ours and the peer.

    Prints JSON line by line. If the peer dies, the first line remains. limit: bytes of address space, if the system
    keeps to it.
    """
    import torch

    torch.set_num_threads(THREADS)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    try:
        _measure_peer(name, int(size), int(repeats))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and _REFUSED not in str(error):
            raise
        print(json.dumps({"failed": "out of memory"}), flush=True)


def _measure_peer(name: str, size: int, repeats: int) -> None:
    from rankwise_lab.benchmarks.torch_peers import OURS, PEERS, batch_of, step

    peer = PEERS[name]
    _, make = OURS[peer.kind]
    small, large = batch_of(peer.kind, _SMALL[peer.kind]), batch_of(peer.kind, size)
    for objective in (make(), peer.make(small.truth.numel())):
        step(objective, small)()
    tasks = {"ours": step(make(), large), "peer": step(peer.make(size), large)}
    tasks["ours"]()
    growth = {}
    for who, timed in (("ours", {"ours": tasks["ours"]}), ("peer", tasks)):
        growth[who] = growth_of(tasks[who])
        print(json.dumps({"growth": growth, "seconds": compare(timed, repeats)}), flush=True)


def child(*arguments: object) -> list[str]:
    """The command of a process that does a task."""
    return [sys.executable, "-m", "rankwise_lab.benchmarks.processes", *map(str, arguments)]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment, with this package on the path."""
    source = str(Path(rw.__file__).resolve().parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **extra}


def _answer(command: list[str], extra: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment(extra), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise OSError(f"a measuring process failed ({' '.join(command[1:])[:60]}): {lines[-1]}")
    return done.stdout.strip().splitlines()[-1]


_TASKS: dict[str, Callable[..., None]] = {
    "sort": _sort_on_request,
    "first-call": _first_call,
    "memory": _memory,
    "peer": _beside_peer,
    "ranker-memory": _ranker_memory,
}

if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if task not in _TASKS:
        raise SystemExit(f"no such task: {task}")
    _TASKS[task](*arguments)
