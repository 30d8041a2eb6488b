"""A score that is not finite, or too large, is refused by its place: in child processes, as none may crash."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import not_finite
import pytest

TIMEOUT = 600  # seconds: compiling all kernels is the slowest part


def assert_refused(way: str, *sizes: int) -> None:
    command = [sys.executable, not_finite.__file__, way, *map(str, sizes)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=TIMEOUT)
    assert run.returncode == 0, f"having spoilt its memory here or before: {run.stderr[-2000:]}"
    assert run.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 17, 100), (5000, 65_535), (65_536, 70_000), (200_000,)])
def test_a_score_that_is_no_number_is_refused_by_its_place(sizes: tuple[int, ...]) -> None:
    assert_refused("numpy", *sizes)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("sizes", [(5, 100), (65_535, 70_000)], ids=["small", "large"])
def test_a_score_that_is_no_number_is_refused_in_torch(sizes: tuple[int, ...]) -> None:
    assert_refused("torch", *sizes)
