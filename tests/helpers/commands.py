"""Commands run in this process, and samples for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw
from rankwise.cli.main import main

RTOL, ATOL = 1e-9, 1e-9
PNG = b"\x89PNG\r\n\x1a\n"
COMMAND = [sys.executable, "-m", "rankwise.cli.main"]
Samples = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
Capture = pytest.CaptureFixture[str]


def draw(seed: int, n: int = 240, d: int = 6, n_queries: int = 12) -> Samples:
    """Grades 0, 1, 2 that the features tell of, in queries of about equal size; offsets and scales differ."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    latent = Z @ np.linspace(-1.0, 2.0, d) + rng.normal(size=n)
    y = (latent > 1.0).astype(float) + (latent > 3.0)
    return Z * np.linspace(0.5, 4.0, d) + 2.0, y, np.sort(rng.integers(1, n_queries + 1, n))


def run(line: str, *arguments: Any, status: int = 0) -> None:
    """A command in words, and arguments that may hold spaces."""
    assert main([*line.split(), *map(str, arguments)]) == status


def document(line: str) -> dict[str, Any]:
    """What a command writes with --json."""
    run(f"{line} --json found.json")
    found: dict[str, Any] = json.loads(Path("found.json").read_text())
    return found


def refused(capsys: Capture, line: str, *arguments: Any) -> str:
    """The one line that a command refuses its arguments or input with."""
    capsys.readouterr()
    try:
        status: Any = main([*line.split(), *map(str, arguments)])
    except SystemExit as stopped:
        status = stopped.code
    printed = capsys.readouterr()
    said = one_line(printed.err)
    assert status == 2, said
    assert printed.out == ""
    assert said.startswith("rankwise")
    return said


def scores_of(model: Path, X: Any) -> NDArray[np.float64]:
    stored = rw.load(model)
    return np.asarray(X @ stored.coef_[0] + stored.intercept_[0])


def one_line(said: str) -> str:
    """What was said, and that it was a line."""
    (line,) = said.strip().splitlines()
    return line
