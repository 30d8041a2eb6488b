"""The threads of the libraries that multiply matrices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    """The thread pools of the libraries that are loaded; looking for them takes longer than a small product."""
    return ThreadpoolController()


_limit = threading.Lock()
_limited: list[Any] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Products in one thread each: their bits do not depend on how many there are, and short ones wait for none.

    That is a setting of the process: the first to come makes it, the last undoes it.
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
