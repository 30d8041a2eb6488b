"""The report of all experiments: its page, what is said of those that could not be run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from rankwise_lab.commands import reproduce
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.report.blocks import Heading
from rankwise_lab.report.claims import Claim
from rankwise_lab.report.figure import Drawing, Drawn
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.beside import TITLES, beside
from rankwise_lab.reproduce.report import write_index, write_part

from rankwise.cli.main import _parser, main

Capture = pytest.CaptureFixture[str]
NAMES = list(TITLES)


def made_up(name: str) -> Part:
    """A part with one of everything."""
    drawing = Drawing(b"\x89PNG", b"<svg></svg>", f'<svg id="{name}-lines"></svg>')
    return Part(
        name,
        f"The part {name}",
        f"{name} is <measured>.",
        {"experiment": name, "value": 0.5, "machine": {"cpu": "a & b", "cores": 2}},
        [f"{name} was half as long as <expected>."],
        [
            Heading("Inner"),
            beside("<seconds>", [("inference, s", 2.0, 1.0)]),
            Drawn("lines", drawing, "A <line>", "It falls."),
        ],
        ["with a ruler"],
        "value\n0.5\n",
        [("0.5", "of the paper's")],
        pictures={"pictures/one.png": b"\x89PNG 1"},
        claims=[
            Claim("It is <fast>", "0.5 s", "1 s", "below 1 s", True),
            Claim("It is small", "9", "3", "at most 3", False),
        ],
        tags=["made up"],
    )


def test_the_page_has_every_part_in_the_order_of_the_paper_done_or_not(tmp_path: Path, read_page: Any) -> None:
    for name in ("scaling", "timing"):  # in whatever order they are done
        write_part(tmp_path, made_up(name))
    path = write_index(tmp_path, {"cifar": "no images <here>"})
    text = path.read_text()
    seen = read_page(text)
    assert seen.open == []
    assert [name for name in seen.ids if "-" not in name] == [*NAMES, "files"]
    assert "Not run yet: rankwise reproduce action" in text
    assert "Not run: no images &lt;here&gt;" in text
    assert text.count("was half as long") == 2
    assert all(f'href="#{name}"' in text for name in NAMES)
    assert "http" not in text
    assert [source for source in seen.sources if not source.startswith("data:")] == []
    write_part(tmp_path, made_up("cifar"))
    assert "Not run: no images" not in write_index(tmp_path, {"cifar": "no images <here>"}).read_text()


def test_a_part_counts_only_if_all_its_files_are_there(tmp_path: Path) -> None:
    write_part(tmp_path, made_up("timing"))
    (tmp_path / "timing" / "card.html").unlink()  # as an older version left it
    broken = made_up("action")
    broken.found["value"] = float("nan")  # which JSON does not have
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_part(tmp_path, broken)
    text = write_index(tmp_path).read_text()
    assert all(f"Not run yet: rankwise reproduce {name}" in text for name in ("timing", "action"))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Experiments that do nothing but note the options they were run with; `fake[name]` may be set to an error."""
    monkeypatch.chdir(tmp_path)
    fake: dict[str, Any] = {"seen": []}

    def runner(name: str) -> Any:
        def run(arguments: argparse.Namespace, voice: object) -> Part:
            fake["seen"].append((name, arguments))
            if name in fake:
                raise fake[name]
            return made_up(name)

        return run

    known = {name: (add, runner(name)) for name, (add, _) in reproduce._EXPERIMENTS.items()}
    monkeypatch.setattr(reproduce, "_EXPERIMENTS", known)
    return fake


def test_all_experiments_run_or_say_what_they_lack(fake: dict[str, Any], capsys: Capture) -> None:
    fake["detection"] = MissingDataError("no images:\n name a folder")
    fake["cifar"] = ModuleNotFoundError("No module named 'torch'", name="torch")
    assert main(["reproduce", "--quick", "--out", "r"]) == 0
    assert [name for name, _ in fake["seen"]] == NAMES
    assert all(arguments.quick and arguments.out == Path("r") for _, arguments in fake["seen"])
    printed = capsys.readouterr().out.splitlines()
    assert "detection: not run: no images: name a folder" in printed
    hint = "pip install 'rankwise[torch]' (in a checkout: pip install '.[torch]')"
    assert f"cifar: not run: this needs torch: {hint}" in printed
    assert printed[-1] == "report: r/index.html"
    text = Path("r/index.html").read_text()
    assert text.count("was half as long") == text.count("A quick run with few samples") == 3
    assert "Not run: no images: name a folder" in text


def test_options_count_before_and_after_the_name_of_an_experiment(fake: dict[str, Any]) -> None:
    for command in (["--quick", "--out", "r", "timing"], ["timing", "--quick", "--out", "r"]):
        assert main(["reproduce", *command]) == 0
    assert main(["reproduce", "--data", "d", "cifar", "--seeds", "2"]) == 0
    (_, first), (_, second), (_, third) = fake["seen"]
    assert (first.quick, first.out) == (second.quick, second.out) == (True, Path("r"))
    assert (third.quick, third.out, third.data, third.seeds) == (False, Path("report"), Path("d"), 2)


def test_an_experiment_of_all_has_the_defaults_of_its_own_options(fake: dict[str, Any]) -> None:
    assert main(["reproduce"]) == 0
    alone = {name: vars(_parser().parse_args(["reproduce", name])) for name in NAMES}
    for name, arguments in fake["seen"]:
        assert {key: value for key, value in vars(arguments).items() if key != "run"} == {
            key: value for key, value in alone[name].items() if key != "run"
        }


def test_after_another_error_the_others_are_run(fake: dict[str, Any], capsys: Capture) -> None:
    fake["scaling"] = ValueError("results of another plan; name another --out")
    assert main(["reproduce"]) == 2
    assert "rankwise: scaling: results of another plan; name another --out" in capsys.readouterr().err
    text = Path("report/index.html").read_text()
    assert [f"{name} was half" in text for name in NAMES] == [name != "scaling" for name in NAMES]
    assert "Not run: results of another plan" in text
    fake["timing"] = ModuleNotFoundError("No module named 'nonsense'", name="nonsense")
    with pytest.raises(ModuleNotFoundError):
        main(["reproduce"])
    fake["timing"] = KeyboardInterrupt()
    assert main(["reproduce"]) == 130
    assert "run the same command to resume" in capsys.readouterr().err
