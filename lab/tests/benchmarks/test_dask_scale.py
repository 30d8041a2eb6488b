"""`rankwise bench dask` counts what a step exchanges, and times it on one worker, on two and in one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rankwise.cli.main import main


@pytest.mark.distributed
def test_a_quick_run_prints_and_writes_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dask", "--quick", "--json", str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr().out
    counted, timed = json.loads((tmp_path / "b.json").read_text())["sections"]
    assert all(row["what"] in printed for row in counted["rows"] + timed["rows"])
    small, large = (row["measured"] for row in counted["rows"] if "sent per step" in row["what"])
    assert large < 3 * small  # of ten times as many samples
    scaling = timed["rows"][-1]
    assert scaling["target"]["bound"] == 1.6
    assert scaling["measured"] == pytest.approx(scaling["parts"]["1 worker"] / scaling["parts"]["2 workers"])
