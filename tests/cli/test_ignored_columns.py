"""Commands read a file with its ids, which are no features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankwise.cli.main import main


def test_commands_take_a_file_with_its_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table["label"] = (table["a"] + 0.3 * rng.normal(size=60) > 0.5).astype(int)
    table.insert(0, "id", [f"C{k}" for k in range(60)])
    data, model, scores = tmp_path / "data.csv", tmp_path / "model.rw", tmp_path / "scores.txt"
    table.to_csv(data, index=False)
    assert main(["fit", str(data), "-o", str(model), "--model", "rank-svm", "--C", "1", "--ignore", "id"]) == 0
    assert main(["evaluate", str(model), str(data), "--ignore", "id"]) == 0
    assert main(["predict", str(model), str(data), "--ignore", "id", "-o", str(scores)]) == 0
    assert len(scores.read_text().splitlines()) == len(table)
    capsys.readouterr()
    assert main(["predict", str(model), str(data)]) == 2
    said = capsys.readouterr().err
    assert "the model has no feature 'id'; remove it, or name it with --label, --query or --ignore" in said
