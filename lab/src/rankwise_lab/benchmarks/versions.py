"""`rankwise bench versions`: calls of these sources against those of another version, in processes that take turns.

Each version has a process of its own, which prepares a call, warms it up, and times it whenever it is asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, Target, at_most, over
from rankwise_lab.benchmarks.processes import environment
from rankwise_lab.measuring.timing import THREADS
from rankwise_lab.pieces import Plan

__all__ = ["BENCHMARK", "CALLS"]

# What the process of a version does: it prepares a call, and answers with its seconds, again and again.
_PROCESS = """
import json, math, sys, time, warnings
answers, sys.stdout = sys.stdout, sys.stderr
warnings.simplefilter("ignore")
def timed(task, calls):
    start = time.perf_counter()
    for _ in range(calls):
        task()
    return (time.perf_counter() - start) / calls
if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "setup" in asked:
            names = {}
            exec(asked["setup"], names)
            task = eval("lambda: " + asked["call"], names)
            task()
            calls = min(max(math.ceil(asked["seconds"] / max(timed(task, 1), 1e-9)), 1), 100_000)
        print(timed(task, calls), file=answers, flush=True)
"""
_SCORES = """
import numpy as np, rankwise as rw
rng = np.random.default_rng(0)
def query(n_pos, n, dtype=np.float64):
    relevant = np.zeros(n, bool)
    relevant[rng.permutation(n)[:n_pos]] = True
    return (rng.normal(size=n) + relevant).astype(dtype), relevant
"""
_MANY = (
    _SCORES
    + "s, y = query({0} * {1} // 10, {0} * {1}); q = np.repeat(np.arange({0}), {1}); g = rng.integers(0, 4, s.size)"
)
_TORCH = (
    _SCORES
    + """
import torch, rankwise.torch as rt
torch.set_num_threads(1)
def step(loss, *given, **named):
    leaf = given[0].requires_grad_()
    leaf.grad = None
    loss(leaf, *given[1:], **named).backward()
def tensors(n_pos, n, dtype=np.float32):
    s, y = query(n_pos, n, dtype)
    return torch.tensor(s), torch.tensor(y)
"""
)
_FITS = """
import numpy as np, rankwise as rw, scipy.sparse
rng = np.random.default_rng(0)
def data(n, d, rate=0.1):
    X = rng.normal(size=(n, d))
    noise = 2.0 * rng.normal(size=n)
    signal = X[:, : min(d, 5)].sum(axis=1) + noise
    return X, signal > np.quantile(signal, 1.0 - rate)
"""
_DASK = (
    _FITS
    + """
