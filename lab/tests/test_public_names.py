"""The laboratory sees public names of the library only: what it needs, everybody can have."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rankwise_lab"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Where public names are: what each lists in __all__.
PUBLIC = (
    "rankwise",
    "rankwise.boosting",
    "rankwise.cli",
    "rankwise.dask",
    "rankwise.figures",
    "rankwise.inference",
    "rankwise.io",
    "rankwise.latent",
    "rankwise.linear",
    "rankwise.metrics",
    "rankwise.surrogates",
    "rankwise.torch",
    "rankwise.torch.functional",
    # For packages that extend rankwise.
    "rankwise.arguments",
    "rankwise.io.quoting",
    "rankwise.progress",
    "rankwise.queries",
)


def imports_of(path: Path) -> Iterator[tuple[str, str | None, int]]:
    """(module, name or None, line) of every import of the library in a file, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "rankwise":
                    yield alias.name, None, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rankwise":
            for alias in node.names:
                yield node.module, alias.name, node.lineno


def is_public(module: str, name: str | None) -> bool:
    if name is None or f"{module}.{name}" in PUBLIC:
        return (module if name is None else f"{module}.{name}") in PUBLIC
    return module in PUBLIC and name in {*importlib.import_module(module).__all__, "__version__"}


def test_there_are_imports_to_look_at() -> None:
    assert sum(1 for path in MODULES for _ in imports_of(path)) > 50


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_laboratory_imports_public_names_only(path: Path) -> None:
    private = [
        f"line {line}: {module}{f'.{name}' if name else ''}"
        for module, name, line in imports_of(path)
        if not is_public(module, name)
    ]
    assert not private, f"{path.name} imports what is not public: {'; '.join(private)}"


def test_what_is_private_is_found() -> None:
    assert not is_public("rankwise.metrics.thresholds", "sum_over_levels")
    assert not is_public("rankwise.linear.rank_svm", "RankSVM")
    assert not is_public("rankwise.kernels.compiled", None)
    assert is_public("rankwise", "RankSVM")
