"""How kernels are compiled: once per machine and version of the sources, kept on disk, and never silently.

Numba's own cache looks at one file, not at the files it takes functions from; here the folder of the cache is named
after a digest of all kernel sources, so that no stale kernel is ever run. Nor does it look at where the files are: all
environments with the same sources and the same Numba can share one folder. It lies in `RANKWISE_CACHE_DIR` if that is
set, else beside this file, else in the user's cache folder: in the first of these that can be written. Where none can,
kernels live for one process.

The files are pickles, and to read one is to run it. So whoever can write to the folder can run code as everyone who
loads kernels from it: share it only with those whom you trust that far.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any
from uuid import uuid4

from numba import __version__ as numba_version
from numba import config, njit, types
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.serialize import dumps

_VARIABLE = "RANKWISE_CACHE_DIR"
_DIGEST = hashlib.sha256().digest_size
_BESIDE = Path(__file__).parent / "__pycache__"


def _digest() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(here.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compiler() -> str:
    """What else makes kernels differ and Numba does not tell apart, or not without replacing them."""
    settings: Any = config
    return f"numba-{numba_version}" + ("-checked" if settings.BOUNDSCHECK else "")


def _cache_folder() -> Path | None:
    """The folder for kernels of these sources; a warning if it is not where it was told to be."""
    name, within = f"kernels-{_digest()}", _compiler()
    chosen = os.environ.get(_VARIABLE)
    obstacle = _obstacle(Path(chosen) / name / within) if chosen else None
    if chosen and obstacle is None:
        return Path(chosen) / name / within
    found = next((base / name / within for base in _places() if _obstacle(base / name / within) is None), None)
    if chosen:
        warnings.warn(f"{_VARIABLE}: {obstacle}; compiled kernels are {_kept(found)}", RuntimeWarning, stacklevel=2)
    if found is not None and found.parents[1] == _BESIDE:  # other digests there are of sources that are gone
        for stale in set(_BESIDE.glob("kernels-*")) - {found.parent}:
            shutil.rmtree(stale, ignore_errors=True)
    return found


def _places() -> Iterator[Path]:
    """Where kernels may be kept unless one is told where, the best place first."""
    yield _BESIDE
    with suppress(RuntimeError):  # no home folder
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rankwise"


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
    return "for this process only: no cache folder can be written" if folder is None else f"kept in {folder.parents[1]}"


_FOLDER = _cache_folder()


class _Locator(_CacheLocator):
    """Where Numba keeps a kernel: in a folder named after the sources, wherever these are and whatever their date."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # named in Numba's warnings
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return str(_FOLDER)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Results(CompileResultCacheImpl):
    _locator_classes: Any = [_Locator]  # noqa: RUF012


class _Files:
    """A kernel's files, one per signature and processor, without the list of them that Numba keeps.

    Processes that compile at the same time may each overwrite the other's list, and then take one kernel for another.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _path(self, key: Any) -> Path:
        assert _FOLDER is not None
        return _FOLDER / f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def load(self, key: Any) -> Any:
        whole = self._path(key).read_bytes()
        data = memoryview(whole)[_DIGEST:]
        if hashlib.sha256(data).digest() != whole[:_DIGEST]:  # machine code with one wrong bit ends the process
            raise ValueError("not what was written")
        return pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Keep the kernel; where the disk is full by now, it lives for this process."""
        path = self._path(key)
        written = path.with_suffix(f".{uuid4().hex}")  # readable for whom the user's mask lets
        try:
            kept = dumps(data)
            written.write_bytes(hashlib.sha256(kept).digest() + kept)
            written.replace(path)
        except OSError:
            with suppress(OSError):
                written.unlink()

    def flush(self) -> None:
        assert _FOLDER is not None
        for path in _FOLDER.glob(f"{self._name}.*.nbc"):
            path.unlink(missing_ok=True)


class _Cache(FunctionCache):
    _impl_class = _Results

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file: Any = _Files(self._impl.filename_base)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel, or None if it is to be compiled: where there is no file, or one that is damaged or foreign."""
        with suppress(Exception):  # a pickle can raise anything
            return super()._load_overload(sig, target_context)
        return None


# Numba would hand on what is not said here from a function to those that it calls first.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": False, "fastmath": False}


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function to machine code that releases the interpreter lock."""
    if function is None:
        return partial(kernel, **options)
    made = njit(**_OPTIONS | {"no_cfunc_wrapper": True} | options)(function)
    settings: Any = config
    if _FOLDER is None or settings.DISABLE_JIT:
        return made
    others = getattr(settings, "CACHE_LOCATOR_CLASSES", "")  # what a user has set for other code
    settings.CACHE_LOCATOR_CLASSES = ""
    try:
        made._cache = _Cache(function)  # what cache=True does, with our locator
    finally:
        settings.CACHE_LOCATOR_CLASSES = others
    return made


class _PartLibrary(JITCodeLibrary):
    """Code of a part: kept as it was lowered, for kernels to link. Only whole kernels become machine code."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # there is none

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing: only what is called from Python has one."""


class _PartCompiler(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *args: Any) -> None:
        super().__init__(typing, target, library or _PartLibrary(target.codegen(), "part"), *args)


class _Part:
    """A function compiled for kernels to call; Python, which gets no way in to that, runs it as it is written."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        only = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
        self._compiled = njit(**_OPTIONS | only | options)(function)
        self._numba_type_ = types.Dispatcher(self._compiled)  # a weak reference

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)  # type: ignore[attr-defined]


def part(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A function that only kernels call: compiled for them once, plain Python elsewhere."""
    return partial(_Part, **options) if function is None else _Part(function)


def inline(function: Callable[..., Any]) -> Any:
    """A part so small and so frequent that a call would show: the compiler puts it into its callers."""
    return _Part(function, forceinline=True)


class _Announcement(event.Listener):
    """Counts kernels compiled in this process; the first is announced on standard error: how long, and where to."""

    count = 0

    def on_start(self, event: Any) -> None:
        made = event.data["dispatcher"]
        if not made.py_func.__module__.startswith("rankwise.") or made.targetoptions.get("no_cpython_wrapper"):
            return
        self.count += 1
        if self.count == 1 and sys.stderr is not None:
            # By `rankwise bench compile`: the hinge takes 4 to 7 s, a fit, which uses more of them, 5 to 16 s.
            what = "compiling its kernels for this machine, about 5 to 15 s"
            with suppress(OSError, ValueError):  # a full disk, a closed file
                print(f"rankwise: {what} ({_kept(_FOLDER)}) …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


_ANNOUNCEMENT = _Announcement()
event.register("numba:compile", _ANNOUNCEMENT)


def number_compiled() -> int:
    """How many kernels this process has compiled."""
    return _ANNOUNCEMENT.count
