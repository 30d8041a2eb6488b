"""The report: a folder with the results of every experiment, and one page of all that are done.

An experiment writes <name>.json and <name>.csv, and in the folder <name> its figures, its card of the overview and its
details. The page is rebuilt from all cards and details whenever an experiment is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rankwise.io import write_bytes
from rankwise_lab.pieces import write_json
from rankwise_lab.report.blocks import Block, Fold, Items, Paragraph, Ready, note
from rankwise_lab.report.claims import Card, Overview
from rankwise_lab.report.page import as_html, page
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.beside import TITLES

INDEX = "index.html"
_CARD, _SECTION = "card.html", "section.html"
_TITLE = "The paper's tables and figures, rerun"
_ABOUT = (
    "Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, “Efficient Optimization for Rank-based Loss Functions”, CVPR "
    "2018. Every experiment is rerun on the data that were found, and compared with the paper's numbers."
)
_RULE = (
    "Verdicts are computed from the measured numbers. A gain reproduces if its 95 % interval lies above 0; a speed-up "
    "or a law, if it reaches the stated value. “Undecided” means that the measurement cannot decide. The details, one "
    "click away, state each criterion. Diamonds in the figures are the paper's numbers."
)


def check_out(out: Path) -> None:
    """Refuse an --out that is a file, before anything is computed."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")


def write_part(out: Path, part: Part) -> None:
    """Write the part's files, each whole or not at all; the details come last, so they exist only if all else does."""
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
    write_bytes(folder / _CARD, as_html(part.as_card()).encode())
    write_bytes(folder / _SECTION, as_html(part.as_fold()).encode())


def write_index(out: Path, lacking: Mapping[str, str] | None = None) -> Path:
    """Write the page of all parts that are done. lacking: by name, why an experiment could not be run, in one line."""
    out.mkdir(parents=True, exist_ok=True)
    cards: list[str] = []
    details: list[Block] = []
    files: list[str] = []
    for name in TITLES:
        texts = _read(out / name)
        if texts is None:
            absent, why = _absent(name, (lacking or {}).get(name))
            cards.append(as_html(absent))
            details.append(why)
        else:
            cards.append(texts[0])
            details.append(Ready(texts[1]))
            files.append(f"{name}: {name}.json, {name}.csv, and the folder {name} with figures and finished pieces")
    blocks = [Paragraph(_ABOUT, "lead"), Paragraph(_RULE, "rule"), Overview(cards), *details]
    blocks.append(Fold("files", "Files beside this page", "", [Items(files)]))
    path = out / INDEX
    write_bytes(path, page(_TITLE, blocks, folding=True).encode())
    return path


def _read(folder: Path) -> tuple[str, str] | None:
    """The card and the details of a part; None if it is not finished."""
    paths = folder / _CARD, folder / _SECTION
    if not all(path.is_file() for path in paths):
        return None
    card, details = (path.read_text(encoding="utf-8") for path in paths)
    return card, details


def _absent(name: str, why: str | None) -> tuple[Card, Fold]:
    """The card and the details of an experiment that was not run."""
    said = f"Not run: {why}" if why is not None else f"Not run yet: rankwise reproduce {name}"
    return Card(name, TITLES[name], [], tags=["not run"]), Fold(name, TITLES[name], "not run", [note(said)])
