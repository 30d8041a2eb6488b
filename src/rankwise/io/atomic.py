"""Files written whole or not at all: a reader sees the old content or the new, whenever the writer dies."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write `content` to `path`, atomically."""
    with open_atomic(path) as file:
        file.write(content)


@contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """A temporary file beside `path`, moved into its place at the end; removed if anything goes wrong.

    A link is followed, the permissions of a file that is there are kept, and what cannot be replaced (a device such as
    /dev/null, a pipe) is written to as it is.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: no folder {target.parent}; make it first")
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            yield file
        return
    # Named before it is made: an interrupt in between leaves nothing that would not be removed. Cut to what a file
    # system takes, 255 bytes.
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
