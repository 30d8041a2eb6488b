"""The process that `processes` starts: `python -m rankwise_lab.benchmarks.child TASK …`; it prints its results."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

import rankwise as rw
from rankwise_lab.benchmarks.plan import PAPER
from rankwise_lab.measuring.machine import growth_of, own_growth_of
from rankwise_lab.measuring.opponents import task_of
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import THREADS, compare

# Part of the error of torch's allocator when memory runs out; others raise MemoryError.
_REFUSED = "allocate memory"
# Batches that load all code before memory is measured.
_SMALL = {"scores": 400, "rare": 2002, "embeddings": 64}


def sort_on_request(file: str) -> None:
    """Sort the array in `file` once per line read, and answer with the seconds it took."""
    values = np.load(file)
    for _ in sys.stdin:
        start = time.perf_counter()
        np.sort(values)
        print(time.perf_counter() - start, flush=True)


def first_call(n_pos: str, n_neg: str) -> None:
    """Print the seconds of the first call, including what it loads or compiles."""
    sample = normal(int(n_pos), int(n_neg))
    start = time.perf_counter()
    rw.structured_hinge(sample.scores, sample.relevant, "ap", n_threads=THREADS)
    print(time.perf_counter() - start)


def memory(loss: str, n_pos: str, n_neg: str, what: str) -> None:
    """Print by how much one call raises peak memory, after a small call has loaded the kernels."""
    few = max(int(n_neg) // 20, 1)
    for size in (PAPER, (min(int(n_pos), few), few)):  # enough for every kernel, a twentieth of the memory
        task_of(what, normal(*size), loss)()
    sample = normal(int(n_pos), int(n_neg))
    growth = growth_of(task_of(what, sample, loss))
    print(json.dumps(None if growth is None else {"scores": sample.scores.nbytes, "growth": growth}))


def limit_memory(n_bytes: int) -> None:
    """Limit the address space of this process, if the system allows it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def beside_peer(name: str, size: str, repeats: str, limit: str) -> None:
    """Print extra peak memory and best seconds of forward and backward in torch: of ours, then of ours and the peer.

    Prints JSON line by line. If the peer dies, the first line remains.
    """
    import torch

    torch.set_num_threads(THREADS)
    limit_memory(int(limit))
    try:
        _measure(name, int(size), int(repeats))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and _REFUSED not in str(error):
            raise
        print(json.dumps({"failed": "out of memory"}), flush=True)


def _measure(name: str, size: int, repeats: int) -> None:
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


def ranker_memory(rows: str) -> None:
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


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    known: dict[str, Callable[..., None]] = {
        "sort": sort_on_request,
        "first-call": first_call,
        "memory": memory,
        "peer": beside_peer,
        "ranker-memory": ranker_memory,
    }
    if task not in known:
        raise SystemExit(f"no such task: {task}")
    known[task](*arguments)
