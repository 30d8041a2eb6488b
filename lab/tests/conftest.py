"""What tests of the laboratory share."""

from __future__ import annotations

import pytest


@pytest.fixture
def dying() -> str:
    """Code after which a program is killed at the n-th piece or document that is written, n its first argument."""
    return """
import os, signal, sys
from rankwise_lab import pieces

write, left = pieces.write_bytes, [int(sys.argv[1])]

def counted(path, content):
    write(path, content)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

pieces.write_bytes = counted
"""
