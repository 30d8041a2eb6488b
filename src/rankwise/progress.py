"""Show the progress of a long task in one line."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TextIO

# For packages that extend rankwise.
__all__ = ["Progress"]


def tell(line: str) -> None:
    """Write a line to standard error if that is possible; for one that is None, `print` would take standard output."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # a full disk, a closed file
            print(line, file=sys.stderr, flush=True)


class Progress:
    """Write the latest text: over the same line on a terminal, otherwise as a new line every few seconds."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = title
        self._stream: TextIO | None = sys.stderr if stream is None else stream  # None if standard error is closed
        self._drawing = self._stream is not None and not self._stream.closed and self._stream.isatty()
        self._every = 0.1 if self._drawing else 5.0
        self._last = time.perf_counter()
        self._text: str | None = None

    def say(self, text: str) -> None:
        """Show a text, unless another was shown a moment ago."""
        self._text = text
        now = time.perf_counter()
        if now - self._last >= self._every:
            self._last = now
            self._write("" if self._drawing else "\n")

    def close(self) -> None:
        """Write the last text and end the line."""
        if self._text is not None:
            self._write("\n")

    def _write(self, end: str) -> None:
        if self._stream is None:
            return
        begin = "\r\x1b[K" if self._drawing else ""
        with suppress(OSError, ValueError):
            self._stream.write(f"{begin}{self._title}: {self._text}{end}")
            self._stream.flush()
