"""Kernels are compiled once per machine, never silently, and kept: where one says, or else where they can be."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import event
from numpy.typing import NDArray

import rankwise
from rankwise.arguments import as_relevant, as_scores
from rankwise.kernels import compiled

# Compiles one small kernel; the fast engine would take much longer.
CODE = """
import numpy as np
from rankwise.kernels.sorting import order_by_key
print(order_by_key(np.array([1, 0, 1]), 2)[0].tolist())
"""
PRINTED = "[1, 0, 2]\n"
SAID = "rankwise: compiling its kernels for this machine, about 5 to 15 s ("


class Run(NamedTuple):
    printed: str
    said: str
    kept: dict[str, int]  # files of kernels and when they were written


def add_one(value: float) -> float:
    return value + 1


def run(folder: Path, **settings: str) -> Run:
    """The program, told to keep kernels in a folder; kept: those in `folder`."""
    environment = {**os.environ, "RANKWISE_CACHE_DIR": str(folder), **settings}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    return Run(done.stdout, done.stderr, kernels_in(folder))


def kernels_in(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.suffix == ".nbc"] if folder.is_dir() else []
    return {str(path): path.stat().st_mtime_ns for path in files}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same program twice, with a cache of its own: cold and warm."""
    folder = tmp_path_factory.mktemp("cache") / "not" / "yet" / "there"
    return run(folder), run(folder)


@pytest.fixture
def in_the_way(tmp_path: Path) -> Path:
    """A file where a folder is wanted: not even the superuser can write there."""
    file = tmp_path / "a file"
    file.write_text("in the way")
    return file


