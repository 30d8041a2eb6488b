"""Without PyTorch: everything else works, and what needs it says what to install."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest
from answering import answering

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "rankwise"
# Runs one program after the other, and answers its status and what it printed and said. A finder that is asked first
# knows of no torch, as in an environment without it.
CHILD = """
import contextlib, io, json, sys, traceback
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch" or name.startswith("torch."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
for line in sys.stdin:
    printed, said, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            exec(json.loads(line), {"__name__": "__main__", "sys": sys})
        except SystemExit as stopped:
            status = stopped.code or 0
        except BaseException:
            status = 1
            traceback.print_exc()
    print(json.dumps([status, printed.getvalue(), said.getvalue()]), flush=True)
"""


class Done(NamedTuple):
    """What became of a program."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[[str], Done]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Programs are run in one process, since most of the time of one would be that of importing scikit-learn."""
    with answering("-c", CHILD) as process:
        yield lambda code: Done(*json.loads(process.ask(json.dumps(code), timeout=300)))


def test_the_finder_hides_torch(run: Run) -> None:
    done = run("import torch")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'torch'" in done.stderr


def test_rankwise_works_and_does_not_ask_for_torch(run: Run) -> None:
    done = run(
        "import rankwise as rw\n"
        "print(round(rw.structured_hinge([2.0, 1.0, 0.5, 0.0], [0, 1, 0, 1]).value, 4))\n"
        "import rankwise.cli.main, rankwise.linear, rankwise.metrics\n"
        "assert 'torch' not in sys.modules and 'rankwise.torch' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2.25"


@pytest.mark.parametrize("name", ["rankwise.torch", "rankwise.torch.functional", "rankwise.torch.modules"])
def test_importing_the_torch_part_names_what_to_install(run: Run, name: str) -> None:
    done = run(f"import {name}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: rankwise.torch needs PyTorch")
    assert last.endswith("pip install 'rankwise[torch]' (in a checkout: pip install '.[torch]')")
    assert done.stderr.count("Traceback") == 1


def test_the_error_can_be_told_from_a_broken_torch(run: Run) -> None:
    """A module that torch itself lacks is reported as it is."""
    done = run("try:\n    import rankwise.torch\nexcept ModuleNotFoundError as error:\n    print(error.name)")
    assert done.stdout.strip() == "torch"
    broken = (
        "import sys, types\nbroken = types.ModuleType('torch')\nsys.modules['torch'] = broken\nimport rankwise.torch"
    )
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not installed" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["bench", "--help"], ["fit", "--help"]], ids=" ".join)
def test_the_command_line_helps(run: Run, arguments: list[str]) -> None:
    done = run(f"from rankwise.cli.main import main\nmain({arguments!r})")
    assert done.returncode == 0, done.stderr
    assert "usage: rankwise" in done.stdout


def test_the_benchmark_in_torch_names_what_to_install(run: Run, tmp_path: Path) -> None:
    done = run(f"from rankwise.cli.main import main\nsys.exit(main(['bench', 'torch', '--json', '{tmp_path}/x.json']))")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "needs torch: pip install 'rankwise[torch]' (in a checkout: pip install '.[torch]')" in done.stderr


@pytest.mark.slow
def test_every_module_but_those_that_pytest_sets_aside_is_imported(run: Run) -> None:
    """What is collected where torch is absent, by the root's conftest.py."""
    aside = runpy.run_path(str(ROOT / "conftest.py"))["NEED_TORCH"]
    names = []
    for source in (ROOT / "src", ROOT / "lab" / "src"):
        for path in sorted(source.rglob("*.py")):
            if not any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in aside):
                names.append(".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"))
    assert "rankwise_lab.commands.bench" in names
    assert "rankwise.cli.main" in names
    assert "rankwise.torch" not in names
    done = run(f"import importlib\nfor name in {names}:\n    importlib.import_module(name)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "torch").rglob("test_*.py")), ids=lambda path: path.stem)
def test_the_tests_of_the_torch_part_skip_themselves(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    asked = text.find('pytest.importorskip("torch")')
    first = re.search(r"^(import torch\b|from torch\b|(import|from) rankwise\.torch)", text, re.MULTILINE)
    assert asked >= 0
    assert first is None or asked < first.start()
