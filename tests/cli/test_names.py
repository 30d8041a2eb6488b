"""Names of files with characters that a terminal acts upon: messages show them escaped, in one line."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest
from commands import Capture, refused, run

from rankwise.cli.output import Voice

NAMES = {
    "\x1b[31mred": "\\x1b[31mred",
    "two\nlines": "two\\nlines",
    "a\ttab": "a\\ttab",
    "\x9b31mred": "\\x9b31mred",
    "right\u202eleft": "right\\u202eleft",
    os.fsdecode(b"not\xffutf-8"): "not\\udcffutf-8",
}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_are_shown_escaped(folder: Path, capsys: Capture, name: str) -> None:
    seen = NAMES[name]
    shutil.copy("train.csv", f"{name}.csv")
    run("fit", f"{name}.csv", "-o", f"{name}.rw", "--json", f"{name}.json")
    run("evaluate --resamples 0", f"{name}.rw", f"{name}.csv", "--metrics", "ap")
    run("predict", f"{name}.rw", f"{name}.csv", "-o", f"{name}.txt")
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).split("\n"))
    for line in (f"{seen}.csv: 240 samples with 6", f"model: {seen}.rw", f"scores: {seen}.txt"):
        assert line in printed.out
    assert json.loads(Path(f"{name}.json").read_text())["data"]["source"] == f"{name}.csv"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_in_errors_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = NAMES[name]
    Path(f"{name}.csv").write_text("label,a\n1,x\n")
    Path(name).mkdir()
    wanted = {
        ("fit", "a", "-o", "b", name): f"rankwise: unrecognized arguments: {seen}",
        ("fit", f"{name}.csv", "-o", "m.rw"): f"rankwise: {seen}.csv, line 2, column 'a': 'x' is not a number",
        ("fit", f"{name}.svm", "-o", "m.rw"): f"rankwise: {seen}.svm: no such file",
        ("fit", name, "-o", "m.rw"): f"rankwise: {seen} is a folder",
        ("fit", f"{name}.csv", "-o", f"{name}.gone/m.rw"): f"rankwise: {seen}.gone/m.rw: there is no folder ",
        ("predict", f"./{name}.rw", "test.csv"): f"rankwise: {seen}.rw: no such file",
        ("predict", f"{name}.csv", "test.csv"): f"rankwise: {seen}.csv is not a rankwise model",
    }
    for arguments, said in wanted.items():
        found = refused(capsys, *arguments)
        assert found.startswith(said)
        assert found.isprintable()


def test_warnings_are_notes_of_one_line_with_names_as_they_are_shown(capsys: Capture) -> None:
    voice = Voice()
    with voice.noting_warnings():
        warnings.warn("said\n  in two lines", UserWarning, stacklevel=1)
    voice.note("two\nlines.rw is kept")
    assert capsys.readouterr().err == "rankwise: said in two lines\nrankwise: two\\nlines.rw is kept\n"
