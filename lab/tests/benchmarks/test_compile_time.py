"""The benchmark of first calls: every row has its number, and another version is measured beside this one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rankwise_lab.benchmarks import compile_time
from rankwise_lab.benchmarks.compile_time import BENCHMARK, CALLS, Sizes

import rankwise


def test_first_calls_are_held_against_a_quicksort_or_another_version() -> None:
    rows = BENCHMARK.run(Sizes.quick())["sections"][0]["rows"]
    assert [row["what"].split(": ")[1][:4] for row in rows] == ["CPU ", "over"]
    assert rows[1]["measured"] == pytest.approx(rows[1]["parts"]["ours"] / rows[1]["parts"]["quicksort"])
    own = Path(rankwise.__file__).parents[1]
    rows = BENCHMARK.run(replace(Sizes.quick(), against=own))["sections"][0]["rows"]
    assert rows[1]["target"]["bound"] == pytest.approx(1 / 3, abs=1e-3)
    assert 0.2 < rows[1]["measured"] < 5.0


def test_a_call_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CALLS, "structured_hinge", ("raise ValueError('not today')", 1.0))
    with pytest.raises(OSError, match="not today"):
        compile_time.BENCHMARK.run(Sizes.quick())
