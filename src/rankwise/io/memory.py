"""How much memory data may take: known, and refused where it is too much, before they are unpacked.

A file may unpack to a thousand times its size. By default no more is read than the machine has memory free, and no
more than 1 GB or 100 times the file, whichever is more; `max_memory` replaces both.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from rankwise.inputs import is_whole
from rankwise.io.quoting import shown

# What any file may unpack to, and by how much a larger one may grow.
FLOOR = 10**9
RATIO = 100
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]i?)?b?", re.IGNORECASE)
_MEMINFO = Path("/proc/meminfo")
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


def as_bytes(size: int | str) -> int:
    """A size in bytes: a whole number of them, or text such as "8GB" (10⁹) or "8GiB" (2³⁰)."""
    if isinstance(size, str):
        found = _SIZE.fullmatch(size.strip())
        if found:
            unit = (found[2] or "").lower()
            size = int(float(found[1]) * {**_UNITS, **_BINARY}[unit])
    if isinstance(size, str) or not is_whole(size) or size < 1:
        raise ValueError(f"max_memory must be a size such as '8GB', or a number of bytes, got {shown(size)}")
    return int(size)


def size_of(n: int) -> str:
    """A number of bytes for people."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}" if n < 1000 * factor else f"{n // factor:,} {unit}"
    return f"{n} bytes"


def available() -> int | None:
    """Bytes of memory that are free to this process, as far as the system tells."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024 * int(line.split()[1]))
    if not found and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for most, used in _GROUPS:  # of a container
        with suppress(OSError, ValueError):  # "max" where there is none
            found.append(int(most.read_text()) - int(used.read_text()))
    return max(min(found), 0) if found else None


class TooLargeError(ValueError):
    """Data that would take more memory than they may."""


@dataclass(frozen=True)
class Limit:
    """What a source of `packed` bytes may take in memory; asked: what the caller allows instead of the usual."""

    name: str
    packed: int
    asked: int | None = None

    @cached_property
    def _grown(self) -> int:
        return max(FLOOR, RATIO * self.packed)

    @cached_property
    def _free(self) -> int | None:
        return available()

    @property
    def most(self) -> int:
        """The most bytes that may be taken."""
        if self.asked is not None:
            return self.asked
        return self._grown if self._free is None else min(self._grown, self._free)

    @property
    def most_unpacked(self) -> int:
        """The most bytes that packed text may unpack to: it is read in pieces, and need not fit into memory."""
        return self._grown if self.asked is None else self.asked

    def check(self, needed: int) -> None:
        """Refuse data that would take more bytes than they may."""
        if needed > self.most:
            self._refuse(f"would take {size_of(needed)} in memory", self.most, needed)

    def check_unpacked(self, size: int) -> None:
        """Refuse packed text of which this many bytes were unpacked."""
        if size > self.most_unpacked:
            self._refuse(f"unpacks to more than {size_of(self.most_unpacked)}", self.most_unpacked, 4 * size)

    def _refuse(self, what: str, most: int, enough: int) -> NoReturn:
        if self.asked is not None:
            why = f"max_memory= allows {size_of(most)}: raise it if you trust the file"
        elif most < self._grown:
            why = f"{size_of(most)} are free: give fewer samples, or pass max_memory='{_round(enough)}' to try"
        else:
            why = f"at most {size_of(most)} are read of it: pass max_memory='{_round(enough)}' if you trust it"
        raise TooLargeError(f"{self.name} has {size_of(self.packed)} and {what}; {why}")


def _round(n: int) -> str:
    """A size to ask for, in whole GB."""
    return f"{-(-n // 10**9)}GB"
