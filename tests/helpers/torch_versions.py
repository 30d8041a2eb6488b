"""What the versions of PyTorch that we support cannot do; to be imported where it is installed."""

from __future__ import annotations

import pytest
import torch

needs_a_recent_compiler = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 8),
    reason="torch.compile of PyTorch 2.8 and earlier cannot make one graph of this",
)
