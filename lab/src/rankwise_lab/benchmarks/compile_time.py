"""`rankwise bench compile`: CPU seconds of first calls that compile their kernels, against another version's.

Each call is the only one of a new process with an empty cache folder. Without another version, it is held against Numba
compiling a plain quicksort, which tells how fast the machine is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_most, over
from rankwise_lab.benchmarks.processes import environment
from rankwise_lab.data.folder import CACHE_VARIABLE
from rankwise_lab.pieces import Plan

__all__ = ["BENCHMARK", "CALLS"]

_DATA = """
import numpy as np, warnings
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
scores, relevant, grades = rng.normal(size=2000), rng.random(2000) < 0.1, rng.integers(0, 4, 2000) * 1.0
X, qid = rng.normal(size=(300, 5)), np.repeat(np.arange(10), 30)
y, levels = X[:, 0] + rng.normal(size=300) > 1.0, np.clip(np.round(X[:, 0] + 1), 0, 3)
large, few = rng.normal(size=60_000), rng.random(60_000) < 0.001
import rankwise as rw
"""
_QUICKSORT = """
import numba, numpy as np

@numba.njit
def quicksort(values, left, right):
    while left < right:
        pivot, a, b = values[(left + right) // 2], left, right
        while a <= b:
            while values[a] < pivot:
                a += 1
            while values[b] > pivot:
                b -= 1
            if a <= b:
                values[a], values[b] = values[b], values[a]
                a, b = a + 1, b - 1
        quicksort(values, left, b)
        left = a

quicksort(np.random.default_rng(0).normal(size=1000), 0, 999)
"""
_TORCH = """
import torch
from rankwise.torch import APHingeLoss
APHingeLoss()(torch.tensor(scores, dtype=torch.float32, requires_grad=True), torch.tensor(relevant)).backward()
"""
_EVERYTHING = """
for dtype in (np.float32, np.float64):
    for s, r in ((scores, relevant), (large, few)):
        for loss in ("ap", "ndcg@10"):
            rw.structured_hinge(s.astype(dtype), r, loss)
        rw.smooth_loss(s.astype(dtype), r)
        rw.error_driven_loss(s.astype(dtype), r)
for method in ("quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti"):
    rw.structured_hinge(scores, relevant, method=method)
"""
# First calls, and the share of version 0.2.0's seconds that each may take at most.
CALLS: dict[str, tuple[str, float]] = {
    "structured_hinge": ("rw.structured_hinge(scores, relevant)", 1 / 3),
    "structured_hinge, grades": ("rw.structured_hinge(scores, grades, 'ndcg')", 0.6),
    "smooth_loss": ("rw.smooth_loss(scores, relevant)", 0.8),
    "RankSVM.fit": ("rw.RankSVM().fit(X, y)", 0.5),
    "LinearRanker.fit": ("rw.LinearRanker().fit(X, y, qid=qid)", 0.5),
    "LinearRanker.fit, grades": ("rw.LinearRanker('ndcg').fit(X, levels, qid=qid)", 0.5),
    "APHingeLoss": (_TORCH, 0.5),
}
CALLS["everything"] = ("\n".join([code for code, _ in CALLS.values()]) + _EVERYTHING, 0.5)


@dataclass(frozen=True)
class Sizes(Plan):
    """calls: which are measured, all if empty. against: folder of another version's sources. cold: nothing is kept."""

    calls: tuple[str, ...] = ()
    against: Path | None = None
    cold: bool = True

    @classmethod
    def quick(cls) -> Sizes:
        return cls(calls=("structured_hinge",), cold=False)


def _first_calls(sizes: Sizes) -> list[Case]:
    names = [name for name in sizes.calls or CALLS if name != "APHingeLoss" or find_spec("torch") is not None]
    return [Case(name, partial(_over_another, name, sizes)) for name in names]


def _over_another(name: str, sizes: Sizes) -> Iterator[Row]:
    code, share = CALLS[name]
    if find_spec("torch") is None:
        code = code.replace(_TORCH, "")
    found = {"ours": _seconds(_DATA + code, sizes.cold)}
    yield Row(f"{name}: CPU seconds of the first call", found["ours"], unit="s")
    if sizes.against is None:
        found["quicksort"] = _seconds(_QUICKSORT, sizes.cold)
        yield over(f"{name}: over Numba compiling a quicksort", found, "ours", "quicksort")
        return
    found["theirs"] = _seconds(_DATA + code, sizes.cold, sizes.against)
    yield over(f"{name}: over {sizes.against}", found, "ours", "theirs", target=at_most(round(share, 3)))


def _seconds(code: str, cold: bool, source: Path | None = None) -> float:
    """CPU seconds of a new process that runs the code, with its own or another version's sources."""
    code += "\nimport json, time; print(json.dumps(time.process_time()))"
    with tempfile.TemporaryDirectory() as folder:
        variables = environment({CACHE_VARIABLE: folder} if cold else {})
        if source is not None:
            variables["PYTHONPATH"] = str(source)
        done = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False, cwd=folder
        )
    if done.returncode != 0:
        raise OSError(f"a measuring process failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


BENCHMARK = Benchmark("compile", (Section(1, "First calls that compile their kernels", _first_calls),), Sizes)
