"""`rankwise bench dask` counts what a step exchanges, and times it on one worker, on two and in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import distributed
import pytest

from rankwise.cli.main import main

LocalCluster = distributed.LocalCluster


def mostly_near(**how: Any) -> LocalCluster:
    """A worker alone is a process, as in the benchmark; of two, each would take seconds to import all again."""
    assert how["processes"]
    return LocalCluster(**how | {"processes": how["n_workers"] == 1})


@pytest.mark.distributed
def test_a_quick_run_prints_and_writes_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "LocalCluster", mostly_near)
    assert main(["bench", "dask", "--quick", "--json", str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr().out
    counted, timed = json.loads((tmp_path / "b.json").read_text())["sections"]
    assert all(row["what"] in printed for row in counted["rows"] + timed["rows"])
    small, large = (row["measured"] for row in counted["rows"] if "sent per step" in row["what"])
    assert large < 3 * small  # of ten times as many samples
    scaling = timed["rows"][-1]
    assert scaling["target"]["bound"] == 1.6
    assert scaling["measured"] == pytest.approx(scaling["parts"]["1 worker"] / scaling["parts"]["2 workers"])
