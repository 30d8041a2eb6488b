"""Progress of long runs: a bar on a terminal, elsewhere one line per section."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import RLock
from typing import TextIO

from tqdm import tqdm


class _Bar(tqdm):  # type: ignore[misc]
    """A bar that is drawn only on updates: without a thread, or a lock that processes share."""

    monitor_interval = 0


_Bar.set_lock(RLock())


class Progress:
    """Show progress through sections of steps, on standard error or another stream."""

    _FORM = "{bar:24} {n_fmt}/{total_fmt} [{elapsed}<{remaining}] {desc}"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bar: _Bar | None = None
        self._begun = self.done = self.total = 0

    def section(self, title: str, total: int, done: int = 0) -> None:
        """Begin a section of `total` steps, of which so many were done before."""
        self.close()
        self._begun, self.done, self.total = done, done, total
        if self._stream.isatty():
            how = {"leave": False, "dynamic_ncols": True, "bar_format": self._FORM, "delay": 1e-9}
            self._bar = _Bar(total=total, initial=done, file=self._stream, **how)
        else:
            self._stream.write(f"{title}\n")
            self._stream.flush()

    def step(self, label: str) -> None:
        """Name the step that runs now; the one before it is done."""
        self.at(self._begun, label)
        self._begun += 1

    def at(self, done: int, label: str) -> None:
        """Set how many steps are done, and name the last or the next."""
        self.done = done
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_description_str(label)

    def follow(self, title: str, labels: Iterable[str], total: int) -> None:
        """Follow a section of steps that return their label when they are done."""
        self.section(title, total)
        try:
            for done, label in enumerate(labels, 1):
                self.at(done, label)
        finally:
            self.close()

    def clear(self) -> None:
        """Clear the bar before something else is printed; the next step draws it again."""
        if self._bar is not None:
            self._bar.clear()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
