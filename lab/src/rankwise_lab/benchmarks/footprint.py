"""Sections 5 and 9: the time a new process needs before its first answer, and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rankwise_lab.benchmarks import processes
from rankwise_lab.benchmarks.plan import PAPER, Case, Sizes
from rankwise_lab.benchmarks.report import Row, at_most

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
    """Section 5: importing, and the first call with and without compiled kernels on disk."""
    return [
        Case("import", partial(_import, sizes.start_ups)),
        Case("first call, small", partial(_first_call, "small", *PAPER, sizes)),
        Case("first call, large", partial(_first_call, "large", sizes.n_pos, sizes.small, sizes)),
    ]


def _import(times: int) -> Iterator[Row]:
    found = {"rankwise": float("inf"), "numpy": float("inf")}
    for _ in range(times):
        for module in found:
            found[module] = min(found[module], processes.import_seconds(module))
    what = "import rankwise, beyond import numpy"
    yield Row(what, max(found["rankwise"] - found["numpy"], 0.0), unit="s", target=at_most(0.5), parts=found)


def _first_call(size: str, n_pos: int, n_neg: int, sizes: Sizes) -> Iterator[Row]:
    """The first call of a process, which ends when the answer is there: on a new machine, and from then on."""
    what = f"first call, {size} query, P = {n_pos:,}, N = {n_neg:,}"
    first_call = partial(processes.first_call, n_pos, n_neg)
    warm, cold = f"{what}: kernels on disk", f"{what}: kernels compiled"
    if not sizes.cold:  # compiling takes longer than a quick run may: use the kernels already there
        yield Row(warm, first_call(None), unit="s", target=at_most(1.5))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Row(cold, first_call(Path(folder)), unit="s", target=at_most(10))
        seconds = min(first_call(Path(folder)) for _ in range(sizes.start_ups))
        yield Row(warm, seconds, unit="s", target=at_most(1.5))
