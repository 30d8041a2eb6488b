"""The interactive page: a folder that a browser can open from the web or from the disk.

Browsers refuse to load modules from the disk, so the modules become one plain script.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

SCRIPT = "explore.js"
# Each after those that it imports.
MODULES = ("svg.js", "model.js", "layout.js", "local.js", "rankings.js", "recursion.js", "app.js", "embed.js")
_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{ [\w, ]+ \})) from "\./(\w+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (function|const|class) (\w+)", re.MULTILINE)


def write_page(folder: Path) -> Path:
    """Write index.html, its styles and its script into a folder, which is made if need be; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "style.css", "dark.css"):
        (folder / name).write_text(_read(name), encoding="utf-8")
    (folder / SCRIPT).write_text(script(), encoding="utf-8")
    return folder / "index.html"


def script() -> str:
    """All modules as one plain script: each becomes a function that returns what it exports."""
    parts = [_as_function(name, _read(name)) for name in MODULES]
    return '"use strict";\n(() => {\nconst modules = {};\n' + "".join(parts) + "})();\n"


def _as_function(name: str, text: str) -> str:
    exported = [match[2] for match in _EXPORT.finditer(text)]
    text = _IMPORT.sub(lambda match: f'const {match[1] or match[2]} = modules["{match[3]}"];', text)
    text = _EXPORT.sub(r"\1 \2", text)
    if left := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
        raise ValueError(f"{name}: cannot make a plain script of {left[0]!r}; write it on one line, by name")
    return f'modules["{name}"] = (() => {{\n{text}return {{ {", ".join(exported)} }};\n}})();\n'


def _read(name: str) -> str:
    return files("rankwise_lab.explore").joinpath(name).read_text(encoding="utf-8")
