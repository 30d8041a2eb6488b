from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from bag_problems import ROUTES

from rankwise.latent import cccp
from rankwise.linear import task as task_module


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cccp, "_SMALL", ROUTES[request.param])
    return str(request.param)


@pytest.fixture
def interrupted() -> Any:
    """Within it, Ctrl-C at the calls of inference that `when` says yes to; the list counts them."""

    @contextmanager
    def at(when: Callable[[int], bool]) -> Any:
        real, count, lock = task_module.Inference.solve, [0], threading.Lock()

        def solve(*args: Any, **options: Any) -> Any:
            with lock:
                count[0] += 1
                stop = when(count[0])
            if stop:
                raise KeyboardInterrupt
            return real(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task_module.Inference, "solve", solve)
            yield count

    return at
