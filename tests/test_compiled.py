"""Kernels are compiled once per machine, kept where one is told to keep them, and never silently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

# Compiles two small kernels; the fast engine would take much longer.
CODE = """
import numpy as np
from rankwise.inference.grouping import order_by_key
from rankwise.inference.positives import order_descending
print(order_by_key(np.array([1, 0, 1]), 2)[0].tolist(), order_descending(np.array([1.0, 3.0, 2.0]))[1].tolist())
"""
PRINTED = "[1, 0, 2] [1, 2, 0]\n"
SAID = "rankwise: compiling its kernels for this machine"


class Run(NamedTuple):
    printed: str
    said: str
    kept: dict[str, int]  # files of kernels and when they were written


def run(folder: Path, **settings: str) -> Run:
    environment = {**os.environ, "RANKWISE_CACHE_DIR": str(folder), **settings}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    files = [path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc")] if folder.is_dir() else []
    return Run(done.stdout, done.stderr, {str(path): path.stat().st_mtime_ns for path in files})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same program twice, with a cache of its own: cold and warm."""
    folder = tmp_path_factory.mktemp("cache") / "not" / "yet" / "there"
    return run(folder), run(folder)


def test_cold_and_warm_kernels_compute_the_same(runs: tuple[Run, Run]) -> None:
    assert [each.printed for each in runs] == [PRINTED, PRINTED]


def test_compiling_is_announced_once_on_standard_error(runs: tuple[Run, Run]) -> None:
    cold, _ = runs
    assert cold.said.count(SAID) == 1
    assert "kept for the next time" in cold.said
    assert len(cold.said.splitlines()) == 1


def test_warm_kernels_are_loaded_in_silence(runs: tuple[Run, Run]) -> None:
    cold, warm = runs
    assert warm.said == ""
    assert warm.kept == cold.kept


def test_kernels_are_kept_in_the_folder_one_names(runs: tuple[Run, Run]) -> None:
    cold, _ = runs
    assert any("order_by_key" in name for name in cold.kept)
    assert all("kernels-" in name for name in cold.kept)


def test_where_no_folder_can_be_written_kernels_live_for_the_process_and_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("in the way")
    found = run(file)
    assert found.printed == PRINTED
    assert "for this process only: no cache folder can be written" in found.said
    assert file.read_text() == "in the way"


def test_other_code_keeps_its_own_numba_cache(tmp_path: Path) -> None:
    code = "from numba import config as c; a = c.CACHE_DIR; import rankwise.inference; print(a == c.CACHE_DIR != '')"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "theirs")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