import dask, dask.array as da
from distributed import Client, LocalCluster
import rankwise.dask as rd
client = Client(LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None))
"""
)


def _hinge(loss: str) -> str:
    return f"rw.structured_hinge(s, y, {loss!r})"


# Section → name of a call → what it needs, and the call.
CALLS: dict[str, dict[str, tuple[str, str]]] = {
    "inference": {
        "AP, 10 of 100 scores": (_SCORES + "s, y = query(10, 100)", _hinge("ap")),
        "AP, 200 of 2,000": (_SCORES + "s, y = query(200, 2000)", _hinge("ap")),
        "AP, 200 of 2,000 in float32": (_SCORES + "s, y = query(200, 2000, np.float32)", _hinge("ap")),
        "AP, 10^3 of 10^5": (_SCORES + "s, y = query(1000, 10**5)", _hinge("ap")),
        "AP, 10^3 of 10^6": (_SCORES + "s, y = query(1000, 10**6)", _hinge("ap")),
        "NDCG, 10^3 of 10^6": (_SCORES + "s, y = query(1000, 10**6)", _hinge("ndcg")),
        "NDCG@10, 10^3 of 10^6": (_SCORES + "s, y = query(1000, 10**6)", _hinge("ndcg@10")),
        "AP, 10^3 of 10^6 in float32": (_SCORES + "s, y = query(1000, 10**6, np.float32)", _hinge("ap")),
        "AP, 10^5 of 3·10^5": (_SCORES + "s, y = query(10**5, 3 * 10**5)", _hinge("ap")),
        "AP, 1,000 queries of 100": (_MANY.format(1000, 100), "rw.structured_hinge(s, y, qid=q)"),
        "AP, 100 queries of 10^4": (_MANY.format(100, 10**4), "rw.structured_hinge(s, y, qid=q)"),
        "graded NDCG, 1,000 queries of 100": (_MANY.format(1000, 100), "rw.structured_hinge(s, g, 'ndcg', qid=q)"),
        "smooth AP, 200 of 2,000": (_SCORES + "s, y = query(200, 2000)", "rw.smooth_loss(s, y)"),
        "smooth AP, 10^3 of 10^6": (_SCORES + "s, y = query(1000, 10**6)", "rw.smooth_loss(s, y)"),
        "smooth graded NDCG, 1,000 queries of 100": (
            _MANY.format(1000, 100),
            "rw.smooth_loss(s, g, 'ndcg', qid=q)",
        ),
        "error-driven AP, 200 of 2,000": (_SCORES + "s, y = query(200, 2000)", "rw.error_driven_loss(s, y)"),
        "error-driven AP, 10^3 of 10^6": (_SCORES + "s, y = query(1000, 10**6)", "rw.error_driven_loss(s, y)"),
        "Algorithm 1, 10^3 of 10^5": (
            _SCORES + "s, y = query(1000, 10**5)",
            "rw.structured_hinge(s, y, method='quicksort')",
        ),
        "Δ of AP, 10^3 of 10^5": (_SCORES + "s, y = query(1000, 10**5)", "rw.ranking_loss(s, y)"),
        "metric NDCG@10, 1,000 queries of 100": (_MANY.format(1000, 100), "rw.metrics.ndcg(s, g, k=10, qid=q)"),
    },
    "torch": {
        "APHingeLoss, 26 of 256": (_TORCH + "s, y = tensors(26, 256); f = rt.APHingeLoss()", "step(f, s, y)"),
        "APHingeLoss, 10^3 of 10^6": (_TORCH + "s, y = tensors(1000, 10**6); f = rt.APHingeLoss()", "step(f, s, y)"),
        "APHingeLoss, 64 rows of 10^4": (
            _TORCH + "s, y = (t.reshape(64, -1) for t in tensors(6400, 64 * 10**4)); f = rt.APHingeLoss(dim=1)",
            "step(f, s, y)",
        ),
        "ErrorDrivenLoss, 200 of 10^4": (
            _TORCH + "s, y = tensors(200, 10**4); f = rt.ErrorDrivenLoss()",
            "step(f, s, y)",
        ),
        "SmoothRankLoss, 200 of 10^4": (
            _TORCH + "s, y = tensors(200, 10**4); f = rt.SmoothRankLoss()",
            "step(f, s, y)",
        ),
        "DirectLoss, 200 of 10^4": (_TORCH + "s, y = tensors(200, 10**4); f = rt.DirectLoss()", "step(f, s, y)"),
        "RankSortLoss, 230 of 56,448": (
            _TORCH
            + "s, y = tensors(230, 56448); t = y * torch.rand(y.shape); f = lambda *a: sum(rt.RankSortLoss()(*a))",
            "step(f, s, t)",
        ),
        "RetrievalLoss, 256 embeddings": (
            _TORCH
            + "e, l = torch.randn(256, 64), torch.arange(256) // 4\n"
            + "f = rt.RetrievalLoss(surrogate='smooth', width=0.1)",
            "step(f, e, l)",
        ),
        "ErrorDrivenLoss with a memory of 50,000": (
            _TORCH
            + "f = rt.ErrorDrivenLoss(); m = rt.ScoreMemory(50000); i = torch.randperm(50000)[:256]\n"
            + "with torch.no_grad():\n"
            + "    a, b = tensors(1000, 50000)\n"
            + "    f(a, b, index=torch.arange(50000), memory=m)\n"
            + "s, y = a[i].clone(), b[i]",
            "step(f, s, y, index=i, memory=m)",
        ),
    },
    "training": {
        "RankSVM('ap'), 5,000 × 50": (_FITS + "X, y = data(5000, 50)", "rw.RankSVM('ap', C=10.0).fit(X, y)"),
        "RankSVM('ndcg'), 20,000 × 20 sparse": (
            _FITS + "X, y = data(20000, 20); X = scipy.sparse.csr_matrix(X * (np.abs(X) > 1))",
            "rw.RankSVM('ndcg', C=10.0).fit(X, y)",
        ),
        "RankSVM('ap'), 200 queries of 50": (
            _FITS + "X, y = data(10000, 20); q = np.repeat(np.arange(200), 50)",
            "rw.RankSVM('ap', C=10.0).fit(X, y, qid=q)",
        ),
        "RankSVMCV('ap'), 2,000 × 20": (_FITS + "X, y = data(2000, 20)", "rw.RankSVMCV('ap', 4, cv=3).fit(X, y)"),
        "LinearRanker('ap'), 5,000 × 20": (_FITS + "X, y = data(5000, 20)", "rw.LinearRanker('ap').fit(X, y)"),
        "LinearRanker('ndcg@10'), 200 queries of 50": (
            _FITS + "X, y = data(10000, 20); q = np.repeat(np.arange(200), 50); y = y + (X[:, 0] > 1.0)",
            "rw.LinearRanker('ndcg@10').fit(X, y, qid=q)",
        ),
        "LatentRankSVM('ap'), 300 bags of 10": (
            _FITS
            + "X, y = data(3000, 10, 0.03); b = rw.Bags(X, np.arange(0, 3001, 10)); t = y.reshape(-1, 10).any(axis=1)",
            "rw.LatentRankSVM('ap', C=10.0).fit(b, t)",
        ),
    },
    "dask": {
        "DaskRankSVM('ap'), 4 partitions of 10,000 × 20": (
            _DASK + "X, y = data(40000, 20); X, y = da.from_array(X, (10000, 20)), da.from_array(y, 10000)",
            "rd.DaskRankSVM('ap', C=10.0, client=client).fit(X, y)",
        ),
        "DaskRankSVM('ndcg'), queries": (
            _DASK
            + "X, y = data(40000, 20); q = da.from_array(np.repeat(np.arange(400), 100), 10000)\n"
            + "X, y = da.from_array(X, (10000, 20)), da.from_array(y, 10000)",
            "rd.DaskRankSVM('ndcg', C=10.0, client=client).fit(X, y, qid=q)",
        ),
        "structured_hinge, 4 partitions of 250,000": (
            _DASK
            + "s = da.from_array(rng.normal(size=10**6), 250000); y = da.from_array(rng.random(10**6) < 0.001, 250000)",
            "rd.structured_hinge(s, y, client=client)",
        ),
    },
}
_PACKAGES = {"torch": "torch", "dask": "distributed"}


@dataclass(frozen=True)
class Sizes(Plan):
    """against: folder of another version's sources; without it, these sources are measured against themselves.

    calls: how many of a section's calls are measured, all if 0. repeats: how often each is timed; the best counts.
    seconds: how long one timing takes at least.
    """

    against: Path | None = None
    calls: int = 0
    repeats: int = 15
    seconds: float = 0.1

    @classmethod
    def quick(cls) -> Sizes:
        return cls(calls=1, repeats=2, seconds=0.0)


def _section(number: int, name: str) -> Section:
    return Section(number, f"{name}: seconds of a call over another version's", partial(_cases, name))


def _cases(name: str, sizes: Sizes) -> list[Case]:
    if name in _PACKAGES and find_spec(_PACKAGES[name]) is None:
        return []
    chosen = list(CALLS[name].items())[: sizes.calls or None]
    return [Case(what, partial(_measured, what, *how, sizes)) for what, how in chosen]


def _measured(what: str, setup: str, call: str, sizes: Sizes) -> Iterator[Row]:
    best: dict[str, float] = {}
    with ExitStack() as stack:
        versions = {"ours": stack.enter_context(_process(None)), "theirs": stack.enter_context(_process(sizes.against))}
        asked: Mapping[str, object] = {"setup": setup, "call": call, "seconds": sizes.seconds}
        for _ in range(1 + sizes.repeats):  # the first prepares
            for who, version in versions.items():
                seconds = _answer(version, asked)
                best[who] = min(best.get(who, seconds), seconds)
            asked = {}
    target: Target | None = None if sizes.against is None else at_most(1.05)
    yield over(what, best, "ours", "theirs", target=target)


class _Version(NamedTuple):
    """The process of a version, and what it says of errors."""

    process: subprocess.Popen[str]
    said: IO[str]


@contextmanager
def _process(source: Path | None) -> Iterator[_Version]:
    """A process with the sources of a version, or these."""
    variables = environment(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)))
    if source is not None:
        variables["PYTHONPATH"] = str(source)
    pipe, command = subprocess.PIPE, [sys.executable, "-c", _PROCESS]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=said, text=True) as process,
    ):
        try:
            yield _Version(process, said)
        finally:
            process.kill()
            with suppress(BrokenPipeError):  # what it did not read before it died
                assert process.stdin is not None
                process.stdin.close()


def _answer(version: _Version, asked: Mapping[str, object]) -> float:
    process, said = version
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        process.wait()
        said.seek(0)
        last = (said.read().strip().splitlines() or ["no message"])[-1]
        raise OSError(f"a measuring process failed: {last}")
    return float(answer)


BENCHMARK = Benchmark("versions", [_section(k, name) for k, name in enumerate(CALLS, start=1)], Sizes)
