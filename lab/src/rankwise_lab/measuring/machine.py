"""The machine that a benchmark ran on, and peak memory, where the system reports it."""

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

# By instruction set of np.sort for 32 and 64 bits: the names that NumPy's versions have for the CPU features it needs.
_SORTS = {"AVX-512": {"X86_V4", "AVX512_SKX"}, "AVX2": {"X86_V3", "AVX2"}, "NEON": {"ASIMD"}}
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}


def describe() -> dict[str, Any]:
    """Return processor, cores, versions, what NumPy sorts with and can choose from, and threads per timed call."""
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
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def vendor() -> str:
    """Return the maker of the processor: "Intel", "AMD", or whatever the system calls it."""
    name = _cpu_info("vendor_id")
    return _VENDORS.get(name, name) or platform.machine()


def numpy_sorts_with() -> str:
    """Return the instructions of np.sort for float32 and float64: "AVX-512", "AVX2", "NEON", or "no SIMD".

    NumPy reports which features it may use and which there are, but not which its sort needs.
    """
    there = set(numpy_features()) | set(_umath().__cpu_baseline__)
    return next((name for name, features in _SORTS.items() if features & there), "no SIMD")


def numpy_features() -> list[str]:
    """Return the CPU features that NumPy can use and this processor has: np.sort takes the best it knows."""
    umath = _umath()
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def avx512_features() -> list[str]:
    """Return those of `numpy_features` that mean AVX-512."""
    return [name for name in numpy_features() if name.startswith("AVX512") or name == "X86_V4"]


def _umath() -> Any:
    return importlib.import_module("numpy._core._multiarray_umath")


def _cpu_info(field: str) -> str:
    """Return what Linux says about the first processor; "" elsewhere."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    return ""


def version_of(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def growth_of(task: Task) -> int | None:
    """Return by how many bytes the task raises peak memory; None if the system does not report it."""
    if not _STATUS.exists():
        task()
        return None
    _return_freed()
    _CLEAR.write_text("5")  # set the peak to the present value
    before = _status_bytes("VmRSS")
    task()
    return _status_bytes("VmHWM") - before


def own_growth_of(task: Task, every: float = 0.01) -> int | None:
    """Return the same without memory-mapped files, sampled every few milliseconds: the system keeps no peak of it."""
    if not _STATUS.exists():
        task()
        return None
    _return_freed()
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


def _return_freed() -> None:
    """Return freed memory to the system: it would hide what a task takes."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status_bytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{_STATUS} has no {field}")
