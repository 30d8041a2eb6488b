"""What must not change a result: ties, the order of rows and queries, threads, processes, a shift of all scores."""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import rankwise as rw
import rankwise.kernels

VALUE_RTOL = 1e-12

LOSSES = ("ap", "ndcg", "mrr", "auc", "zero-one")
ALL_METHODS = ("auto", "bucketed", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti")
TIED = ("integers", "halves", "constant", "relu")
SMALL, LARGE = (12, 200), (700, 69_300)

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
Family = Callable[[np.random.Generator, np.ndarray], np.ndarray]
Result = rw.HingeResult


def named(size: tuple[int, int]) -> str:
    return "P{}-N{}".format(*size)


def same(a: Result, b: Result) -> bool:
    """Bit for bit."""
    return a.value == b.value and a.loss == b.loss and np.array_equal(a.gradient, b.gradient)


def assert_ties_share(scores: np.ndarray, relevant: np.ndarray, gradient: np.ndarray) -> None:
    for side in (relevant, ~relevant):
        order = np.argsort(scores[side])
        s, g = scores[side][order], gradient[side][order]
        tied = s[1:] == s[:-1]
        assert np.array_equal(g[1:][tied], g[:-1][tied])


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("kind", TIED)
def test_equal_scores_and_equal_relevance_give_equal_gradients(
    kind: str, method: str, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    draws = {
        "integers": lambda n: rng.integers(-3, 4, n) * 1.0,
        "halves": lambda n: np.round(2 * rng.normal(size=n)) / 2,
        "constant": np.ones,
        "relu": lambda n: np.maximum(rng.normal(size=n), 0.0),
    }
    for size in [(4, 6), SMALL, (300, 40), LARGE]:
        # Of the large ones, each method meets each loss, and each kind each loss.
        turn = (TIED.index(kind) + ALL_METHODS.index(method)) % 3
        for loss in ("ap", "ndcg", "auc") if size != LARGE else [("ap", "ndcg", "auc")[turn]]:
            relevant = draw_relevant(rng, *size)
            scores = draws[kind](relevant.size)
            assert_ties_share(scores, relevant, rw.structured_hinge(scores, relevant, loss, method=method).gradient)


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=named)
def test_minus_zero_is_zero(size: tuple[int, int], method: str, rng: np.random.Generator, draw_relevant: Draw) -> None:
    relevant = draw_relevant(rng, *size)
    # Powers of two on both sides of zero: a logarithmic chart has its centre at zero, and an edge. One power less above
    # makes zero the median, and minus zero is too rare to be seen in a sample.
    powers = 2.0 ** np.arange(-10, 21)
    scores = rng.choice(np.concatenate([powers[1:], -powers, np.zeros(62)]), relevant.size)
    scores[np.flatnonzero((scores == 0) & ~relevant)[::200]] = -0.0
    assert np.signbit(scores[scores == 0]).any()
    found = rw.structured_hinge(scores, relevant, "ap", method=method)
    assert_ties_share(scores, relevant, found.gradient)
    again = rw.structured_hinge(scores + 0.0, relevant, "ap", method=method)
    assert np.array_equal(found.gradient, again.gradient)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "method"),
    [*product(LOSSES, ["auto"]), *product(["ap", "ndcg", "mrr", "auc"], ["quicksort", "mohapatra2014", "dynamic"])],
)
def test_a_permutation_of_the_rows_permutes_the_gradient(
    loss: str, method: str, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for size, dtype, whole in product([(3, 5), SMALL, LARGE], [np.float64, np.float32], [False, True]):
        relevant = draw_relevant(rng, *size)
        scores = rng.normal(size=relevant.size).astype(dtype)
        scores = np.round(3 * scores) if whole else scores
        found = rw.structured_hinge(scores, relevant, loss, method=method)
        for _ in range(1 if size == LARGE else 3):
            shuffled = rng.permutation(scores.size)
            again = rw.structured_hinge(scores[shuffled], relevant[shuffled], loss, method=method)
            assert np.array_equal(again.gradient, found.gradient[shuffled]), (size, dtype, whole)
            assert again.value == pytest.approx(found.value, rel=VALUE_RTOL), (size, dtype, whole)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_few")
def test_threads_change_nothing_in_one_large_query(
    families: dict[str, Family], rng: np.random.Generator, draw_relevant: Draw
) -> None:
    relevant = draw_relevant(rng, 300, 200_000)  # four blocks
    for k, (name, family) in enumerate(families.items()):
        wide = family(rng, relevant)
        scores = wide, wide.astype(np.float32)
        for number, loss in enumerate(LOSSES):  # each loss with each family, and with each dtype in turn
            of = scores[(k + number) % 2]
            one = rw.structured_hinge(of, relevant, loss, n_threads=1)
            for n_threads in (2, 3):
                found = rw.structured_hinge(of, relevant, loss, n_threads=n_threads)
                assert same(one, found), (name, loss, of.dtype, n_threads)


def _hinges(n_threads: int) -> list[tuple[float, float, bytes]]:
    """A large query, a small one and many, for each loss."""
    rng = np.random.default_rng(7)
    found = []
    for loss in LOSSES:
        for n in (300, 150_000):
            scores, relevant = rng.normal(size=n), rng.random(n) < 0.01
            found.append(rw.structured_hinge(scores, relevant, loss, n_threads=n_threads))
            found.append(rw.structured_hinge(scores, relevant, loss, qid=np.arange(n) % 50, n_threads=n_threads))
    return [(result.value, result.loss, result.gradient.tobytes()) for result in found]


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_few")
def test_calls_from_many_threads_at_once_give_the_same() -> None:
    expected = _hinges(1)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(_hinges, [1, 3] * 4):
            assert found == expected


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("threads_for_few")
def test_a_forked_process_gives_the_same() -> None:
    expected = _hinges(2)  # the parent has used threads
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert pool.map(_hinges, [1, 2]) == [expected, expected]


def _signatures() -> dict[str, int]:
    """How many kernels are compiled or loaded, by the name of their function."""
    names = [module.name for module in pkgutil.iter_modules(rankwise.kernels.__path__, "rankwise.kernels.")]
    made = [thing for name in names for thing in vars(importlib.import_module(name)).values()]
    kernels = [getattr(thing, "_compiled", thing) for thing in made]
    return {repr(k.py_func): len(k.signatures) for k in kernels if isinstance(k, CPUDispatcher)}


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_few")
@pytest.mark.parametrize(
    ("function", "n"),
    [(rw.structured_hinge, 140_000), (rw.smooth_loss, 1_100_000), (rw.error_driven_loss, 1_100_000)],  # two parts each
)
def test_threads_run_the_same_kernels(function: Any, n: int, rng: np.random.Generator) -> None:
    relevant = np.arange(n) % 500 == 0
    for scores in (rng.standard_cauchy(n), rng.integers(-5, 6, n) * 1.0):
        function(scores, relevant, n_threads=1)
        before = _signatures()
        function(scores, relevant, n_threads=2)
        # Another signature would be another kernel: to be compiled, and free to add up in another order.
        assert _signatures() == before
    assert len(before) > 30  # else the list is not what it seems
