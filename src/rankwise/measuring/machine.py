"""The machine a benchmark ran on."""

from __future__ import annotations

import importlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankwise import __version__
from rankwise.measuring.timing import THREADS

__all__ = ["avx512_features", "describe", "n_cores"]


def describe() -> dict[str, Any]:
    """Processor, cores, versions, the CPU features NumPy chooses its sort from, and threads per timed call."""
    return {
        "cpu": _cpu_model(),
        "cores": n_cores(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "numba": _version("numba"),
        "rankwise": __version__,
        "numpy_cpu_features": numpy_features(),
        "threads": THREADS,
    }


def n_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def numpy_features() -> list[str]:
    """CPU features NumPy may dispatch on and this processor has: np.sort takes the best it knows of them."""
    umath = importlib.import_module("numpy._core._multiarray_umath")
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def avx512_features() -> list[str]:
    """Those of `numpy_features` that stand for AVX-512."""
    return [name for name in numpy_features() if name.startswith("AVX512") or name == "X86_V4"]


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
