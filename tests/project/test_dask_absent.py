"""Without Dask: everything else works, and what needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A finder that is asked first and knows of no such package, as in an environment without it.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(package: str, code: str) -> subprocess.CompletedProcess[str]:
    source = WITHOUT.format(package=package) + code
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", ["dask", "distributed"])
def test_importing_the_dask_part_names_what_to_install(package: str) -> None:
    done = run(package, "import rankwise.dask")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: rankwise.dask needs {package}")
    assert last.endswith("pip install 'rankwise[dask]' (in a checkout: pip install '.[dask]')")
    assert done.stderr.count("Traceback") == 1


def test_the_rest_works_and_does_not_ask_for_dask() -> None:
    done = run("dask", "import rankwise as rw, rankwise.linear, rankwise.metrics\nprint(rw.RankSVM().loss)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "ap"
