"""What tests of the core share: threads for problems of any size, and J by its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rankwise.kernels import threads


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
