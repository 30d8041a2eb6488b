"""Standard streams that are closed: commands do their work, and nothing goes where it does not belong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMAND, Capture, refused, run

import rankwise as rw
from rankwise.progress import Progress, tell

# A process that runs several commands, for the start of one takes most of its time.
CODE = """
import json, os, sys
from pathlib import Path
from rankwise.cli.main import main
found = [main(arguments.split()) for arguments in sys.argv[1:]]
Path("found.json").write_text(json.dumps([found, [os.path.realpath(f"/proc/self/fd/{n}") for n in range(3)]]))
"""
COMMANDS = (
    "fit train-flat.svm -o m.rw --json fit.json",
    "evaluate m.rw test-flat.svm --resamples 0 --metrics ap auc --json evaluate.json",
    "predict m.rw test-flat.svm -o scores.txt",
    "predict no.rw test-flat.svm -o other.txt",
)
FULL = Path("/dev/full")
CLOSED = {"input": "<&-", "output": ">&-", "error": "2>&-", "all three": "<&- >&- 2>&-"}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system has no /proc")
@pytest.mark.parametrize("closed", CLOSED)
def test_commands_work_where_a_standard_stream_is_closed(folder: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {CLOSED[closed]}', "sh", sys.executable, "-c", CODE, *COMMANDS],
        capture_output=True,
        text=True,
        stdin=subprocess.PIPE,
    )
    statuses, places = json.loads(Path("found.json").read_text())
    assert statuses == [0, 0, 0, 2]
    number = {"input": 0, "output": 1, "error": 2}.get(closed)
    replaced = places if number is None else [places[number]]
    assert set(replaced) == {"/dev/null"}
    assert rw.load("m.rw").coef_.size == json.loads(Path("fit.json").read_text())["data"]["features"]
    metrics = json.loads(Path("evaluate.json").read_text())["metrics"]
    assert [metric["name"] for metric in metrics] == ["ap", "auc"]
    samples = len(Path("test-flat.svm").read_text().splitlines())
    assert len(Path("scores.txt").read_text().splitlines()) == samples
    assert ("no.rw: no such file" in done.stderr) == (closed in ("input", "output"))
    assert "no.rw" not in done.stdout
    assert "iteration 1" not in done.stdout  # what progress begins with
    assert ("model: m.rw" in done.stdout) == (closed in ("input", "error"))


def test_without_standard_error_results_alone_are_on_standard_output(
    model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        run("evaluate model.rw test.csv --resamples 0 --json -")
        sys.stderr.close()
    assert json.loads(capsys.readouterr().out)["command"] == "evaluate"


@pytest.mark.parametrize("command", ["evaluate --json -", "predict", "predict -o -", "predict --json -"])
def test_without_standard_output_results_that_would_go_there_are_refused(
    model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    name, *options = command.split()
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert "standard output is closed; name a file" in refused(capsys, name, "model.rw", "test.csv", *options)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_standard_error_that_cannot_be_written_costs_what_is_said_and_not_the_model(folder: Path) -> None:
    with FULL.open("w") as full:
        fit = [*COMMAND, "fit", "train.csv", "-o", "m.rw"]
        assert subprocess.run(fit, stderr=full, stdout=subprocess.DEVNULL).returncode == 0
    assert rw.load("m.rw").coef_.size == 6


@pytest.mark.parametrize("way", ["none", "closed"])
def test_without_standard_error_progress_is_not_told(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with Path("a file").open("w") as stream:
        pass  # closed from here on
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None if way == "none" else stream)
        progress = Progress("title")
        progress.say("text")
        progress.close()
        tell("a line")
        rw.RankSVMCV(Cs=[1.0], cv=2, verbose=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
