"""`rankwise warmup`: compile ahead of time what first calls would compile, and keep it on disk."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import rankwise as rw
from rankwise.cli.inputs import add_parser, add_quiet
from rankwise.cli.output import Voice

_EPILOG = """\
Kernels are kept in RANKWISE_CACHE_DIR if that is set, otherwise beside the package or in the user's cache folder. Run
this once per machine, for example when an image is built: the first call of a process then takes a second.
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    long = "Compile the numerical code ahead of time, which first calls would do otherwise."
    short = "compile the numerical code ahead of time"
    parser = add_parser(commands, "warmup", run, short=short, long=long, epilog=_EPILOG)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make a small call of every kind; what is compiled already takes no time."""
    from rankwise.kernels.compiled import number_compiled

    voice, start, calls = Voice(quiet=arguments.quiet), time.perf_counter(), calls_to_make()
    for done, (what, call) in enumerate(calls.items(), start=1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        seconds = time.perf_counter() - start
        voice.progress(f"{done} of {len(calls)}: {what}; {number_compiled()} kernels compiled, {seconds:.0f} s")
    voice.say(f"compiled {number_compiled()} kernels in {time.perf_counter() - start:.0f} s; the others were on disk")
    return 0


def calls_to_make() -> dict[str, Callable[[], Any]]:
    """Calls, by what they compile: through the public interface, on problems that reach every kernel."""
    rng = np.random.default_rng(0)
    small, large = (_problem(rng, n, n_pos) for n, n_pos in ((400, 100), (60_000, 60)))
    balanced = _problem(rng, 40_000, 20_000)
    queries = np.repeat(np.arange(20), 20)
    X, grades = rng.normal(size=(400, 3)), small[1] * (1 + np.arange(400) % 3)
    y = X[:, 0] + rng.normal(size=400) > 1.0
    calls: dict[str, Callable[[], Any]] = {
        "hinge": lambda: _all(rw.structured_hinge, small, queries),
        "hinge, grades": partial(rw.structured_hinge, small[0], grades, "ndcg"),
        "hinge, cut-offs": partial(rw.structured_hinge, *small, "ndcg@10"),
        "hinge, large queries": lambda: _both_types(rw.structured_hinge, large),
        "hinge, large queries with a cut-off": partial(rw.structured_hinge, *large, "ndcg@10"),
        "smooth and error-driven loss": lambda: _all(rw.smooth_loss, small, queries),
        "smooth loss, grades": lambda: [rw.smooth_loss(small[0], grades, loss) for loss in ("ap", "ndcg")],
        "smooth loss, large queries": lambda: [_both_types(rw.smooth_loss, of) for of in (large, balanced)],
        "error-driven loss": lambda: [_both_types(rw.error_driven_loss, of) for of in (small, large, balanced)],
        "direct loss": partial(rw.evaluate, rw.Direct(), *small),
        "published methods": lambda: [
            rw.structured_hinge(*small, method=method)
            for method in ("quicksort", "mohapatra2014", "yue", "dynamic", "chakrabarti")
        ],
        "RankSVM.fit": lambda: [rw.RankSVM().fit(X, y), rw.RankSVM(loss="ndcg").fit(X, y, qid=queries)],
        "LinearRanker.fit": lambda: [rw.LinearRanker().fit(X, y, qid=queries), rw.LinearRanker().fit(X, y)],
        "LinearRanker.fit, grades": lambda: rw.LinearRanker("ndcg").fit(X, np.floor(grades), qid=queries),
    }
    if find_spec("torch") is not None:
        calls["losses in torch"] = lambda: _in_torch(small, grades)
    return calls


def _problem(rng: np.random.Generator, n: int, n_pos: int) -> tuple[Any, Any]:
    """Scores and relevance of one query."""
    return rng.normal(size=n), rng.permutation(n) < n_pos


def _both_types(function: Callable[..., Any], problem: tuple[Any, Any]) -> list[Any]:
    return [function(problem[0].astype(dtype), problem[1]) for dtype in (np.float64, np.float32)]


def _all(function: Callable[..., Any], problem: tuple[Any, Any], queries: Any) -> None:
    _both_types(function, problem)
    function(*problem, qid=queries)
    function(*problem, qid=queries[::-1].copy())


def _in_torch(problem: tuple[Any, Any], grades: Any) -> None:
    import torch

    from rankwise.torch import APHingeLoss, NDCGHingeLoss

    for dtype in (torch.float32, torch.float64):
        for loss, truth in ((APHingeLoss(), problem[1]), (NDCGHingeLoss(), grades)):
            scores = torch.tensor(problem[0], dtype=dtype, requires_grad=True)
            loss(scores, torch.tensor(truth)).backward()
