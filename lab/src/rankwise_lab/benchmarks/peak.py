"""Peak memory of a task, where the system tells it."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

from rankwise_lab.measuring.timing import Task

__all__ = ["growth_of"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def growth_of(task: Task) -> int | None:
    """By how many bytes the task raises peak memory over what is held before it; None where the system is silent."""
    if not _STATUS.exists():
        task()
        return None
    with suppress(AttributeError):  # memory freed before, but not yet given back, would hide what the task takes
        ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5")  # peak := present
    before = _status_bytes("VmRSS")
    task()
    return _status_bytes("VmHWM") - before


def _status_bytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{_STATUS} has no {field}")
