"""Files to run commands on, and processes to run them in."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import SVM, draw, run

from rankwise.io import write_data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of graded samples in queries, and of 0 and 1 without; commands are run in the folder."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 1), ("test", 2)):
        X, y, qid = draw(seed)
        write_data(f"{name}.svm", X, y, qid)
        write_data(f"{name}.csv", X, y, qid)
        write_data(f"{name}.npz", X, y, qid)
        write_data(f"{name}.txt.gz", X, y, qid)
        write_data(f"{name}-flat.svm", X, y >= 1)
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    """A model of train.csv, with names of features."""
    run("fit", *SVM, "train.csv", "-o", "model.rw", "--C", 10, "--quiet")
    return folder / "model.rw"


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process in which Ctrl-C works, whatever this one was started by; it does not outlive the test."""
    started = []

    def begin(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(
            [str(part) for part in command],
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **options,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
