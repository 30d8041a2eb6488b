"""The benchmark of LinearRanker: every row is there, with or without data, and means what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.benchmarks.ranker import BENCHMARK, Sizes
from rankwise_lab.measuring.machine import own_growth_of

from rankwise import LinearRanker
from rankwise.cli.main import main


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for section in document["sections"] for row in section["rows"]]


@pytest.mark.slow
def test_quick_rows_are_there_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "none"))
    file = tmp_path / "rows.json"
    assert main(["bench", "ranker", "--quick", "--json", str(file)]) == 0
    document = json.loads(file.read_text(encoding="utf-8"))
    rows = _rows(document)
    cost, wide, memory, gains = rows[0], rows[1:5], rows[5], rows[6:]
    assert cost["measured"] is None, "w8a is not at hand"
    assert cost["target"] == {"sense": "<=", "bound": 5.0}
    assert [(row["target"]["bound"], row["measured"] > 0) for row in wide] == [(6.0, True), (4.0, True)] * 2
    assert 0 < memory["measured"] < 500
    assert len(gains) == 3 * 4 + 9 * 2
    first, second = gains[0], gains[1]
    means = first["parts"]
    assert first["measured"] == pytest.approx(means["ranker"] - means["logistic"])
    assert second["measured"] == pytest.approx(means["ranker"] - means["svc"])
    assert [row["target"] and row["target"]["bound"] for row in gains[:4]] == [0.008, 0.0, None, None]


def test_the_whole_run_asks_for_what_was_promised() -> None:
    assert Sizes().rows == ((12_000, 5.0), (None, 6.0))
    assert Sizes().wide == ((2000, 10_000, 1.0), (2000, 100_000, 0.01))
    assert (Sizes().mapped, Sizes().seeds) == (10**6, 8)
    assert (Sizes().samples, Sizes().folds, Sizes().cv) == (4000, 5, LinearRanker().cv)
    assert [section.number for section in BENCHMARK.sections.values()] == [1, 2, 3]


def test_memory_of_its_own_is_seen() -> None:
    found = own_growth_of(lambda: np.ones(20_000_000).sum(), every=0.001)
    if found is None:
        pytest.skip("the system does not tell")
    assert 100e6 < found < 260e6
