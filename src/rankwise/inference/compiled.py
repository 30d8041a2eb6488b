"""How kernels are compiled: once per machine and version of the sources, kept on disk, and never silently.

Numba's own cache looks at one file's date, not at the files it takes functions from; here the folder of the cache is
named after a digest of all kernel sources, so that no stale kernel is ever run. It lies in `RANKWISE_CACHE_DIR` if that
is set, else beside this file, else in the user's cache folder, else in a temporary folder of the user's own: in the
first of these that can be written. Where none can, kernels live for one process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import update_wrapper
from pathlib import Path
from typing import Any

from numba import config, njit, types
from numba.core import event

# What all kernels of a first call take to compile, measured on a two-core server of 2024.
_SECONDS = 10
_VARIABLE = "RANKWISE_CACHE_DIR"
_BESIDE = Path(__file__).parent / "__pycache__"


def _digest() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted([*here.glob("*.py"), here.parent / "loss_forms.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """The folder for kernels of these sources; a warning if it is not where it was told to be."""
    name = f"kernels-{_digest()}"
    chosen = os.environ.get(_VARIABLE)
    obstacle = _obstacle(Path(chosen) / name) if chosen else None
    if chosen and obstacle is None:
        return Path(chosen) / name
    found = next((base / name for base in _places() if _obstacle(base / name) is None), None)
    if chosen:
        warnings.warn(f"{_VARIABLE}: {obstacle}; compiled kernels are {_kept(found)}", RuntimeWarning, stacklevel=2)
    if found is not None and found.parent == _BESIDE:  # other digests there are of sources that are gone
        for stale in set(_BESIDE.glob("kernels-*")) - {found}:
            shutil.rmtree(stale, ignore_errors=True)
    return found


def _places() -> Iterator[Path]:
    """Where kernels may be kept unless one is told where, the best place first."""
    yield _BESIDE
    with suppress(RuntimeError):  # no home folder
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rankwise"
    with suppress(OSError):
        yield _own_temporary()


def _own_temporary() -> Path:
    """A temporary folder of this user's alone: a cache is made of pickles, and to read one is to run it."""
    if not hasattr(os, "getuid"):
        raise PermissionError("this system does not tell whose a folder is")
    folder = Path(tempfile.gettempdir()) / f"rankwise-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # of a link, not of what it leads to
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user's alone")
    return folder


def _obstacle(folder: Path) -> OSError | None:
    """Why the folder cannot be made and written, by trying: permissions do not tell of read-only file systems."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"written")
    except OSError as error:
        return error
    return None


def _kept(folder: Path | None) -> str:
    return "for this process only: no cache folder can be written" if folder is None else f"kept in {folder.parent}"


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


class _Part:
    """A function compiled for kernels to call; Python, which gets no way in to that, runs it as it is written."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self._compiled = kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        self._numba_type_ = types.Dispatcher(self._compiled)  # a weak reference

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)  # type: ignore[attr-defined]


def part(function: Callable[..., Any]) -> Any:
    """A function that only kernels call: compiled for them once, plain Python elsewhere."""
    return _Part(function)


def inline(function: Callable[..., Any]) -> Any:
    """A part so small and so frequent that a call would show: the compiler puts it into its callers."""
    return _Part(function, forceinline=True)


class _Announcement(event.Listener):
    """Says on standard error, once in a process, that kernels are being compiled, how long it takes, where they go."""

    said = False

    def on_start(self, event: Any) -> None:
        name = event.data["dispatcher"].py_func.__module__
        if not self.said and name.startswith("rankwise."):
            self.said = True
            what = f"compiling its kernels for this machine, about {_SECONDS} s"
            print(f"rankwise: {what} ({_kept(_FOLDER)}) …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcement())
