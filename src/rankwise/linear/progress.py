"""One line that says how far a fit has come."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rankwise.linear.solvers import Step

__all__ = ["Progress"]


class Progress:
    """Writes objective, gap and planes: on a terminal over the same line, elsewhere every few seconds."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title, self._stream = title, sys.stderr if stream is None else stream
        self._drawing = self._stream.isatty()
        self._every = 0.1 if self._drawing else 5.0
        self._last = time.perf_counter()
        self._step: Step | None = None

    def __call__(self, step: Step) -> None:
        self._step = step
        now = time.perf_counter()
        if now - self._last >= self._every:
            self._last = now
            self._write(step, "" if self._drawing else "\n")

    def close(self) -> None:
        """Leave the last line standing."""
        if self._step is not None:
            self._write(self._step, "\n")

    def _write(self, step: Step, end: str) -> None:
        begin = "\r\x1b[K" if self._drawing else ""
        self._stream.write(
            f"{begin}{self._title}: iteration {step.iteration}, objective {step.primal:.6g}, gap {step.gap:.1e}, "
            f"{step.planes} planes, {step.calls} inference calls, {step.seconds:.1f} s{end}"
        )
        self._stream.flush()
