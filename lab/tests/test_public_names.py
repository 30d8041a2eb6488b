"""The laboratory sees public names of the library only: what it needs, everybody can have."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rankwise_lab"
# Where public names are: what each lists in __all__.
PUBLIC = (
    "rankwise",
    "rankwise.boosting",
    "rankwise.cli",
    "rankwise.dask",
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


def test_the_laboratory_imports_public_names_only() -> None:
    found = [
        (f"{path.relative_to(PACKAGE)}, line {line}: {module}.{name or ''}", is_public(module, name))
        for path in sorted(PACKAGE.rglob("*.py"))
        for module, name, line in imports_of(path)
    ]
    assert len(found) > 50
    assert not [where for where, public in found if not public], "imported though not public"


def test_what_is_private_is_found() -> None:
    assert not is_public("rankwise.metrics.thresholds", "sum_over_levels")
    assert not is_public("rankwise.linear.rank_svm", "RankSVM")
    assert not is_public("rankwise.kernels.compiled", None)
    assert is_public("rankwise", "RankSVM")
