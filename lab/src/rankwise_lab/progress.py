"""How far something long has come: a bar on a terminal, elsewhere a line a section."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import RLock
from typing import TextIO

from tqdm import tqdm

__all__ = ["Progress"]


class _Bar(tqdm):  # type: ignore[misc]
    """Drawn when it is told something and at no other time: without a thread, or a lock that processes share."""

    monitor_interval = 0


_Bar.set_lock(RLock())


class Progress:
    """Tells of sections, each of so many steps, on standard error or another stream."""

    _FORM = "{bar:24} {n_fmt}/{total_fmt} [{elapsed}<{remaining}] {desc}"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bar: _Bar | None = None
        self._begun, self.total = 0, 0

    def section(self, title: str, total: int) -> None:
        """Begin a section of `total` steps."""
        self.close()
        self._begun, self.total = 0, total
        if self._stream.isatty():
            self._bar = _Bar(
                total=total, file=self._stream, leave=False, dynamic_ncols=True, bar_format=self._FORM, delay=1e-9
            )
        else:
            self._stream.write(f"{title}\n")
            self._stream.flush()

    def step(self, label: str) -> None:
        """Say what runs now; the step before it is done."""
        self.at(self._begun, label)
        self._begun += 1

    def at(self, done: int, label: str) -> None:
        """Say how many steps are done, and what is the last or the next."""
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_description_str(label)

    def follow(self, title: str, labels: Iterable[str], total: int) -> None:
        """A section of steps that give their label when they are done."""
        self.section(title, total)
        try:
            for done, label in enumerate(labels, 1):
                self.at(done, label)
        finally:
            self.close()

    def clear(self) -> None:
        """Take the bar away, before something else is printed; the next step brings it back."""
        if self._bar is not None:
            self._bar.clear()

    def close(self) -> None:
        """Take the bar away for good."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
