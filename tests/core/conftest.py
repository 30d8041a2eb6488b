"""What tests of the core share: threads for problems of any size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rankwise.kernels import threads


@pytest.fixture
def threads_for_few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A thread for every thousand samples, not for every 262,144; a test that asks for this must use some."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1000)
    threads._pools.clear()
    yield
    assert threads._pools, "no thread was used"
