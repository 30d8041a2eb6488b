"""The machine a benchmark ran on, and the peak of its memory, where the system tells it."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import threading
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankwise import __version__
from rankwise_lab.measuring.timing import THREADS, Task

__all__ = [
    "avx512_features",
    "describe",
    "growth_of",
    "n_cores",
    "numpy_sorts_with",
    "own_growth_of",
    "vendor",
    "version_of",
]

# By what np.sort does with numbers of 32 and 64 bits: names that NumPy's versions have for the features it asks for.
_SORTS = {"AVX-512": {"X86_V4", "AVX512_SKX"}, "AVX2": {"X86_V3", "AVX2"}, "NEON": {"ASIMD"}}
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}


def describe() -> dict[str, Any]:
    """Processor, cores, versions, what NumPy sorts with and may choose from, and threads per timed call."""
    return {
        "cpu": _cpu_info("model name") or platform.processor() or platform.machine(),
        "cores": n_cores(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": version_of("numpy"),
        "numba": version_of("numba"),
        "rankwise": __version__,
        "numpy_sorts_with": numpy_sorts_with(),
        "numpy_cpu_features": numpy_features(),
        "threads": THREADS,
    }


def n_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def vendor() -> str:
    """Who made the processor: "Intel", "AMD", or whatever the system calls it."""
    name = _cpu_info("vendor_id")
    return _VENDORS.get(name, name) or platform.machine()


def numpy_sorts_with() -> str:
    """The instructions of np.sort for float32 and float64: "AVX-512", "AVX2", "NEON", or "no SIMD".

    NumPy tells which features it may use and which there are, not which its sort asks for; that is known of it.
    """
    there = set(numpy_features()) | set(_umath().__cpu_baseline__)
    return next((name for name, features in _SORTS.items() if features & there), "no SIMD")


def numpy_features() -> list[str]:
    """CPU features NumPy may dispatch on and this processor has: np.sort takes the best it knows of them."""
    umath = _umath()
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def avx512_features() -> list[str]:
    """Those of `numpy_features` that stand for AVX-512."""
    return [name for name in numpy_features() if name.startswith("AVX512") or name == "X86_V4"]


def _umath() -> Any:
    return importlib.import_module("numpy._core._multiarray_umath")


def _cpu_info(field: str) -> str:
    """What Linux says of the first processor; "" elsewhere."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    return ""


def version_of(package: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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


def own_growth_of(task: Task, every: float = 0.01) -> int | None:
    """The same of memory that is no file's, looked at every few milliseconds: the system keeps no peak of it."""
    if not _STATUS.exists():
        task()
        return None
    before = most = _status_bytes("RssAnon")
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(every):
            most = max(most, _status_bytes("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        task()
    finally:
        done.set()
        watcher.join()
    return most - before


def _status_bytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{_STATUS} has no {field}")
