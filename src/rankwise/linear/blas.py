"""Thread settings of the libraries that multiply matrices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    """Find the thread pools of the loaded libraries, once, since this takes longer than a small product."""
    return ThreadpoolController()


_limit = threading.Lock()
_limited: list[Any] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let BLAS use one thread per product, so that results do not depend on the number of threads.

    Short products are also faster this way. The setting is one of the process: the first user makes it, and the last
    one undoes it.
    """
    with _limit:
        _limited.append(_controller().limit(limits=1) if not _limited else _limited[0])
    try:
        yield
    finally:
        with _limit:
            limits = _limited.pop()
            if not _limited:
                limits.restore_original_limits()
