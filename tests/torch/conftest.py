from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def interrupt_writes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let so many writes to tensors by index_copy_ pass, and interrupt the next."""
    torch = pytest.importorskip("torch")
    copied = torch.Tensor.index_copy_

    def interrupt(passing: int) -> None:
        left = [passing]

        def torn(*args: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return copied(*args)

        monkeypatch.setattr(torch.Tensor, "index_copy_", torn)

    return interrupt
