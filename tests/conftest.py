"""What tests of the library share: families of scores, Ctrl-C, real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Ctrl-C at the k-th evaluation of a linear ranker; the list counts them."""
    from rankwise.linear import task as task_module

    def at(k: int) -> list[int]:
        count, real = [0], task_module.Inference.solve

        def hinge(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] == k:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

        monkeypatch.setattr(task_module.Inference, "solve", hinge)
        return count

    return at


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """The path of a file of real data, by its name in the folder of data; where it is absent, the test is skipped."""

    def find(name: str) -> Path:
        folder = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
        if not (folder / name).exists():
            pytest.skip(f"no {folder / name}; set RANKWISE_DATA to the folder of data")
        return folder / name

    return find
