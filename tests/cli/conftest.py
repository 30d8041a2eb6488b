"""Files to run commands on, and processes to run them in."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import draw
from samples import write_samples
from short_search import fewer_candidates

import rankwise as rw
from rankwise.io import read_data


@pytest.fixture(scope="module")
def short_search() -> Iterator[None]:
    """LinearRanker tries a third of its candidates, in all tests of a module."""
    with fewer_candidates():
        yield


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of graded samples in queries, and of 0 and 1 without; no test changes them."""
    root = tmp_path_factory.mktemp("samples")
    for name, seed in (("train", 1), ("test", 2)):
        X, y, qid = draw(seed)
        write_samples(root / f"{name}.svm", X, y, qid)
        write_samples(root / f"{name}.csv", X, y, qid)
        write_samples(root / f"{name}.txt.gz", X, y, qid)
        write_samples(root / f"{name}-flat.svm", X, y >= 1)
    return root


@pytest.fixture(scope="session")
def fitted(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RankSVM of train.csv, which Python trained and saved; no test changes it."""
    path = tmp_path_factory.mktemp("fitted") / "model.rw"
    data = read_data(samples / "train.csv")
    model = rw.RankSVM("ap", 10.0).fit(data.X, data.y >= 1, data.qid)
    model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    model.save(path)
    return path


@pytest.fixture
def folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of graded samples in queries, and of 0 and 1 without; commands are run in the folder."""
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder: Path, fitted: Path) -> Path:
    """A model of train.csv, with names of features."""
    return Path(shutil.copy(fitted, folder / "model.rw"))


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
