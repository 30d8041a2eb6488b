"""Where results go: text for people, JSON for programs. Files are checked before anything is computed."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankwise import __version__
from rankwise.io import write_bytes
from rankwise.io.quoting import printable
from rankwise.progress import tell

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def is_standard(path: Path | None) -> bool:
    """Whether a path is "-": standard input or output."""
    return path is not None and str(path) == "-"


def check_files(inputs: Mapping[str, Path], outputs: Mapping[str, Path | None]) -> None:
    """Refuse "-" twice, an output that would overwrite an input or another output, and one that cannot be written."""
    written = {option: path for option, path in outputs.items() if path is not None}
    for side in (inputs, written):
        twice = [option for option, path in side.items() if is_standard(path)]
        if len(twice) > 1:
            raise ValueError(f"{twice[0]} and {twice[1]} cannot both be '-'; name a file for one of them")
    if sys.stdout is None and any(is_standard(path) for path in written.values()):
        raise ValueError("standard output is closed; name a file")
    taken = {os.path.realpath(path): option for option, path in inputs.items() if not is_standard(path)}
    for option, path in written.items():
        if is_standard(path):
            continue
        check_writable(path)
        place = os.path.realpath(path)
        if place in taken and _is_replaced(place):
            raise ValueError(f"{option} would overwrite {taken[place]}, {path}; name another file")
        taken[place] = option


def check_writable(path: Path | None) -> None:
    """Raise before anything is computed if its result could not be written."""
    if path is None:
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}; create it first")
    try:
        if _is_replaced(target):
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        elif not os.access(target, os.W_OK):
            raise PermissionError(0, "no permission")
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror}); name another file") from None


def _is_replaced(target: str | Path) -> bool:
    """Whether a new file takes its place: not that of a device or a pipe."""
    return not os.path.exists(target) or stat.S_ISREG(os.stat(target).st_mode)


class Voice:
    """Prints text for people: on standard output, or on standard error if the results go to standard output."""

    def __init__(self, *, quiet: bool = False, aside: bool = False) -> None:
        self._quiet, self._aside = quiet, aside
        self.notes: list[str] = []

    def say(self, *lines: str) -> None:
        """Results."""
        if not self._quiet:
            print("\n".join(map(printable, lines)), file=sys.stderr if self._aside else sys.stdout, flush=True)

    def progress(self, line: str) -> None:
        """What is being done."""
        if not self._quiet:
            tell(printable(line))

    def note(self, line: str) -> None:
        """A warning, printed even when quiet."""
        self.notes.append(line)
        tell(f"rankwise: {printable(line)}")

    @contextmanager
    def noting_warnings(self) -> Iterator[None]:
        """Print the warnings of Python as notes, each once, unless there is an error."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            self.note(" ".join(message.split()))


def write_text(path: Path | None, text: str) -> None:
    """Write text to a file, atomically, or to standard output; nowhere if there is no path."""
    if is_standard(path):
        sys.stdout.write(text)
    elif path is not None:
        write_bytes(path, text.encode())


def write_document(path: Path | None, command: str, document: Mapping[str, Any]) -> None:
    """Write what a command found as JSON, where `write_text` does."""
    if path is not None:
        whole = {"command": command, "rankwise": __version__, **document}
        text = json.dumps(_plain(whole), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        # Of a file name that is not UTF-8, Python has surrogates, which JSON can hold escaped.
        write_text(path, text.encode("utf-8", "backslashreplace").decode())


def _plain(value: Any) -> Any:
    """The value as JSON: arrays become lists, and numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