@pytest.fixture
def elsewhere(tmp_path: Path, in_the_way: Path) -> dict[str, str]:
    """Settings under which no folder can be written, a copy of the package being used."""
    package = tmp_path / "packages" / "rankwise"
    shutil.copytree(Path(rankwise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("in the way")
    return {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(in_the_way)}


@pytest.mark.slow
def test_cold_and_warm_kernels_compute_the_same(runs: tuple[Run, Run]) -> None:
    assert [each.printed for each in runs] == [PRINTED, PRINTED]


def test_compiling_is_announced_once_on_standard_error_with_how_long_it_takes(runs: tuple[Run, Run]) -> None:
    cold, _ = runs
    assert cold.said.count(SAID) == 1
    assert "(kept in " in cold.said
    assert len(cold.said.splitlines()) == 1


def test_warm_kernels_are_loaded_in_silence(runs: tuple[Run, Run]) -> None:
    cold, warm = runs
    assert warm.said == ""
    assert warm.kept == cold.kept


def test_kernels_are_kept_in_the_folder_one_names(runs: tuple[Run, Run]) -> None:
    cold, _ = runs
    assert any("order_by_key" in name for name in cold.kept)
    assert all("kernels-" in name for name in cold.kept)


@pytest.mark.slow
def test_another_environment_with_the_same_sources_uses_the_same_kernels(
    runs: tuple[Run, Run], elsewhere: dict[str, str]
) -> None:
    cold, _ = runs
    folder = next(Path(name).parents[2] for name in cold.kept)
    found = run(folder, **elsewhere)
    assert (found.printed, found.said, found.kept) == (PRINTED, "", cold.kept)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where kernels that a test compiles are kept."""
    monkeypatch.setattr(compiled, "_FOLDER", tmp_path)
    return tmp_path


def test_processes_that_compile_at_once_find_the_kernels_of_each_other(folder: Path) -> None:
    one, other = compiled.kernel(add_one), compiled.kernel(add_one)
    assert (one(1), other(0.5)) == (2, 1.5)
    assert len(kernels_in(folder)) == 2
    later = compiled.kernel(add_one)
    assert (later(1), later(0.5)) == (2, 1.5)
    assert sum(later.stats.cache_hits.values()) == 2
    later.recompile()
    assert sum(later.stats.cache_misses.values()) == 2  # it forgot all, and compiled both again


def test_a_file_that_was_cut_off_or_damaged_is_written_again(folder: Path) -> None:
    assert compiled.kernel(add_one)(1) == 2
    (name,) = kernels_in(folder)
    whole = Path(name).read_bytes()
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (b"", whole[:10], whole[:-1], damaged):
        Path(name).write_bytes(content)
        again = compiled.kernel(add_one)
        assert again(1) == 2
        assert not again.stats.cache_hits
        warm = compiled.kernel(add_one)
        assert warm(1) == 2
        assert warm.stats.cache_hits


FOREIGN = {
    "a module that is missing": b"cno_such_module\nthing\n.",
    "a name that is missing": b"cos\nno_such_name\n.",
    "a list": pickle.dumps([1, 2, 3]),
    "a mapping": pickle.dumps({"kernel": None}),
    "a number": pickle.dumps(7),
    "nothing": pickle.dumps(None),
    "as many parts as a kernel has": pickle.dumps((None,) * 9),
    "noise": bytes(range(256)),
    "code that ends the process": b"cbuiltins\nexit\n(tR.",
}


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_that_holds_something_else_is_written_again(folder: Path, content: str) -> None:
    assert compiled.kernel(add_one)(1) == 2
    (name,) = kernels_in(folder)
    Path(name).write_bytes(FOREIGN[content])
    again = compiled.kernel(add_one)
    assert again(1) == 2
    assert not again.stats.cache_hits
    warm = compiled.kernel(add_one)
    assert warm(1) == 2
    assert warm.stats.cache_hits


def test_without_standard_error_compiling_is_not_announced_on_standard_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_the_package(value: float) -> float:
        return value + 1

    of_the_package.__module__ = "rankwise.kernels.tried"
    with monkeypatch.context() as closed, event.install_listener("numba:compile", compiled._Announcement()):
        closed.setattr(sys, "stderr", None)
        assert compiled.kernel(of_the_package)(1) == 2
    assert capsys.readouterr().out == ""


def test_a_full_disk_costs_the_file_and_not_the_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert compiled.kernel(add_one)(1) == 2
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_said_and_another_one_used(
    in_the_way: Path, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    caches = {**elsewhere, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    cold = run(in_the_way, **caches)
    kept = kernels_in(tmp_path / "caches" / "rankwise")
    assert kept
    warm = run(in_the_way, **caches)
    assert cold.printed == warm.printed == PRINTED
    for each in (cold, warm):
        assert "RuntimeWarning: RANKWISE_CACHE_DIR: " in each.said
        assert str(in_the_way) in each.said
        assert f"compiled kernels are kept in {tmp_path / 'caches' / 'rankwise'}" in each.said
    assert SAID in cold.said
    assert SAID not in warm.said
    assert kernels_in(tmp_path / "caches" / "rankwise") == kept
    assert in_the_way.read_text() == "in the way"


@pytest.mark.slow
def test_where_no_folder_can_be_written_kernels_live_for_the_process_and_it_is_said(
    in_the_way: Path, elsewhere: dict[str, str]
) -> None:
    found = run(in_the_way, **elsewhere)
    assert found.printed == PRINTED
    assert found.said.count("for this process only: no cache folder can be written") == 2  # a warning, and compiling


def test_a_folder_is_tried_not_asked_for_its_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled._obstacle(tmp_path / "new" / "folder") is None
    assert list((tmp_path / "new" / "folder").iterdir()) == []

    def refuse(**options: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    assert "Read-only file system" in str(compiled._obstacle(tmp_path))


def test_other_code_keeps_its_own_numba_cache(tmp_path: Path) -> None:
    code = "from numba import config as c; a = c.CACHE_DIR; import rankwise.kernels; print(a == c.CACHE_DIR != '')"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "theirs")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def unaligned(values: NDArray[Any]) -> NDArray[Any]:
    held = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype)
    held[:] = values
    return held


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    held = values.copy()
    held.flags.writeable = False
    return held


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_array_asks_for_kernels_of_its_own(dtype: Any) -> None:
    values = np.arange(6).astype(dtype)
    forms = [unaligned(values), read_only(values), np.repeat(values, 2)[::2], values[::-1][::-1], values.astype(">f8")]
    for form in forms:
        scores, relevant = as_scores(form)[0], as_relevant(form > 2, 6)
        assert scores.tolist() == values.tolist()
        assert scores.flags.carray
        assert relevant.flags.carray
    assert as_scores(values)[0] is values
    for relevant in (read_only(values > 2), np.repeat(values > 2, 2)[::2]):
        assert as_relevant(relevant, 6).tolist() == (values > 2).tolist()
        assert as_relevant(relevant, 6).flags.carray
