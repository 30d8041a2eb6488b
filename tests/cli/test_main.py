"""The command line: exit codes, what is printed, and commands of other packages."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest
from commands import Capture, one_line, refused

from rankwise import __version__
from rankwise.cli import fit, warmup
from rankwise.cli import main as cli
from rankwise.cli.main import main


class Point:
    """An entry point of another package."""

    def __init__(self, name: str, load: Callable[[], Any]) -> None:
        self.name, self.load = name, load


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """The entry points found, none to begin with."""
    points: list[Point] = []
    monkeypatch.setattr(cli, "entry_points", lambda group: points if group == "rankwise.commands" else [])
    return points


@pytest.mark.parametrize("line", ["", "frobnicate", "fit a -o b --colour"])
def test_bad_usage_exits_with_2_and_one_line(line: str, capsys: Capture) -> None:
    assert (line.split() or ["required"])[-1] in refused(capsys, line)


@pytest.mark.parametrize("line", ["bench", "demo --quick", "explore --help", "reproduce timing --out there"])
@pytest.mark.usefixtures("joined")
def test_without_the_laboratory_its_commands_say_how_to_get_it(line: str, capsys: Capture) -> None:
    name = line.split()[0]
    assert main(line.split()) == 2
    assert one_line(capsys.readouterr().err) == (
        f"rankwise: {name} is part of rankwise-lab; to install it, run pip install ./lab in a checkout of rankwise"
    )


def test_a_command_of_another_package_joins(joined: list[Point], capsys: Capture) -> None:
    def add_command(commands: Any) -> None:
        parser = commands.add_parser("count")
        parser.add_argument("n", type=int)
        parser.set_defaults(run=lambda arguments: print(arguments.n + 1) or 3)

    joined.append(Point("count", lambda: add_command))
    assert main(["count", "41"]) == 3
    assert capsys.readouterr().out == "42\n"


def test_a_command_that_cannot_be_loaded_concerns_no_other(joined: list[Point], capsys: Capture) -> None:
    def load() -> Any:
        raise ImportError("no module named wheels")

    joined.append(Point("bench", load))
    assert main(["bench", "inference"]) == 2
    assert one_line(capsys.readouterr().err) == "rankwise: no module named wheels"
    with pytest.raises(SystemExit) as stopped:
        main(["fit", "--help"])
    assert stopped.value.code == 0


def test_no_other_package_takes_the_name_of_a_command(joined: list[Point], capsys: Capture) -> None:
    joined.append(Point("fit", lambda: pytest.fail("loaded")))
    for arguments, said in ((["fit", "--help"], "TRAIN"), (["--help"], "evaluate")):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert said in capsys.readouterr().out


def test_an_interrupt_exits_with_130_and_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def add_command(commands: Any) -> None:
        def interrupted(_: argparse.Namespace) -> int:
            raise KeyboardInterrupt

        commands.add_parser("fit").set_defaults(run=interrupted)

    monkeypatch.setattr(fit, "add_command", add_command)
    assert main(["fit"]) == 130
    assert one_line(capsys.readouterr().err) == "rankwise: interrupted"


def test_version_is_printed(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"rankwise {__version__}\n"


def test_warmup_says_what_it_compiles(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    called: list[str] = []
    calls = {name: lambda name=name: called.append(name) for name in ("hinge", "smooth loss")}
    monkeypatch.setattr(warmup, "calls_to_make", lambda: calls)
    assert main(["warmup"]) == 0
    out, err = capsys.readouterr()
    assert called == ["hinge", "smooth loss"]
    assert [line.split(";")[0] for line in err.splitlines()] == ["1 of 2: hinge", "2 of 2: smooth loss"]
    assert out.startswith("compiled ")


@pytest.mark.slow
@pytest.mark.parametrize("what", warmup.calls_to_make())
def test_every_call_of_warmup_works(what: str) -> None:
    warmup.calls_to_make()[what]()
