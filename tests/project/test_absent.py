"""Without PyTorch or Dask: everything else works, and what needs them says what to install."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A finder that is asked first knows of no such package, as in an environment without it.
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(package: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run a program without a package."""
    return subprocess.run([sys.executable, "-c", ABSENT + code, package], capture_output=True, text=True, check=False)


WORKS = """
import rankwise as rw
print(round(rw.structured_hinge([2.0, 1.0, 0.5, 0.0], [0, 1, 0, 1]).value, 4))
import rankwise.cli.main, rankwise.linear, rankwise.metrics
assert not {name.split(".")[0] for name in sys.modules} & {"torch", "dask", "distributed"}
assert not {"rankwise.torch", "rankwise.dask"} & set(sys.modules)
"""


@pytest.mark.parametrize("package", ["torch", "dask"])
def test_rankwise_works_and_does_not_ask_for_it(package: str) -> None:
    assert f"ModuleNotFoundError: No module named '{package}'" in run(package, f"import {package}").stderr
    done = run(package, WORKS)
    assert (done.returncode, done.stdout.strip()) == (0, "2.25"), done.stderr


PARTS = [("torch", f"rankwise.torch{name}", "torch needs PyTorch", "torch") for name in ("", ".functional", ".modules")]
PARTS += [(package, "rankwise.dask", f"dask needs {package}", "dask") for package in ("dask", "distributed")]


@pytest.mark.parametrize(("package", "module", "said", "extra"), PARTS, ids=lambda part: part)
def test_importing_the_part_names_what_to_install(package: str, module: str, said: str, extra: str) -> None:
    done = run(package, f"import {module}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: rankwise.{said}")
    assert last.endswith(f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')")
    assert done.stderr.count("Traceback") == 1


def test_the_error_can_be_told_from_a_broken_torch() -> None:
    """A module that torch itself lacks is reported as it is."""
    code = "try:\n    import rankwise.torch\nexcept ModuleNotFoundError as error:\n    print(error.name)"
    assert run("torch", code).stdout.strip() == "torch"
    broken = "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\nimport rankwise.torch"
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not installed" not in done.stderr


def test_the_command_line_helps_and_the_benchmark_in_torch_names_what_to_install(tmp_path: Path) -> None:
    for arguments in (["--help"], ["bench", "--help"], ["fit", "--help"]):
        done = run("torch", f"from rankwise.cli.main import main\nmain({arguments!r})")
        assert done.returncode == 0, done.stderr
        assert "usage: rankwise" in done.stdout
    bench = f"['bench', 'torch', '--json', '{tmp_path}/x.json']"
    done = run("torch", f"from rankwise.cli.main import main\nsys.exit(main({bench}))")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "needs torch: pip install 'rankwise[torch]' (in a checkout: pip install '.[torch]')" in done.stderr


@pytest.mark.slow
def test_every_module_but_those_that_pytest_sets_aside_is_imported() -> None:
    """What is collected where torch is absent, by the root's conftest.py."""
    aside = runpy.run_path(str(ROOT / "conftest.py"))["NEED_TORCH"]
    names = []
    for source in (ROOT / "src", ROOT / "lab" / "src"):
        for path in sorted(source.rglob("*.py")):
            if not any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in aside):
                names.append(".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"))
    assert {"rankwise_lab.commands.bench", "rankwise.cli.main"} <= set(names)
    assert "rankwise.torch" not in names
    done = run("torch", f"import importlib\nfor name in {names}:\n    importlib.import_module(name)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "torch").rglob("test_*.py")), ids=lambda path: path.stem)
def test_the_tests_of_the_torch_part_skip_themselves(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    asked = text.find('pytest.importorskip("torch")')
    first = re.search(r"^(import torch\b|from torch\b|(import|from) rankwise\.torch)", text, re.MULTILINE)
    assert asked >= 0
    assert first is None or asked < first.start()
