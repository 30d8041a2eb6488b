"""Sections 9 and 10: memory, and the time a new process needs before its first answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rankwise.benchmarks import processes
from rankwise.benchmarks.plan import Case, Sizes
from rankwise.benchmarks.report import Row, at_most

__all__ = ["memory", "start_up"]


def memory(sizes: Sizes) -> list[Case]:
    """Section 9: peak memory beyond the inputs, in units of the scores' own bytes."""
    return [Case(name, partial(_memory, loss, name, sizes)) for loss, name in (("ap", "AP"), ("ndcg", "NDCG"))]


def _memory(loss: str, name: str, sizes: Sizes) -> Iterator[Row]:
    found = processes.memory(loss, sizes.n_pos, sizes.large)
    what = f"{name}, N = {sizes.large:,}, float32: peak extra memory over the scores"
    if found is None:
        yield Row(what, None, target=at_most(3))
    else:
        yield Row(what, found["growth"] / found["scores"], target=at_most(3), parts=found)


def start_up(sizes: Sizes) -> list[Case]:
    """Section 10: importing, and the first call with and without compiled kernels on disk."""
    return [
        Case("import", partial(_import, sizes.start_ups)),
        Case("first call", partial(_first_call, sizes)),
    ]


def _import(times: int) -> Iterator[Row]:
    found = {"rankwise": float("inf"), "numpy": float("inf")}
    for _ in range(times):
        for module in found:
            found[module] = min(found[module], processes.import_seconds(module))
    what = "import rankwise, beyond import numpy"
    yield Row(what, max(found["rankwise"] - found["numpy"], 0.0), unit="s", target=at_most(0.5), parts=found)


def _first_call(sizes: Sizes) -> Iterator[Row]:
    warm, cold = "first call, kernels on disk", "first call, kernels compiled"
    if not sizes.cold:  # compiling takes longer than a quick run may: use the kernels already there
        yield Row(warm, processes.first_call(None), unit="s", target=at_most(1.5))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Row(cold, processes.first_call(Path(folder)), unit="s", target=at_most(20))
        seconds = min(processes.first_call(Path(folder)) for _ in range(sizes.start_ups))
        yield Row(warm, seconds, unit="s", target=at_most(1.5))
