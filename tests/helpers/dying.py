"""Programs that are killed at a moment of their own: when they write something for the n-th time."""

from __future__ import annotations

_CODE = """
import os, signal, sys
from {package} import {module}

write, left = {module}.{name}, [int(sys.argv[1])]

def counted(*given):
    write(*given)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

{module}.{name} = counted
"""


def killed_by(package: str, module: str, name: str) -> str:
    """Code after which a program is killed when this function was called for the n-th time, n its first argument."""
    return _CODE.format(package=package, module=module, name=name)
