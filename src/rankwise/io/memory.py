"""A limit on the memory of data: a small file that would unpack to a huge one is refused before it is unpacked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from rankwise.arguments import is_whole
from rankwise.io.quoting import shown

# The size that any file may unpack to, and the factor by which a larger one may grow.
FLOOR, RATIO = 10**9, 100
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]i?)?b?", re.IGNORECASE)


def as_bytes(size: int | str) -> int:
    """Return a size in bytes, given as a whole number or as text such as "8GB" (10⁹) or "8GiB" (2³⁰)."""
    if isinstance(size, str) and (found := _SIZE.fullmatch(size.strip())):
        size = int(float(found[1]) * _UNITS[(found[2] or "").lower()])
    if not is_whole(size) or int(size) < 1:
        raise ValueError(f"max_memory must be a size such as '8GB', or a number of bytes, got {shown(size)}")
    return int(size)


def size_of(n: int) -> str:
    """Return a number of bytes as readable text."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}" if n < 1000 * factor else f"{n // factor:,} {unit}"
    return f"{n} bytes"


class TooLarge(Exception):
    """Data would take more memory than allowed; not a ValueError, which the readers take for a fault in the data."""


@dataclass(frozen=True)
class Limit:
    """How much memory a file of `packed` bytes may take; asked: the limit that the caller set, if any."""

    name: str
    packed: int
    asked: int | None = None

    @cached_property
    def most(self) -> int:
        """The most bytes that may be used."""
        return max(FLOOR, RATIO * self.packed) if self.asked is None else self.asked

    def check(self, needed: int, why: str = "", *, so_far: bool = False) -> None:
        """Refuse data that would take more bytes than allowed. why: what for. so_far: there may be more to come."""
        if needed <= self.most:
            return
        what = f"more than {size_of(self.most)}" if so_far else size_of(needed)
        remedy = f"max_memory= allows {size_of(self.most)}; raise it if you trust the file"
        if self.asked is None:
            enough = -(-(4 * needed if so_far else needed) // 10**9)
            remedy = f"the default limit is {size_of(self.most)}; pass max_memory='{enough}GB' if you trust it"
        raise TooLarge(f"{self.name} has {size_of(self.packed)} and would take {what} in memory{why}; {remedy}")
