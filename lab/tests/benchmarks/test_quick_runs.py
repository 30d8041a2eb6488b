"""Every benchmark that prints rows, run quickly: what is printed and written, and that rows mean what they say."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import PNG, Capture
from rankwise_lab.benchmarks import processes, versions
from rankwise_lab.benchmarks.compile_time import BENCHMARK, Sizes
from rankwise_lab.commands.bench import _TABLES

import rankwise
from rankwise.cli.main import main

Rows = list[dict[str, Any]]
# What a benchmark needs.
NEEDS = {"torch": "torch", "lwsvm": "torch", "dask": "distributed", "trees": "lightgbm", "inference": "matplotlib"}


def _benchmark(name: str) -> Any:
    return importlib.import_module(f"rankwise_lab.benchmarks.{_TABLES[name]}").BENCHMARK


def _only(rows: Rows, text: str) -> Rows:
    return [row for row in rows if text in row["what"]]


def _bounds(rows: Rows) -> list[float | None]:
    return [row["target"] and row["target"]["bound"] for row in rows]


def inference(sections: dict[int, Rows]) -> None:
    differences = _only(sections[4], "difference in J")
    assert len(differences) == 2
    assert all(row["measured"] <= 1e-9 for row in differences), "methods that were raced found the same"
    growth = _only(sections[10], "peak extra memory over hinge")
    assert _bounds(growth) == [2, 2]
    if Path("/proc/self/status").exists():
        for row in growth + sections[9]:
            assert min(row["parts"].values()) > 0


def training(sections: dict[int, Rows]) -> None:
    for loss in ("AP", "NDCG"):
        assert len(_only(sections[4], f"w8a, {loss}, P = 50, N = 350: ")) == 4
    apart = _only(sections[4], "difference of their objectives")
    assert [row["met"] for row in apart] == [True, True], "methods differ in speed alone"


def dask(sections: dict[int, Rows]) -> None:
    small, large = (row["measured"] for row in _only(sections[1], "sent per step"))
    assert large < 3 * small, "of ten times as many samples"
    scaling = sections[2][-1]
    assert scaling["target"]["bound"] == 1.6
    assert scaling["measured"] == pytest.approx(scaling["parts"]["1 worker"] / scaling["parts"]["2 workers"])


CHECKS: dict[str, Callable[[dict[int, Rows]], None]] = {check.__name__: check for check in (inference, training, dask)}
CASES = [pytest.param(name, marks=[pytest.mark.distributed] if name == "dask" else []) for name in _TABLES]


def _check_row(row: dict[str, Any]) -> None:
    """Numbers are Python's own, so that JSON has them; a ratio is that of its parts, and is judged by its target."""
    what, measured, target = row["what"], row["measured"], row["target"]
    assert set(row) == {"what", "measured", "unit", "target", "met", "parts"}
    assert measured is None or type(measured) is float, what
    assert all(type(value) in (int, float) for value in row["parts"].values()), what
    if target is None or measured is None:
        assert row["met"] is None, what
    else:
        assert row["met"] is (measured <= target["bound"] if target["sense"] == "<=" else measured >= target["bound"])
    if row["unit"] == "x" and len(row["parts"]) == 2 and measured is not None:
        over, under = row["parts"].values()
        assert measured == pytest.approx(over / under), what


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_quick_run_prints_and_writes_every_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, write_w8a: Any
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    (tmp_path / "data").mkdir()
    write_w8a(tmp_path / "data", 400)
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    (tmp_path / "out").mkdir()
    files = {"--json": tmp_path / "out" / "rows.json"} | (
        {"--figure": tmp_path / "out" / "times.png"} if name == "inference" else {}
    )
    if name == "dask":
        _keep_workers_here(monkeypatch)
    monkeypatch.setattr(processes, "avx512_features", list)  # a process for each size, tested by itself
    assert main(["bench", name, "--quick", *(str(part) for pair in files.items() for part in pair)]) == 0
    printed = capsys.readouterr().out
    assert sorted((tmp_path / "out").iterdir()) == sorted(files.values()), "no temporary file may stay behind"
    document = json.loads(files["--json"].read_text(encoding="utf-8"))
    assert (document["benchmark"], document["quick"], document["machine"]["threads"]) == (name, True, 1)
    assert {"cpu", "cores", "python", "numpy", "numba", "numpy_sorts_with"} <= set(document["machine"])
    sections = {section["number"]: section["rows"] for section in document["sections"]}
    assert list(sections) == list(_benchmark(name).sections)
    rows = [row for of_section in sections.values() for row in of_section]
    for row in rows:
        _check_row(row)
        assert row["what"] in printed
    judged = [row["met"] for row in rows if row["met"] is not None]
    assert f"{sum(judged)} of {len(judged)} targets met (quick run: " in printed
    assert all(sections.values())
    if name in CHECKS:
        CHECKS[name](sections)
    if name == "inference":
        assert files["--figure"].read_bytes().startswith(PNG)
        assert [len(panel["curves"]) for panel in document["figure"]] == [4] * 6
        for panel in document["figure"]:
            assert all(len(of) == len(panel["x"]) and min(of) > 0 for of in panel["curves"].values())


def _keep_workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers as threads: as processes, as in the benchmark, each would take seconds to import all again."""
    import distributed

    cluster = distributed.LocalCluster

    def near(**how: Any) -> Any:
        assert how["processes"]
        return cluster(**how | {"processes": False})

    monkeypatch.setattr(distributed, "LocalCluster", near)


def test_without_data_rows_show_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    importlib.import_module("rankwise_lab.benchmarks.training")._problem.cache_clear()
    assert main(["bench", "training", "--quick", "--json", str(tmp_path / "rows.json")]) == 0
    *absent, _ = sections = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["sections"]
    rows = [row for section in sections for row in section["rows"] if not row["what"].startswith("digits")]
    assert [(row["measured"], row["met"], row["parts"]) for row in rows] == [(None, None, {})] * 5
    assert _bounds(rows) == [10, 40, 6, 10, 10]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[-3:] for line in printed if "w8a, NDCG" in line] == [["-", ">=", "10x"]]
    (digits,) = (row for row in absent[0]["rows"] if row["what"].startswith("digits"))
    assert digits["measured"] > 0, "needs no data"


def test_first_calls_are_held_against_another_version() -> None:
    own = Path(rankwise.__file__).parents[1]
    rows = BENCHMARK.run(replace(Sizes.quick(), against=own))["sections"][0]["rows"]
    assert [row["what"].split(": ")[1][:4] for row in rows] == ["CPU ", "over"]
    assert rows[1]["target"]["bound"] == pytest.approx(1 / 3, abs=1e-3)
    assert 0.2 < rows[1]["measured"] < 5.0


def test_a_version_that_fails_says_why() -> None:
    with pytest.raises(OSError, match="a measuring process failed: ModuleNotFoundError: No module named 'no_such'"):
        list(versions._measured("a call", "import no_such", "no_such.call()", versions.Sizes.quick()))
