"""Where bytes come from: a file, a pipe or standard input, gzipped or not; and whether they can be text."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

READ = "SVMlight/LETOR, CSV and TSV (each also gzipped), NPZ and Parquet are read"
GZIP, ZIP, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
# How much is looked at before a file is handed to a parser, and the longest line that a parser is handed.
BLOCK = 1 << 16
LONGEST_LINE = 1 << 26
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_SHOWN = 40

Text = TypeVar("Text", str, bytes)


@dataclass(frozen=True)
class Source:
    """Bytes that can be read more than once: of a file, or `content` where they came through a pipe."""

    name: str
    content: bytes | None = None

    def raw(self) -> BinaryIO:
        """The bytes as they are."""
        return open(self.name, "rb") if self.content is None else io.BytesIO(self.content)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes, unpacked if they are gzipped, whatever the file is called."""
        with self.raw() as raw:
            packed = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            if not packed:
                yield raw
                return
            try:
                with io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb"), BLOCK) as stream:
                    yield stream
            except EOFError:
                raise ValueError(f"{self.name}: the gzip data end too early; fetch or write the file again") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"{self.name}: the gzip data are damaged ({error}); fetch or write the file again"
                ) from None

    def head(self) -> bytes:
        """The first bytes, unpacked."""
        with self.open() as stream:
            return stream.read(BLOCK)


def open_source(path: str | Path) -> Source:
    """The source of that path; "-" is standard input. What comes through a pipe is kept, if it can be data."""
    if str(path) == "-":
        return _kept("standard input", sys.stdin.buffer)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; check the name and the folder") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if stat.S_ISFIFO(mode):
        with open(path, "rb") as stream:
            return _kept(str(path), stream)
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is neither a file nor a pipe: copy the data to a file")
    return Source(str(path))


def _kept(name: str, stream: BinaryIO) -> Source:
    head = stream.read(BLOCK)
    if not head.startswith((GZIP, ZIP, PARQUET)):
        check_text(name, head)
    return Source(name, head + stream.read())


def check_text(name: str, head: bytes) -> None:
    """Refuse what cannot be text, by its first bytes."""
    if not head:
        raise ValueError(f"{name} is empty; {READ}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name} is UTF-16 text; save it as UTF-8")
    for magic, what in ((ZIP, "npz"), (PARQUET, "parquet")):
        if head.startswith(magic):
            raise ValueError(f"{name} is not text but {what}; unpack it if it is gzipped, or pass format={what!r}")
    found = _NOT_TEXT.search(head)
    if found:
        raise ValueError(f"{name} is not text: byte 0x{found[0][0]:02x} at offset {found.start()}; {READ}")


def lines_of(name: str, readline: Callable[[int], Text]) -> Iterator[Text]:
    """The lines of a stream, each with its end; one without end is refused."""
    number = 0
    while line := readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise ValueError(f"{name}, line {number}: longer than {LONGEST_LINE >> 20} MB; is the file text of rows?")
        yield line


def shown(text: str | bytes) -> str:
    """What a file holds, fit to be printed: quoted, escaped and not too long."""
    if isinstance(text, bytes):
        text = text[: 4 * _SHOWN].decode("utf-8", "replace")
    return repr(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
