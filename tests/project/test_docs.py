"""The documents are true: their Python blocks run, print what they say, and the code they name exists."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest
from documents import examples

from rankwise.extras import _EXTRAS, _OF_THE_LABORATORY

ROOT = Path(__file__).resolve().parents[2]
SOURCE, LAB = ROOT / "src" / "rankwise", ROOT / "lab" / "src" / "rankwise_lab"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Documents that need no Python block.
WITHOUT_CODE = {"benchmarks.md", "changelog.md", "contributing.md", "results.md"}
# Where PyTorch is not installed, blocks that import it are left out, and documents whose every block builds on it.
WITH_TORCH = {"detection.md", "layerwise.md", "torch.md"}
TORCH_IS_THERE = importlib.util.find_spec("torch") is not None
IMPORTS_TORCH = re.compile(r"^(?:import|from) (?:rankwise\.)?torch\b", re.MULTILINE)


@pytest.mark.examples
@pytest.mark.parametrize("path", DOCUMENTS[1:], ids=lambda path: path.name)  # test_release.py runs the README
def test_python_blocks_run_in_order_and_print_what_the_document_says(path: Path) -> None:
    found = examples(path.read_text(encoding="utf-8"))
    assert found or path.name in WITHOUT_CODE, f"{path.name} has no Python block"
    if path.name in WITH_TORCH and not TORCH_IS_THERE:
        pytest.skip("PyTorch is not installed")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for example in found:
        if IMPORTS_TORCH.search(example.code) and not TORCH_IS_THERE:
            continue
        # Blank lines in front make a traceback name the line of the document.
        code = compile("\n" * (example.line - 1) + example.code, str(path), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if example.printed is not None:
            assert printed.getvalue() == example.printed, f"{path.name}, line {example.line}"


def names_in(path: Path) -> set[str]:
    """What a module binds: functions, classes, assigned names; methods and fields as Class.name."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        own = node.body if isinstance(node, ast.ClassDef) else []
        for part, prefix in [(node, ""), *((part, f"{node.name}.") for part in own)]:
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + part.name)
            elif isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                found |= {prefix + target.id for target in targets if isinstance(target, ast.Name)}
    return found


def code_column() -> list[tuple[str, tuple[str, ...]]]:
    """(file, names) of each row of the table "paper ⇄ code": its last cell is `file.py`: `name`, `name`."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    section = re.search(r"^## Paper ⇄ code\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section, "docs/theory.md has no section 'Paper ⇄ code'"
    cells = [row.strip().strip("|").split("|")[-1] for row in section[1].splitlines() if row.startswith("|")][2:]
    rows = []
    for cell in cells:
        for part in cell.split(";"):
            file, *names = re.findall(r"`([^`]+)`", part)
            rows.append((file, tuple(names)))
    return rows


@pytest.mark.parametrize(("file", "names"), code_column(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_code_named_beside_the_paper_exists(file: str, names: tuple[str, ...]) -> None:
    house = LAB if file.startswith("lab: ") else SOURCE
    missing = set(names) - names_in(house / file.removeprefix("lab: "))
    assert not missing, f"docs/theory.md names {sorted(missing)} in {file}"


def extras() -> set[str]:
    """The optional dependencies that pyproject.toml declares."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", text, re.MULTILINE | re.DOTALL)
    assert section
    return set(re.findall(r"^(\w+) = \[", section[1], re.MULTILINE))


def test_every_extra_that_a_document_installs_exists_and_is_named_for_a_checkout_too() -> None:
    known = extras()
    assert {"torch", "plots", "images", "parquet"} <= known
    hints = set()
    for path in [*DOCUMENTS, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md"))]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install\s(-\S+ )*rankwise(?!-)\b", text), f"{path.name}: the package is on no index"
        added = set(re.findall(r"pip install\s'rankwise\[(\w+)\]'", text))
        in_checkout = set(re.findall(r"pip install\s'\.\[(\w+)\]'", text))
        assert added <= in_checkout, f"{path.name}: also say how to install from a checkout"
        hints |= in_checkout
    assert {"torch", "plots"} <= hints <= known


def test_errors_take_the_installing_command_from_one_place() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert [name for name, text in texts.items() if "pip install '" in text] == ["extras.py"]
    asked = re.findall(r"install_hint\([\"'](\w+)[\"']\)", "\n".join(texts.values()))
    assert {"dask", "images", "torch"} <= {*asked, *_EXTRAS.values()} <= {*extras(), *_OF_THE_LABORATORY}
