"""The report: a folder with what every experiment found, and one page of all that are done.

An experiment leaves <name>.json, <name>.csv, and in the folder <name> its figures and its section of the page; the page
is put together anew, from the sections that are there, whenever one is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rankwise.io import write_bytes
from rankwise_lab.reproduce.page import contents, heading, items, note, page, paragraph, section, small, tiles
from rankwise_lab.reproduce.part import NAMES, Part, made_by

__all__ = ["INDEX", "check_out", "write_index", "write_part"]

INDEX = "index.html"
_SECTION = "section.html"
_TITLE = "The paper's tables and figures, rerun"
_ABOUT = (
    "Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, “Efficient Optimization for Rank-based Loss Functions”, CVPR "
    "2018: every experiment of the paper, on the data that could be found, beside the paper's own numbers."
)
_TITLES = {
    "timing": "Tables 1 and 2: time in inference",
    "scaling": "Figures 2 and 3: how time grows",
    "action": "Tables 3 and 4: ten classes, by loss",
    "detection": "Table 5: weakly supervised detection",
    "cifar": "Section 4.3: a network for CIFAR-10",
}


def check_out(out: Path) -> None:
    """Refuse a folder that cannot be one, before anything is computed."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")


def write_part(out: Path, part: Part) -> None:
    """The part's files, each whole or not at all; its section last, so that it is there only if all is."""
    folder = out / part.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in part.figures.items():
        write_bytes(folder / f"{name}.png", figure.png)
        write_bytes(folder / f"{name}.svg", figure.svg)
    for name, content in part.pictures.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_bytes(folder / name, content)
    write_bytes(out / f"{part.name}.json", (json.dumps(part.found, indent=1, allow_nan=False) + "\n").encode())
    write_bytes(out / f"{part.name}.csv", part.csv.encode())
    body = [paragraph(part.about), *([tiles(part.tiles)] if part.tiles else []), items(part.lines), *part.body]
    body += [heading("How it was done", 3), items(part.facts), small(made_by(part.name, part.found["machine"]))]
    write_bytes(folder / _SECTION, (section(part.name, part.title, body) + "\n").encode())


def write_index(out: Path, lacking: Mapping[str, str] | None = None) -> Path:
    """The page of all sections that are there. lacking: by name, what an experiment could not find, in a line."""
    out.mkdir(parents=True, exist_ok=True)
    known = {name: out / name / _SECTION for name in NAMES}
    sections = [
        path.read_text(encoding="utf-8") if path.is_file() else _absent(name, (lacking or {}).get(name))
        for name, path in known.items()
    ]
    files = [
        f"{name}: {name}.json, {name}.csv, and figures and finished parts in the folder {name}"
        for name, path in known.items()
        if path.is_file()
    ]
    body = [paragraph(_ABOUT), contents(_TITLES.items()), *sections, heading("Files beside this page"), items(files)]
    path = out / INDEX
    write_bytes(path, page(_TITLE, body).encode())
    return path


def _absent(name: str, why: str | None) -> str:
    said = f"Not run: {why}" if why is not None else f"Not run yet: rankwise reproduce {name}"
    return section(name, _TITLES[name], [note(said)])
