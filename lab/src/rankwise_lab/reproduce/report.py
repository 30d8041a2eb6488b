"""The report: a folder with what every experiment found, and one page of all that are done.

An experiment leaves <name>.json, <name>.csv, and in the folder <name> its figures and its section of the page; the page
is put together anew, from the sections that are there, whenever one is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rankwise.io import write_bytes
from rankwise_lab.pieces import write_json
from rankwise_lab.report.blocks import Block, Contents, Heading, Items, Paragraph, Ready, Section, note
from rankwise_lab.report.page import as_html, page
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.beside import TITLES

__all__ = ["INDEX", "check_out", "write_index", "write_part"]

INDEX = "index.html"
_SECTION = "section.html"
_TITLE = "The paper's tables and figures, rerun"
_ABOUT = (
    "Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, “Efficient Optimization for Rank-based Loss Functions”, CVPR "
    "2018: every experiment of the paper, on the data that could be found, beside the paper's own numbers."
)


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
    write_json(out / f"{part.name}.json", part.found)
    write_bytes(out / f"{part.name}.csv", part.csv.encode())
    write_bytes(folder / _SECTION, as_html(Section(part.name, part.title, part.as_blocks())).encode())


def write_index(out: Path, lacking: Mapping[str, str] | None = None) -> Path:
    """The page of all sections that are there. lacking: by name, what an experiment could not find, in a line."""
    out.mkdir(parents=True, exist_ok=True)
    known = {name: out / name / _SECTION for name in TITLES}
    sections: list[Block] = [
        Ready(path.read_text(encoding="utf-8")) if path.is_file() else _absent(name, (lacking or {}).get(name))
        for name, path in known.items()
    ]
    files = [
        f"{name}: {name}.json, {name}.csv, and figures and finished parts in the folder {name}"
        for name, path in known.items()
        if path.is_file()
    ]
    blocks = [Paragraph(_ABOUT), Contents(TITLES), *sections, Heading("Files beside this page"), Items(files)]
    path = out / INDEX
    write_bytes(path, page(_TITLE, blocks).encode())
    return path


def _absent(name: str, why: str | None) -> Section:
    said = f"Not run: {why}" if why is not None else f"Not run yet: rankwise reproduce {name}"
    return Section(name, TITLES[name], [note(said)])
