"""How kernels are compiled: once per machine and version of the sources, kept on disk, and never silently.

Numba's own cache looks at one file's date, not at the files it takes functions from; here the folder of the cache is
named after a digest of all kernel sources, so that no stale kernel is ever run. It lies in `RANKWISE_CACHE_DIR` if that
is set, else beside this file, else in the user's cache folder; where none can be written, kernels live for one process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event
from numba.extending import register_jitable


def _digest() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted([*here.glob("*.py"), here.parent / "loss_forms.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    name = f"kernels-{_digest()}"
    chosen = os.environ.get("RANKWISE_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    candidates = [Path(chosen)] if chosen else [Path(__file__).parent / "__pycache__", user / "rankwise"]
    for base in candidates:
        folder = base / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            if base.parent == Path(__file__).parent:  # beside the sources, other digests are of sources that are gone
                for stale in set(base.glob("kernels-*")) - {folder}:
                    shutil.rmtree(stale, ignore_errors=True)
            return folder
    return None


_FOLDER = _cache_folder()


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function to machine code that releases the interpreter lock."""
    if function is None:
        return lambda f: kernel(f, **options)
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(_FOLDER or "")
    try:
        return njit(nogil=True, error_model="numpy", cache=_FOLDER is not None, **options)(function)
    finally:
        settings.CACHE_DIR = before


def part(function: Callable[..., Any]) -> Any:
    """A function that only kernels call: compiled with them, plain Python elsewhere. It needs no way in from Python."""
    return register_jitable(nogil=True, error_model="numpy")(function)


def inline(function: Callable[..., Any]) -> Any:
    """A part so small and so frequent that a call would show: the compiler puts it into its callers."""
    return register_jitable(nogil=True, error_model="numpy", forceinline=True)(function)


class _Announcement(event.Listener):
    """Says on standard error, once in a process, that kernels are being compiled."""

    said = False

    def on_start(self, event: Any) -> None:
        name = event.data["dispatcher"].py_func.__module__
        if not self.said and name.startswith("rankwise."):
            self.said = True
            kept = "kept for the next time" if _FOLDER else "for this process only: no cache folder can be written"
            print(f"rankwise: compiling its kernels for this machine ({kept}) …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcement())
