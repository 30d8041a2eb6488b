"""A process that answers one line after the other: what many tests ask of a process of its own, imported once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer


class Answering:
    """Python with these arguments, which reads lines and writes a line for each; if it has ended, the next begins."""

    def __init__(self, *arguments: str, errors: Path, **variables: str) -> None:
        self._command, self._errors = [sys.executable, *arguments], errors
        self._environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **variables}
        self._process: subprocess.Popen[str] | None = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._errors.open("w", encoding="utf-8") as errors:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    env=self._environment, encoding="utf-8",
                )  # fmt: skip
        return self._process

    def ask(self, line: str, *, timeout: float) -> str:
        """What it answers to a line; an error if it ends instead, or must be ended after so many seconds."""
        process = self._running()
        assert process.stdin
        assert process.stdout
        alarm = Timer(timeout, process.kill)
        alarm.start()
        try:
            with suppress(BrokenPipeError):  # it has ended: there will be no answer
                process.stdin.write(line + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            alarm.cancel()
        if not answer.endswith("\n"):
            raise AssertionError(f"the process ended with {self.end()} {answer}\n{self.said()[-2000:]}")
        return answer[:-1]

    def said(self) -> str:
        """The standard error of the process so far."""
        return self._errors.read_text(encoding="utf-8")

    def end(self) -> int:
        """End the process where it runs: its code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin
        assert process.stdout
        with suppress(BrokenPipeError):
            process.stdin.close()  # no more lines: its end
        process.stdout.close()
        return process.wait()


@contextmanager
def answering(*arguments: str, **variables: str) -> Iterator[Answering]:
    """A process that is ended afterwards; variables: of its environment."""
    with tempfile.TemporaryDirectory() as folder:
        process = Answering(*arguments, errors=Path(folder) / "stderr", **variables)
        try:
            yield process
        finally:
            process.end()
