"""`rankwise bench dask`: what a step exchanges, what it costs, how it scales with workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise import RankSVM
from rankwise_lab import pieces
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_least

_POSITIVES = 1000
# Steps of a fit. The first, at 0, is unlike the others: all scores are equal.
_STEPS = 6
_C = 10.0


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """Numbers of samples to count bytes with, at few features; samples and features to time; partitions."""

    counted: tuple[int, ...] = (10**5, 10**6, 10**7)
    rows: int = 10**7
    features: int = 50
    partitions: int = 4

    @classmethod
    def quick(cls) -> Sizes:
        return cls(counted=(20_000, 200_000), rows=200_000, features=10, partitions=2)


class _Fit(NamedTuple):
    """Per step after the first: seconds, bytes sent to the workers, bytes received, and rounds."""

    seconds: float
    sent: float
    received: float
    rounds: float


def _block(seed: int, rows: int, features: int, bar: float) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Make noise; the samples with the highest sums of a feature and noise are relevant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), np.float32)
    return X, X[:, 0] + rng.standard_normal(rows, np.float32) > bar


def _bar(rows: int) -> float:
    """Return the threshold above which a thousand samples are relevant."""
    return -(2**0.5) * NormalDist().inv_cdf(_POSITIVES / rows)


def _model(kind: Any, **params: Any) -> Any:
    return kind("ap", C=_C, tol=1e-9, max_iter=_STEPS, fit_intercept=False, **params)


def _seconds(model: Any) -> float:
    """A step, but for the first."""
    seconds: NDArray[np.float64] = model.history_["seconds"]
    return float(seconds[-1] - seconds[0]) / (seconds.size - 1)


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    how = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**how, memory_limit=0) as cluster, Client(cluster) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield client


def _fit(rows: int, features: int, partitions: int, client: Any) -> _Fit:
    """Fit to samples that are generated in the workers."""
    import dask.array as da
    from dask import delayed

    from rankwise.dask import DaskRankSVM

    sizes = [rows * (k + 1) // partitions - rows * k // partitions for k in range(partitions)]
    blocks = [delayed(_block, nout=2)(k, size, features, _bar(rows)) for k, size in enumerate(sizes)]
    X = da.concatenate([da.from_delayed(b[0], (n, features), np.float32) for b, n in zip(blocks, sizes, strict=True)])
    y = da.concatenate([da.from_delayed(b[1], (n,), np.bool_) for b, n in zip(blocks, sizes, strict=True)])
    model = _model(DaskRankSVM, client=client).fit(X, y)
    steps, exchanged = model.timing_["calls"], model.exchanged_
    return _Fit(_seconds(model), *(exchanged[name] / steps for name in ("sent", "received", "rounds")))


def _fit_here(rows: int, features: int, partitions: int) -> float:
    """Return the seconds per step of the same fit in this process."""
    sizes = [rows * (k + 1) // partitions - rows * k // partitions for k in range(partitions)]
    X, y = np.empty((rows, features), np.float32), np.empty(rows, np.bool_)
    for k, stop in enumerate(np.cumsum(sizes)):
        X[stop - sizes[k] : stop], y[stop - sizes[k] : stop] = _block(k, sizes[k], features, _bar(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return _seconds(_model(RankSVM, n_threads=2).fit(X, y))


def _bytes(sizes: Sizes) -> Iterator[Row]:
    with _cluster(2) as client:
        _fit(20_000, 10, sizes.partitions, client)  # kernels are loaded
        for n in sizes.counted:
            found = _fit(n, 10, sizes.partitions, client)
            parts = found._asdict()
            yield Row(f"{n:,} samples: kB sent per step", found.sent / 1e3, "", parts=parts)
            yield Row(f"  kB received per step, from {sizes.partitions} partitions", found.received / 1e3, "")
            yield Row("  rounds per step", found.rounds, "")


def _times(sizes: Sizes) -> Iterator[Row]:
    found = {}
    for workers in (1, 2):
        with _cluster(workers) as client:
            _fit(20_000, 10, sizes.partitions, client)
            found[workers] = _fit(sizes.rows, sizes.features, sizes.partitions, client).seconds
    here = _fit_here(sizes.rows, sizes.features, sizes.partitions)
    parts = {"1 worker": found[1], "2 workers": found[2], "this process": here}
    for name, seconds in parts.items():
        yield Row(f"{name}: seconds per step", seconds, "")
    yield Row("  2 workers: million samples per second", sizes.rows / found[2] / 1e6, "")
    yield Row("1 worker over this process with two threads", found[1] / here, parts=parts)
    yield Row("2 workers over this process with two threads", found[2] / here, parts=parts)
    yield Row("1 worker over 2 workers", found[1] / found[2], target=at_least(1.6), parts=parts)


def _counted(sizes: Sizes) -> list[Case]:
    return [Case(f"{len(sizes.counted)} sizes, {_POSITIVES} positives", partial(_bytes, sizes))]


def _timed(sizes: Sizes) -> list[Case]:
    return [Case(f"{sizes.rows:,} × {sizes.features} float32", partial(_times, sizes))]


BENCHMARK = Benchmark(
    "dask",
    [
        Section(1, "What a step exchanges, by the number of samples", _counted),
        Section(2, "A step on one and on two workers, and in one process", _timed),
    ],
    Sizes,
)
