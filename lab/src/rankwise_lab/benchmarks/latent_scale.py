"""`rankwise bench latent`: training on candidates that are read from a file, pass by pass."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rankwise import Bags, LatentRankSVM
from rankwise_lab import pieces
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_most
from rankwise_lab.measuring.machine import growth_of
from rankwise_lab.measuring.timing import Seconds, compare

# Rows written, read or multiplied at a time.
_CHUNK = 20_000
_BUFFER = 4 << 20
# Distance of a positive bag's one relevant window from the others, in their deviations along one direction.
_SHIFT = 5.0
_THREADS = (1, 2)


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """Windows, features, bags, how many of them are positive, and how often a pass is timed."""

    windows: int = 2_000_000
    features: int = 256
    bags: int = 5_000
    positives: int = 500
    repeats: int = 5

    @classmethod
    def quick(cls) -> Sizes:
        return cls(windows=40_000, features=64, bags=400, positives=40, repeats=2)


class _Problem(NamedTuple):
    path: Path
    bags: Bags
    y: NDArray[np.bool_]


def _problem(sizes: Sizes, folder: str) -> _Problem:
    """Write windows of noise to a file, with one shifted in each positive bag."""
    rng = np.random.default_rng(0)
    offsets = np.linspace(0, sizes.windows, sizes.bags + 1).astype(np.int64)
    y = np.zeros(sizes.bags, np.bool_)
    y[rng.choice(sizes.bags, sizes.positives, replace=False)] = True
    along = rng.standard_normal(sizes.features)
    along *= _SHIFT / np.linalg.norm(along)
    shifted = offsets[:-1][y] + rng.integers(0, np.diff(offsets)[y])
    path = Path(folder) / "windows.npy"
    file = np.lib.format.open_memmap(path, "w+", np.float32, (sizes.windows, sizes.features))
    for start in range(0, sizes.windows, _CHUNK):
        part = rng.standard_normal((min(_CHUNK, sizes.windows - start), sizes.features), np.float32)
        part[shifted[(shifted >= start) & (shifted < start + _CHUNK)] - start] += along.astype(np.float32)
        file[start : start + _CHUNK] = part
    file.flush()
    del file
    return _Problem(path, Bags(np.load(path, mmap_mode="r"), offsets), y)


def _read(path: Path) -> None:
    """Read a file from beginning to end."""
    buffer = bytearray(_BUFFER)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _multiply(block: NDArray[np.float32], coef: NDArray[np.float32], rows: int) -> None:
    """Multiply as many rows as the file has, from a block in memory."""
    for _ in range(rows // len(block)):
        block @ coef


def _rows(sizes: Sizes) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        problem = _problem(sizes, folder)
        floor = yield from _passes(sizes, problem)
        yield from _training(problem, floor)


def _passes(sizes: Sizes, problem: _Problem) -> Any:
    coef = np.random.default_rng(1).standard_normal(sizes.features)
    block = np.array(problem.bags.features[:_CHUNK])
    tasks: dict[str, Any] = {
        "read": partial(_read, problem.path),
        "multiply": partial(_multiply, block, coef.astype(np.float32), sizes.windows),
    }
    tasks |= {f"{n}": partial(problem.bags.scores, coef, n) for n in _THREADS}
    found = compare(tasks, sizes.repeats)
    floor = found["read"] + found["multiply"]
    size = problem.path.stat().st_size / 1e9
    for n in _THREADS:
        what = f"a pass over {size:.2g} GB, {n} thread{'s' * (n > 1)}: over reading once + multiplying in float32"
        yield Row(what, found[str(n)] / floor, target=at_most(2.0), parts=found)
    yield Row("  reading, GB per second", size / found["read"], "")
    yield Row("  a pass with 2 threads, GB per second", size / found["2"], "")
    return floor


def _training(problem: _Problem, floor: float) -> Iterator[Row]:
    model = LatentRankSVM("ap", C=1.0, n_threads=_THREADS[-1])
    started = time.perf_counter()
    grown = growth_of(lambda: model.fit(problem.bags, problem.y))
    seconds = Seconds(time.perf_counter() - started)
    timing = model.timing_
    memory = None if grown is None else grown / 1e6
    yield Row("a fit with AP: growth of peak memory, including pages of the file, MB", memory, "", at_most(1000.0))
    what = "  seconds per pass, including all work of the fit: over reading once + multiplying"
    yield Row(what, seconds / timing["passes"] / floor, target=at_most(2.0), parts=timing)
    yield Row("  share of the fit in inference", 100.0 * timing["inference"] / seconds, " %", at_most(5.0))
    yield Row("  passes over all windows", float(timing["passes"]), "")
    yield Row("  calls of inference", float(timing["calls"]), "")
    yield Row("  outer steps", float(model.n_iter_), "")
    yield Row("  relative duality gap of the last convex problem", model.gap_, "", at_most(1e-3))


def _cases(sizes: Sizes) -> list[Case]:
    what = f"{sizes.windows:,} windows × {sizes.features} in {sizes.bags:,} bags"
    return [Case(what, partial(_rows, sizes))]


BENCHMARK = Benchmark("latent", [Section(1, "Latent AP-SVM over a file: memory and time", _cases)], Sizes)
