"""What tests of the laboratory share."""

from __future__ import annotations

import pytest
from dying import killed_by


@pytest.fixture
def dying() -> str:
    """Code after which a program is killed at the n-th piece or document that is written, n its first argument."""
    return killed_by("rankwise_lab", "pieces", "write_bytes")
