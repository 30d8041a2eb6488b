"""Each layer imports only from the layers above it, and importing rankwise imports nothing heavy."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "rankwise"

# From the first to the last; parts of one layer do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("arguments", "documenting", "extras"),
    ("interleaving",),
    ("kernels", "queries"),
    ("metrics",),
    ("inference", "surrogates"),
    ("io", "progress"),
    ("linear", "torch", "boosting"),
    ("latent", "dask"),
    ("models",),
    ("cli",),
)
# Kernels solve queries, and queries that are not sorted are sorted by a kernel.
TOGETHER = {"kernels", "queries"}
DEPTH = {part: depth for depth, layer in enumerate(LAYERS) for part in layer}
# These stand on the whole of the public interface, and may import it as users do.
ON_TOP = {"cli"}
# Packages that only some parts may know.
KNOWN_BY = {
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "torch": {"torch", "cli"},  # cli: `rankwise warmup` makes a tensor
    "dask": {"dask"},
    "distributed": {"dask"},
    "lightgbm": set(),
    "xgboost": set(),
    "rankwise_lab": set(),
}
HEAVY = ("numba", "torch", "dask", "distributed", "matplotlib", "sklearn", "pandas", "scipy")

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The part a file belongs to: models.py → models, metrics/ap.py → metrics."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@functools.cache
def imports_of(path: Path) -> tuple[tuple[str, int], ...]:
    """(dotted name, line) of every import in a file, wherever in it; from a import b gives a.b."""
    return tuple(_imports_of(path))


def _imports_of(path: Path) -> Iterator[tuple[str, int]]:
    package = ("rankwise", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{origin}.{alias.name}", node.lineno


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_module_has_a_layer() -> None:
    parts = {part_of(path) for path in MODULES} - {"__init__", "__main__"}
    assert parts == set(DEPTH), "give each a place in LAYERS"


def test_a_module_imports_only_from_its_own_part_and_earlier_layers() -> None:
    wrong = []
    for path in MODULES:
        part = part_of(path)
        if part not in DEPTH:
            continue
        for name, line in imports_of(path):
            root, *rest = name.split(".")
            if root != "rankwise":
                continue
            where = f"{name_of(path)}, line {line}: imports {name}"
            if rest and rest[0] in DEPTH:
                if rest[0] != part and DEPTH[rest[0]] >= DEPTH[part] and not {rest[0], part} <= TOGETHER:
                    wrong.append(f"{where}, which is not from an earlier layer")
            elif part not in ON_TOP:  # rankwise itself, or a public name from it
                wrong.append(f"{where}; import from the module that defines it")
    assert wrong == []


def test_numba_and_torch_are_known_only_where_they_may_be() -> None:
    wrong = []
    for path in MODULES:
        for name, line in imports_of(path):
            root = name.split(".")[0]
            if root in KNOWN_BY and part_of(path) not in KNOWN_BY[root]:
                wrong.append(f"{name_of(path)}, line {line}: imports {name}")
    assert wrong == []


def test_importing_rankwise_imports_nothing_heavy() -> None:
    code = "import json, sys, rankwise.io, rankwise.cli.main; rankwise.cli.main._parser('fit')\n"
    code += "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert "numpy" in loaded  # else the list is not what it seems
    assert not loaded & set(HEAVY)


def test_the_package_shows_its_public_names_and_no_others() -> None:
    code = (
        "import json, rankwise, rankwise.io, rankwise.metrics, rankwise.models\n"
        "print(json.dumps([dir(rankwise), rankwise.__all__, rankwise.__name__]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, public, _ = json.loads(done.stdout)
    modules = {"boosting", "dask", "inference", "io", "latent", "metrics", "torch"}
    assert set(shown) == {*public, *modules, "__doc__", "__version__"}
    assert {"RankSVM", "load", "Bags"} <= set(shown)
