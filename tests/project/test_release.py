"""A release: one version, a wheel and an sdist with the right contents, and a wheel that works once installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from documents import examples

import rankwise
from rankwise.kernels import compiled

ROOT = Path(__file__).resolve().parents[2]
NAME = f"rankwise-{rankwise.__version__}"
IMPORTS_TORCH = re.compile(r"^(?:import|from) (?:rankwise\.)?torch\b", re.MULTILINE)
# What a checkout holds after some work, and a release must not.
LITTER = ("docs/gallery/page.rst", "docs/notebooks/page.ipynb", "docs/api/generated/page.rst")
LITTER += ("tests/core/__pycache__/test.pyc", "lab/build/lib.py")
TOP = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md"}
TOP |= {"PKG-INFO", "conftest.py", "constraints-minimal.txt", "constraints-test.txt", "pyproject.toml", "setup.cfg"}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_file_that_names_the_version_names_this_one() -> None:
    version = rankwise.__version__
    assert 'version = { attr = "rankwise.__version__" }' in read("pyproject.toml")
    lab = read("lab/pyproject.toml")
    named = [*re.findall(r'^version = "(.*)"$', lab, re.MULTILINE), *re.findall(r"rankwise\[plots\]==([\d.]+)", lab)]
    assert named == [version, version]
    citation = dict(re.findall(r"^([\w-]+): \"?([^\"\n]+)\"?$", read("CITATION.cff"), re.MULTILINE))
    newest = re.search(r"^## \[(\S+)\] - (\S+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert newest
    assert newest.groups() == (version, citation["date-released"])
    assert citation["version"] == version
    for name in ("README.md", "docs/getting_started.md"):
        assert set(re.findall(r"rankwise-([\d.]+)-py3", read(name))) <= {version}
    assert read("LICENSE") == read("lab/LICENSE")


class Release(NamedTuple):
    """The files of a release."""

    wheel: Path
    sdist: Path
    lab: Path


def python(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def environment() -> dict[str, str]:
    """The environment without the sources in use, but with the kernels compiled for them."""
    kept = {} if compiled._FOLDER is None else {"RANKWISE_CACHE_DIR": str(compiled._FOLDER.parents[1])}
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | kept


def unwanted(folder: str, names: Sequence[str]) -> set[str]:
    """What a copy of the sources leaves out: environments, caches and builds."""
    hidden = {name for name in names if name.startswith(".") and name != ".ci"}
    return hidden | {name for name in names if name in ("build", "dist", "__pycache__") or name.endswith(".egg-info")}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Built from a copy of the sources with some litter in it; the wheel is built from the sdist."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("release")
    tree, dist = folder / "tree", folder / "dist"
    shutil.copytree(ROOT, tree, ignore=unwanted)
    for name in LITTER:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    # Without isolation nothing is downloaded: setuptools is that of this environment.
    python("-m", "build", "--no-isolation", "--outdir", dist, tree, cwd=folder)
    shutil.rmtree(tree / "lab" / "build")
    python("-m", "build", "--no-isolation", "--wheel", "--outdir", dist, tree / "lab", cwd=folder)
    lab = dist / f"rankwise_lab-{rankwise.__version__}-py3-none-any.whl"
    return Release(dist / f"{NAME}-py3-none-any.whl", dist / f"{NAME}.tar.gz", lab)


@pytest.mark.slow
@pytest.mark.parametrize(("house", "package"), [("", "rankwise"), ("lab", "rankwise_lab")])
def test_a_wheel_has_its_package_and_nothing_else(release: Release, house: str, package: str) -> None:
    source, version = ROOT / house / "src", rankwise.__version__
    files = [file for file in (source / package).rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    expected = {file.relative_to(source).as_posix() for file in files}
    about = f"{package}-{version}.dist-info"
    parts = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
    with zipfile.ZipFile(release.lab if house else release.wheel) as wheel:
        assert set(wheel.namelist()) == expected | {f"{about}/{name}" for name in parts}
        metadata = message_from_bytes(wheel.read(f"{about}/METADATA"))
    assert f"{package}/py.typed" in expected
    assert (metadata["Name"], metadata["Version"]) == (package.replace("_", "-"), version)
    assert metadata["License-Expression"] == "Apache-2.0"


@pytest.mark.slow
def test_the_sdist_has_what_builds_and_tests_and_no_litter(release: Release) -> None:
    with tarfile.open(release.sdist) as sdist:
        found = {member.name.removeprefix(f"{NAME}/") for member in sdist if member.isfile()}
    assert {name for name in found if "/" not in name} == TOP
    assert {name.split("/")[0] for name in found if "/" in name} == {".ci", "docs", "examples", "lab", "src", "tests"}
    here = Path(__file__).relative_to(ROOT).as_posix()
    assert {here, "lab/tests/detection/voc_ap.json", "lab/src/rankwise_lab/report/page.html", "docs/theory.md"} <= found
    assert not found & set(LITTER)
    assert not [name for name in found if "__pycache__" in name or "rankwise_lab.egg-info" in name]


class Home(NamedTuple):
    """An environment in which the wheel is installed, and a folder to work in."""

    python: Path
    folder: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The wheel, and the packages of this environment without what their .pth files add: the sources in use."""
    folder = tmp_path_factory.mktemp("home")
    python("-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    inside = folder / "venv" / "bin" / "python"
    python("-m", "pip", "--python", inside, "install", "-q", "--no-deps", "--no-index", release.wheel, cwd=folder)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "others.pth").write_text("\n".join(others), encoding="utf-8")
    (folder / "work").mkdir()
    made = Home(inside, folder / "work")
    found = made.run(inside, "-c", "import rankwise; print(rankwise.__file__)").stdout
    assert Path(found.strip()).is_relative_to(packages)
    return made


@pytest.mark.slow
def test_the_installed_command_tells_its_version_and_the_readme_runs(home: Home) -> None:
    done = home.run(home.python.with_name("rankwise"), "--version")
    assert done.stdout == f"rankwise {rankwise.__version__}\n"
    blocks = examples(read("README.md"))
    assert len(blocks) > 1
    if not find_spec("torch"):
        blocks = [block for block in blocks if not IMPORTS_TORCH.search(block.code)]
    script = home.folder / "readme.py"
    script.write_text("".join(block.code for block in blocks), encoding="utf-8")
    done = home.run(home.python, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(block.printed or "" for block in blocks)
