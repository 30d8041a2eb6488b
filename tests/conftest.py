"""What tests of the library share: Ctrl-C, real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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
