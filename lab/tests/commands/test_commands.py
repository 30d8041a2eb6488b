"""The laboratory's commands: exit codes, what is printed, and what is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import PNG, Capture, misused, one_line
from rankwise_lab.benchmarks import inference, plan
from rankwise_lab.demo import experiment

from rankwise.cli.main import main


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    """The document and the figure of one quick run of the benchmark."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("bench")
    files = {"--json": folder / "rows.json", "--figure": folder / "times.png"}
    arguments = [str(part) for pair in files.items() for part in pair]
    assert main(["bench", "inference", "--quick", *arguments]) == 0
    assert sorted(folder.iterdir()) == sorted(files.values()), "no temporary file may stay behind"
    return json.loads(files["--json"].read_text()), files["--figure"].read_bytes()


def test_quick_benchmark_has_every_section_with_rows(quick_run: tuple[dict[str, Any], bytes]) -> None:
    document, _ = quick_run
    assert [section["number"] for section in document["sections"]] == list(range(1, 12))
    assert document["quick"] is True
    for section in document["sections"]:
        assert section["rows"], section["title"]
        for row in section["rows"]:
            assert set(row) == {"what", "measured", "unit", "target", "met", "parts"}
            assert row["measured"] is None or row["measured"] >= 0
            assert (row["met"] is None) == (row["target"] is None or row["measured"] is None)
            assert all(value >= 0 for value in row["parts"].values())


def test_quick_benchmark_describes_the_machine(quick_run: tuple[dict[str, Any], bytes]) -> None:
    machine = quick_run[0]["machine"]
    assert machine["threads"] == 1
    assert machine["cores"] >= 1
    assert {"cpu", "python", "numpy", "numba", "numpy_sorts_with", "numpy_cpu_features"} <= set(machine)


def test_methods_that_were_raced_found_the_same_objective(quick_run: tuple[dict[str, Any], bytes]) -> None:
    (section,) = (s for s in quick_run[0]["sections"] if s["number"] == 4)
    differences = [row for row in section["rows"] if "difference in J" in row["what"]]
    assert len(differences) == 2
    assert all(row["measured"] <= 1e-9 for row in differences)


def test_figure_is_a_png_with_every_curve(quick_run: tuple[dict[str, Any], bytes]) -> None:
    document, image = quick_run
    assert image.startswith(PNG)
    assert len(document["figure"]) == 6
    for panel in document["figure"]:
        assert len(panel["curves"]) == 4
        assert all(len(seconds) == len(panel["x"]) and min(seconds) > 0 for seconds in panel["curves"].values())


def test_benchmark_prints_a_row_for_each_number(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inference.BENCHMARK, "run", _two_rows)
    assert main(["bench", "inference", "--only", "9"]) == 0
    printed = capsys.readouterr().out
    assert "9. Memory" in printed
    (slow,) = (line for line in printed.splitlines() if "slow thing" in line)
    assert slow.split() == ["slow", "thing", "7.00x", "<=", "3x", "NO"]
    assert "1 of 2 targets met" in printed


def _two_rows(sizes: Any, numbers: list[int], on_section: Any, on_row: Any, progress: Any) -> dict[str, Any]:
    rows = [
        plan.Row("slow thing", 7.0, target=plan.at_most(3)),
        plan.Row("fast thing", 7.0, target=plan.at_least(3)),
    ]
    on_section(inference.BENCHMARK.sections[numbers[0]])
    for row in rows:
        on_row(row)
    return {"sections": [{"number": numbers[0], "title": "", "rows": [row.as_dict() for row in rows]}]}


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
        (["bench", "inference", "--only", "12"], "sections are 1, 2"),
        (["bench", "inference", "--figure", "times.jpeg"], "must end in .png"),
        (["demo", "--json", "no/such/folder/demo.json"], "no folder"),
        (["demo", "--json", "."], "is a folder"),
        (["demo", "--page", "no/such/folder/page.html"], "no folder"),
        (["bench", "training", "--only", "9"], "sections are 3, 4"),
        (["bench", "quality", "--tasks", "nothing"], "no task 'nothing'"),
        (["bench", "quality", "--contenders", "nobody"], "no contender 'nobody': contenders are svc;"),
        (["bench", "quality", "--repeats", "0"], "--repeats must be at least 1"),
    ],
)
def test_bad_input_exits_with_2_and_one_line(arguments: list[str], said: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    assert said in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("matplotlib", ["demo"], "rankwise[plots]"),
        ("matplotlib", ["bench", "inference", "--quick", "--figure", "times.png"], "rankwise[plots]"),
    ],
)
def test_a_missing_optional_package_names_the_extra(
    package: str,
    arguments: list[str],
    extra: str,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(arguments) == 2
    assert f"pip install '{extra}'" in one_line(capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_exits_with_130_and_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", interrupted)
    assert main(["demo"]) == 130
    assert one_line(capsys.readouterr().err) == "rankwise: interrupted"
