"""Limits on the memory of data: data that are too large are refused before they are unpacked.

A file may unpack to a thousand times its size. By default, at most the free memory of the machine is used, and at most
1 GB or 100 times the size of the file, whichever is more. `max_memory` replaces both limits.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from rankwise.arguments import is_whole
from rankwise.io.quoting import shown

# The size that any file may unpack to, and the factor by which a larger one may grow.
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
    """Return a size in bytes, given as a whole number or as text such as "8GB" (10⁹) or "8GiB" (2³⁰)."""
    if isinstance(size, str):
        found = _SIZE.fullmatch(size.strip())
        if found:
            unit = (found[2] or "").lower()
            size = int(float(found[1]) * {**_UNITS, **_BINARY}[unit])
    if isinstance(size, str) or not is_whole(size) or size < 1:
        raise ValueError(f"max_memory must be a size such as '8GB', or a number of bytes, got {shown(size)}")
    return int(size)


def size_of(n: int) -> str:
    """Return a number of bytes as readable text."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}" if n < 1000 * factor else f"{n // factor:,} {unit}"
    return f"{n} bytes"


def available() -> int | None:
    """Return the bytes of memory that are free to this process; None if the system does not tell."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024 * int(line.split()[1]))
    if not found and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for most, used in _GROUPS:  # limits of a container
        with suppress(OSError, ValueError):  # "max" where there is none
            found.append(int(most.read_text()) - int(used.read_text()))
    return max(min(found), 0) if found else None


class TooLargeError(ValueError):
    """Error for data that would take more memory than allowed."""


@dataclass(frozen=True)
class Limit:
    """How much memory a source of `packed` bytes may take; asked: the limit that the caller set, if any."""

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
        """The most bytes that may be used."""
        if self.asked is not None:
            return self.asked
        return self._grown if self._free is None else min(self._grown, self._free)

    @property
    def most_unpacked(self) -> int:
        """The most bytes that packed text may unpack to. It is read in pieces and need not fit into memory."""
        return self._grown if self.asked is None else self.asked

    def check(self, needed: int) -> None:
        """Refuse data that would take more bytes than allowed."""
        if needed > self.most:
            self._refuse(f"would take {size_of(needed)} in memory", self.most, needed)

    def check_unpacked(self, size: int) -> None:
        """Refuse packed text if this many unpacked bytes are too many."""
        if size > self.most_unpacked:
            self._refuse(f"unpacks to more than {size_of(self.most_unpacked)}", self.most_unpacked, 4 * size)

    def _refuse(self, what: str, most: int, enough: int) -> NoReturn:
        if self.asked is not None:
            why = f"max_memory= allows {size_of(most)}; raise it if you trust the file"
        elif most < self._grown:
            why = f"{size_of(most)} are free; use fewer samples, or pass max_memory='{_round(enough)}' to try"
        else:
            why = f"the default limit is {size_of(most)}; pass max_memory='{_round(enough)}' if you trust it"
        raise TooLargeError(f"{self.name} has {size_of(self.packed)} and {what}; {why}")


def _round(n: int) -> str:
    """Return a size to ask for, in whole GB."""
    return f"{-(-n // 10**9)}GB"
