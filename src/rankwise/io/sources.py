"""Sources of bytes: a file, a pipe or standard input, gzipped or not; and a check whether they can be text."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from rankwise.io.memory import FLOOR, Limit, size_of
from rankwise.io.quoting import message_of

READ = "SVMlight/LETOR, CSV and TSV (each also gzipped), NPZ and Parquet are read"
GZIP, ZIP, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
# How many bytes are inspected before parsing, and the longest line that is passed to a parser.
BLOCK = 1 << 16
LONGEST_LINE = 1 << 26
_CHUNK = 1 << 20
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Source:
    """Bytes that can be read more than once: from a file, or `content` if they came through a pipe.

    max_memory: how much memory the caller allows, see `Limit`.
    """

    name: str
    content: bytes | None = None
    max_memory: int | None = None

    @cached_property
    def limit(self) -> Limit:
        """How much memory the data may take."""
        size = os.stat(self.name).st_size if self.content is None else len(self.content)
        return Limit(self.name, size, self.max_memory)

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
                    yield io.BufferedReader(_Unpacked(stream, self.limit), BLOCK)
            except EOFError:
                raise ValueError(f"{self.name}: the gzip data end too early; download the file again") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"{self.name}: the gzip data are damaged ({message_of(error)}); download the file again"
                ) from None

    def head(self) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as stream:
            return stream.read(BLOCK)


class _Unpacked(io.RawIOBase):
    """The bytes of a packed stream; refuses them when they become too many."""

    def __init__(self, stream: gzip.GzipFile, limit: Limit) -> None:
        self._stream, self._limit, self._read = stream, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = self._stream.readinto(buffer)
        self._read += n
        self._limit.check_unpacked(self._read)
        return n


def open_source(path: str | Path, max_memory: int | None = None) -> Source:
    """Return the source of that path; "-" is standard input. Content from a pipe is kept if it can be data."""
    if str(path) == "-":
        return _kept("standard input", sys.stdin.buffer, max_memory)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; check the name and the folder") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if stat.S_ISFIFO(mode):
        with open(path, "rb") as stream:
            return _kept(str(path), stream, max_memory)
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is neither a file nor a pipe; copy the data to a file")
    return Source(str(path), max_memory=max_memory)


def _kept(name: str, stream: BinaryIO, max_memory: int | None) -> Source:
    head = stream.read(BLOCK)
    if not head.startswith((GZIP, ZIP, PARQUET)):
        check_text(name, head)
    most = FLOOR if max_memory is None else max_memory
    content = io.BytesIO()
    while head:
        content.write(head)
        if content.tell() > most:
            raise ValueError(f"{name} has more than {size_of(most)}; write it to a file, or pass max_memory=")
        head = stream.read(_CHUNK)
    return Source(name, content.getvalue(), max_memory)


def check_text(name: str, head: bytes) -> None:
    """Refuse content that cannot be text, by its first bytes."""
    if not head:
        raise ValueError(f"{name} is empty; {READ}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name} is UTF-16 text; save it as UTF-8")
    for magic, what in ((ZIP, "npz"), (PARQUET, "parquet")):
        if head.startswith(magic):
            raise ValueError(f"{name} is {what}, not text; unpack it if it is gzipped, or pass format={what!r}")
    found = _NOT_TEXT.search(head)
    if found:
        raise ValueError(f"{name} is not text: byte 0x{found[0][0]:02x} at offset {found.start()}; {READ}")


def lines_of(name: str, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream with their numbers, from 1; refuse lines that are too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{name}, line {number}: longer than {LONGEST_LINE >> 20} MB; check that it is text with one sample "
                "per line"
            )
        yield number, line
