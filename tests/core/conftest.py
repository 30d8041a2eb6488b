"""What tests of the core share: families of scores, threads for problems of any size, J by its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankwise.kernels import threads

Scores = NDArray[np.float64]
Relevant = NDArray[np.bool_]
Family = Callable[[np.random.Generator, Relevant], Scores]


def _organ_pipe(n: int) -> Scores:
    """0, 1, 2, … up to the middle and down again."""
    return np.minimum(np.arange(n), np.arange(n)[::-1]).astype(np.float64)


def _median_of_three_killer(n: int) -> Scores:
    """Musser 1997: the first, the middle and the last of it are always among the least."""
    half = n // 2
    k = np.arange(1, half + 1)
    first = np.where(k % 2 == 1, k, half + k - 1)
    return np.concatenate([first, 2 * k, [2 * half + 1] * (n % 2)]).astype(np.float64)


def _clusters(rng: np.random.Generator, relevant: Relevant) -> Scores:
    return rng.integers(0, 5, relevant.size) + 1e-6 * rng.normal(size=relevant.size)


def _in_order(order: Callable[[Scores], Scores]) -> Family:
    """Normal scores, the negatives among themselves in a given order."""

    def draw(rng: np.random.Generator, relevant: Relevant) -> Scores:
        scores = rng.normal(size=relevant.size)
        scores[~relevant] = order(np.sort(scores[~relevant]))
        return scores

    return draw


FAMILIES: dict[str, Family] = {
    "normal": lambda rng, y: rng.normal(size=y.size) + y,
    "separated": lambda rng, y: rng.normal(size=y.size) + 20.0 * y,
    "cauchy": lambda rng, y: rng.standard_cauchy(y.size) + y,
    "lognormal": lambda rng, y: rng.lognormal(sigma=5.0, size=y.size) + y,
    "constant": lambda rng, y: np.full(y.size, 0.3),
    "two-valued": lambda rng, y: rng.choice([-0.25, 0.5], y.size),
    "integers": lambda rng, y: rng.integers(-5, 6, y.size).astype(np.float64) + y,
    "relu": lambda rng, y: np.maximum(rng.normal(size=y.size) - 0.5 + y, 0.0),
    "clipped": lambda rng, y: np.clip(3.0 * rng.normal(size=y.size), -1.0, 1.0),
    "clusters": _clusters,
    "offset": lambda rng, y: 1000.0 + 1e-3 * (rng.normal(size=y.size) + y),
    "ascending": _in_order(lambda s: s),
    "descending": _in_order(lambda s: s[::-1]),
    "organ-pipe": _in_order(lambda s: s[np.argsort(np.argsort(_organ_pipe(s.size), kind="stable"))]),
    "median-of-three-killer": _in_order(lambda s: s[np.argsort(np.argsort(_median_of_three_killer(s.size)))]),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    """A test that asks for this runs once for each family of scores."""
    return FAMILIES[request.param]


@pytest.fixture
def families() -> dict[str, Family]:
    """All of them, for a test that needs no item of its own for each."""
    return FAMILIES


@pytest.fixture(params=["ascending", "descending", "organ-pipe", "median-of-three-killer"])
def adversary(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def draw_relevant() -> Callable[[np.random.Generator, int, int], Relevant]:
    """Which of n_pos + n_neg samples are positive, in random order."""

    def draw(rng: np.random.Generator, n_pos: int, n_neg: int) -> Relevant:
        return rng.permutation(np.arange(n_pos + n_neg) < n_pos)

    return draw


@pytest.fixture
def threads_for_few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A thread for every thousand samples, not for every 262,144; a test that asks for this must use some."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1000)
    threads._pools.clear()
    yield
    assert threads._pools, "no thread was used"


@pytest.fixture
def objective() -> Callable[..., float]:
    """scale·Δ(R*, R) + F(R) − F(R*) by the definition: F = (1/PN) Σ ±(s_x − s_y), + where x is above y."""

    def of(scores: np.ndarray, relevant: np.ndarray, loss: Any, scale: float, ranking: Any) -> float:
        ahead = scores[ranking.positives][:, None] - scores[ranking.negatives][None, :]
        is_above = np.arange(1, ranking.positives.size + 1)[:, None] < ranking.ranks[None, :]
        lost = loss.of_counts(ranking.above, ranking.negatives.size)
        return float(scale * lost + np.mean(np.where(is_above, ahead, -ahead)) - np.mean(ahead))

    return of
