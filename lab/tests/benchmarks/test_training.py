"""The benchmark of training: rows without data, rows with, and what is written. No test depends on speed."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.benchmarks import training
from rankwise_lab.benchmarks.training import BENCHMARK, Sizes
from rankwise_lab.data.folder import data_folder
from rankwise_lab.progress import Progress

from rankwise.cli.main import main

DATA = data_folder(None)
# Of the rows of each section, in order, without data.
WITHOUT = {3: [("<=", 10, "x"), ("<=", 40, "%"), ("<=", 6, "x")], 4: [(">=", 10, "x"), (">=", 10, "x")]}
DIGITS = "digits, AP, one against the rest: ten fits"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What one test has loaded is not there for the next."""
    training._problem.cache_clear()
    yield
    training._problem.cache_clear()


def _run(sizes: Sizes) -> dict[str, Any]:
    return BENCHMARK.run(sizes, progress=Progress(io.StringIO()))


def _rows(document: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    return {section["number"]: section["rows"] for section in document["sections"]}


def _check_plain(document: dict[str, Any]) -> None:
    """Numbers that are Python's own, so that JSON has them."""
    for rows in _rows(document).values():
        for row in rows:
            assert type(row["measured"]) is float, row["what"]
            assert row["measured"] >= 0
            assert type(row["met"]) is (bool if row["target"] else type(None)), row["what"]
            assert all(type(value) in (int, float) for value in row["parts"].values()), row["what"]
    json.dumps(document, allow_nan=False)


def test_without_data_rows_are_not_measured_and_keep_their_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    document = _run(BENCHMARK.sizes.quick())
    for number, rows in _rows(document).items():
        absent = [row for row in rows if row["what"] != DIGITS]
        targets = [(row["target"]["sense"], row["target"]["bound"], row["unit"]) for row in absent]
        assert targets == WITHOUT[number]
        assert all(row["measured"] is None and row["met"] is None and row["parts"] == {} for row in absent)
    (digits,) = (row for row in _rows(document)[3] if row["what"] == DIGITS)
    assert digits["measured"] > 0, "needs no data"
    assert digits["target"] == {"sense": "<=", "bound": 1}
    json.dumps(document, allow_nan=False)


def test_without_data_a_dash_is_printed_and_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    assert main(["bench", "training", "--quick", "--only", "4"]) == 0
    printed = capsys.readouterr().out
    (row,) = (line for line in printed.splitlines() if "w8a, NDCG" in line)
    assert row.split() == ["w8a,", "NDCG:", "inference", "in", "a", "fit", "-", ">=", "10x"]
    assert "3. What a fit costs" not in printed
    assert "0 of 0 targets met" in printed


def test_rows_of_a_small_file_in_the_layout_of_w8a(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    with gzip.open(tmp_path / "w8a.gz", "wt", encoding="utf-8") as file:
        for i in range(400):
            positive = i % 8 == 0
            features = np.flatnonzero(rng.random(20) < (0.5 if positive else 0.3)) + 1
            file.write(f"{'+1' if positive else '-1'} {' '.join(f'{j}:1' for j in features)}\n")
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    document = _run(Sizes(rows=None, folds=2, repeats=1))
    _check_plain(document)
    _check_rows(document, "P = 50, N = 350")


def _check_rows(document: dict[str, Any], size: str) -> None:
    rows = _rows(document)
    assert len(rows[3]) == 4
    targets = [
        (row["target"]["sense"], row["target"]["bound"], row["unit"]) for row in rows[3] if row["what"] != DIGITS
    ]
    assert targets == WITHOUT[3]
    first = rows[3][0]
    assert first["measured"] == pytest.approx(first["parts"]["RankSVM"] / first["parts"]["LinearSVC"])
    assert {"C", "LinearSVC C"} <= set(first["parts"])
    assert 0 < rows[3][1]["measured"] < 100
    for loss, ways in {"AP": 4, "NDCG": 4}.items():
        assert sum(f"w8a, {loss}, {size}: " in row["what"] for row in rows[4]) == ways
    bounds = [row["target"] for row in rows[4] if row["what"].endswith("totals")]
    assert bounds.count({"sense": ">=", "bound": 10.0}) == 6, "yue and both of chakrabarti, each over ours"
    assert bounds.count(None) == 2, "mohapatra2014"
    apart = [row for row in rows[4] if "difference of their objectives" in row["what"]]
    assert len(apart) == 2
    assert all(row["measured"] <= 1e-3 and row["met"] is True for row in apart), "methods differ in speed alone"


def test_quick_benchmark_of_w8a_is_written_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (DATA / "w8a.gz").is_file():
        pytest.skip(f"no {DATA / 'w8a.gz'}; set RANKWISE_DATA to the folder of data")
    monkeypatch.setenv("RANKWISE_DATA", str(DATA))
    file = tmp_path / "rows.json"
    assert main(["bench", "training", "--quick", "--json", str(file)]) == 0
    assert list(tmp_path.iterdir()) == [file], "no temporary file may stay behind"
    document = json.loads(file.read_text(encoding="utf-8"))
    assert (document["benchmark"], document["quick"]) == ("training", True)
    _check_plain(document)
    _check_rows(document, "P = 89, N = 2,911")
