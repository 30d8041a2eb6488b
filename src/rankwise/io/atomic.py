"""Write files whole or not at all: a reader sees the old content or the new, even if the writer is killed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes to a file atomically: a reader sees the old content or the new, even if the process is killed.

    Parameters
    ----------
    path : str or Path
        The file. It is replaced if it exists.
    content : bytes
        The new content.

    See Also
    --------
    open_atomic : Write a file atomically in several steps.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(f"{folder}/note.txt", b"done")
    ...     Path(folder, "note.txt").read_text()
    'done'
    """
    with open_atomic(path) as file:
        file.write(content)


@contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for atomic writing, in a `with` statement.

    The content goes to a temporary file beside `path`, which replaces `path` at the end, or is removed after an error.

    Parameters
    ----------
    path : str or Path
        The file. Links are followed, and the permissions of an existing file are kept. A device or pipe, such as
        /dev/null, is written to directly.

    Yields
    ------
    BinaryIO
        The file to write to.

    See Also
    --------
    write_bytes : Write bytes to a file atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_atomic(f"{folder}/note.txt") as file:
    ...         _ = file.write(b"done")
    ...     Path(folder, "note.txt").read_text()
    'done'
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist; create it first")
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            yield file
        return
    # Named before it is created, so that an interrupt in between leaves no file behind. Cut to fit the 255 bytes that a
    # file system allows.
    stem = os.fsdecode(os.fsencode(target.name)[:200])
    temporary = target.with_name(f".{stem}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
