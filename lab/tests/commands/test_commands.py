"""The laboratory's commands: exit codes, and what is said of misuse, missing data and packages, and interrupts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from archives import write_archive
from commands import Capture, one_line, refused
from rankwise_lab.demo import experiment

from rankwise.cli.main import main

# What is asked for on a machine without data, beside a file of that name, and what is said.
REFUSED = [
    ("bench", "required"),
    ("bench cooking", "cooking"),
    ("bench training --figure times.png", "--figure"),
    ("bench inference --only x", "--only"),
    ("bench inference --only 12", "sections are 1, 2"),
    ("bench inference --figure times.jpeg", "must end in .png"),
    ("bench quality --tasks nothing", "no task 'nothing'"),
    ("bench quality --repeats 0", "--repeats must be at least 1, got 0"),
    ("bench quality --quick --results file", "--results file is a file; name a folder"),
    ("bench quality --json rankwise-quality", "--json and --results cannot both be rankwise-quality"),
    ("bench finetune --seeds 0", "--seeds must be at least 1, got 0"),
    ("bench finetune --arms focal fokal", "no arm 'fokal': arms are cross-entropy, weighted"),
    ("bench finetune --quick", "cifar10-jpeg.tar.xz: set RANKWISE_DATA to the folder that has it"),
    ("bench retrieval --quick", "omniglot-small.tar.xz: set RANKWISE_DATA to the folder that has it"),
    ("demo --json no/such/folder/demo.json", "no folder"),
    ("demo --page no/such/folder/page.html", "no folder"),
    ("explore --out file", "is a file; name a folder"),
    ("reproduce --out file", "is a file; name a folder"),
    ("reproduce detection --quick", "neither VOCdevkit nor underwater-voc.tar.xz; pass --devkit"),
    ("reproduce cifar --quick", "name the archive, or set RANKWISE_DATA"),
]
NEED_TORCH = ("bench finetune", "bench retrieval", "reproduce cifar")


@pytest.mark.parametrize(("line", "said"), REFUSED, ids=[line for line, _ in REFUSED])
def test_what_makes_no_sense_is_refused_in_one_line(line: str, said: str, place: Path, capsys: Capture) -> None:
    if line.startswith(NEED_TORCH):
        pytest.importorskip("torch")
    Path("file").write_text("kept\n", encoding="utf-8")
    assert said in refused(capsys, line)
    assert [path.read_text(encoding="utf-8") for path in place.iterdir()] == ["kept\n"]


# A command line in a world where a module is not there.
WITHOUT = """
import sys
sys.modules["{module}"] = None
from rankwise.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("module", "line", "extra"),
    [
        ("torch", "bench torch --quick", "torch"),
        ("torch", "bench finetune --quick", "torch"),
        ("PIL", "bench finetune --quick", "images"),
        ("matplotlib", "bench inference --quick --figure times.png", "plots"),
    ],
)
def test_without_a_package_one_line_names_the_extra(module: str, line: str, extra: str, tmp_path: Path) -> None:
    if module == "PIL":
        pytest.importorskip("torch")
    write_archive(tmp_path / "cifar10-jpeg.tar.xz", {f"{part}/cat/1.jpg": b"GIF89a" for part in ("train", "test")})
    environment = os.environ | {"RANKWISE_DATA": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT.format(module=module), *line.split()]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    hint = f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')"
    assert f"this needs {module}: {hint}" in one_line(done.stderr)


def test_an_interrupt_exits_with_130_and_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", interrupted)
    assert main(["demo"]) == 130
    assert one_line(capsys.readouterr().err) == "rankwise: interrupted"
