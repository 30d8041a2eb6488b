"""What the benchmarks are tested in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Problems are so small that threads of BLAS do nothing but wait for each other."""
    with threadpool_limits(1):
        yield
