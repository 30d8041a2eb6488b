"""Files: written whole or not at all; read more than once, and unpacked."""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rankwise.io.quoting import message_of

READ = "SVMlight/LETOR, CSV and TSV (each also gzipped) and Parquet are read"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
# How many bytes are inspected before parsing, and the longest line that is passed to a parser.
BLOCK = 1 << 16
LONGEST_LINE = 1 << 26
# Data may take so many bytes in memory, whatever the size of their file.
FREE = 10**9
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes to a file atomically: a reader sees the old content or the new, even if the process is killed.

    Parameters
    ----------
    path : str or Path
        The file, which is replaced if it exists.
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

    The content goes to a temporary file beside `path`, which replaces it at the end, or is removed after an error.

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
    ...         file.write(b"done")
    4
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


@dataclass(frozen=True)
class Source:
    """Bytes that can be read more than once: from a file of this size, or `content` if they came through a pipe."""

    name: str
    size: int
    content: bytes | None = None

    def check_memory(self, needed: int, remedy: str) -> None:
        """Refuse data of over 1 GB and 100 times the size of the file, which is damaged or made to fill the memory."""
        if needed > max(FREE, 100 * self.size):
            raise ValueError(f"{self.name} has {self.size:,} bytes, but would take {needed:,} in memory; {remedy}")

    def raw(self) -> BinaryIO:
        """Open the bytes as they are."""
        return open(self.name, "rb") if self.content is None else io.BytesIO(self.content)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes, unpacked if they are gzipped, whatever the name of the file."""
        with self.raw() as raw:
            packed = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            if not packed:
                yield raw
                return
            try:
                with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
                    yield stream  # type: ignore[misc]
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                what = "end too early" if isinstance(error, EOFError) else f"are damaged ({message_of(error)})"
                raise ValueError(f"{self.name}: the gzip data {what}; download the file again") from None

    def head(self) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as stream:
            return stream.read(BLOCK)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines, unpacked, with their numbers from 1; refuse one that is too long."""
        with self.open() as stream:
            packed, number, unpacked = isinstance(stream, gzip.GzipFile), 0, 0
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                unpacked += len(line)
                if packed:
                    self.check_memory(unpacked, "if you trust it, unpack it first")
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{self.name}, line {number}: longer than {LONGEST_LINE >> 20} MB; check that it is text with "
                        "one sample per line"
                    )
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def open_source(path: str | Path) -> Source:
    """Return the source of that path; "-" is standard input. Content from a pipe is kept."""
    if str(path) == "-":
        return _kept("standard input", sys.stdin.buffer)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; check the name and the folder") from None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if stat.S_ISFIFO(found.st_mode):
        with open(path, "rb") as stream:
            return _kept(str(path), stream)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is neither a file nor a pipe; copy the data to a file")
    return Source(str(path), found.st_size)


def _kept(name: str, stream: BinaryIO) -> Source:
    """Return what a pipe holds, unless its beginning cannot be data: it may be endless."""
    head = stream.read(BLOCK)
    if not head.startswith((GZIP, PARQUET)):
        check_text(name, head)
    content = head + stream.read()
    return Source(name, len(content), content)


def check_text(name: str, head: bytes) -> None:
    """Refuse content that cannot be text, by its first bytes."""
    if not head:
        raise ValueError(f"{name} is empty; {READ}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name} is UTF-16 text; save it as UTF-8")
    if head.startswith(PARQUET):
        raise ValueError(f"{name} is parquet, not text; unpack it if it is gzipped, or pass format='parquet'")
    if head[30:43] == b"rankwise.json":  # the name of the first member of an archive
        raise ValueError(f"{name} is a model, not data; name a file of samples instead")
    if found := _NOT_TEXT.search(head):
        raise ValueError(f"{name} is not text: byte 0x{found[0][0]:02x} at offset {found.start()}; {READ}")
