"""One peer beside ours in a process of its own: run as `python -m rankwise_lab.benchmarks.torch_child PEER SIZE …`.

Answers line by line, as JSON: first ours, then both. A peer that dies leaves the first line behind.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import torch

from rankwise_lab.benchmarks.peak import growth_of
from rankwise_lab.benchmarks.torch_peers import OURS, PEERS, batch_of, step
from rankwise_lab.measuring.timing import THREADS, compare

__all__ = ["OUT_OF_MEMORY", "measure"]

OUT_OF_MEMORY = "out of memory"
# What the allocator of torch says, besides MemoryError, if there is no more.
_REFUSED = "allocate memory"
# Batches that load all code before memory is measured.
_SMALL = {"scores": 400, "embeddings": 64}


def limit_memory(n_bytes: int) -> None:
    """Let this process have no more address space than this, where the system can see to it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def measure(name: str, size: int, repeats: int) -> None:
    """Peak extra memory and best seconds of forward and backward: of ours, then of the peer beside ours."""
    peer = PEERS[name]
    _, make = OURS[peer.kind]
    small, large = batch_of(peer.kind, _SMALL[peer.kind]), batch_of(peer.kind, size)
    for objective in (make(), peer.make(small.truth.numel())):
        step(objective, small)()
    tasks = {"ours": step(make(), large), "peer": step(peer.make(size), large)}
    tasks["ours"]()
    growth = {"ours": growth_of(tasks["ours"])}
    _say(growth, compare({"ours": tasks["ours"]}, repeats))
    growth["peer"] = growth_of(tasks["peer"])
    _say(growth, compare(tasks, repeats))


def _say(growth: dict[str, int | None], seconds: dict[str, float]) -> None:
    print(json.dumps({"growth": growth, "seconds": seconds}), flush=True)


def _main(name: str, size: str, repeats: str, limit: str) -> None:
    torch.set_num_threads(THREADS)
    limit_memory(int(limit))
    try:
        measure(name, int(size), int(repeats))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and _REFUSED not in str(error):
            raise
        print(json.dumps({"failed": OUT_OF_MEMORY}), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
