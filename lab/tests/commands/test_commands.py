"""The laboratory's commands: exit codes, and what is said of misuse, interrupts and missing packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Capture, misused, one_line
from rankwise_lab.demo import experiment

from rankwise.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench"], "required"),
        (["bench", "cooking"], "cooking"),
        (["bench", "training", "--figure", "times.png"], "--figure"),
        (["bench", "inference", "--only", "x"], "--only"),
        (["demo", "--colour"], "--colour"),
    ],
)
def test_bad_usage_exits_with_2_and_one_line(arguments: list[str], said: str, capsys: Capture) -> None:
    assert said in misused(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--json", "no/such/folder/demo.json"], "no folder"),
        (["--json", "."], "is a folder"),
        (["--page", "no/such/folder/page.html"], "no folder"),
    ],
)
def test_files_of_the_demonstration_that_cannot_be_written_are_refused_in_one_line(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    assert main(["demo", *arguments]) == 2
    assert said in one_line(capsys.readouterr().err)


def test_without_matplotlib_the_demonstration_names_the_extra(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo"]) == 2
    assert "pip install 'rankwise[plots]'" in one_line(capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_exits_with_130_and_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", interrupted)
    assert main(["demo"]) == 130
    assert one_line(capsys.readouterr().err) == "rankwise: interrupted"
