"""The benchmark of objectives for trees: every row is there, and is a share of LightGBM's time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rankwise_lab.benchmarks import trees
from rankwise_lab.benchmarks.trees import BENCHMARK, Sizes

from rankwise.cli.main import main


@pytest.mark.slow
def test_quick_rows_are_shares_of_a_tree(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    file = tmp_path / "rows.json"
    assert main(["bench", "trees", "--quick", "--json", str(file)]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["sections"][0]["rows"]
    assert len(rows) == 3 * 3 * 3
    for row in rows:
        objective, tree = row["parts"].values()
        assert row["measured"] == pytest.approx(objective / tree)
        assert row["target"] == {"sense": "<=", "bound": 0.05}


def test_without_lightgbm_the_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "find_spec", lambda name: None)
    rows = BENCHMARK.run(Sizes.quick())["sections"][0]["rows"]
    assert [row["measured"] for row in rows] == [None] * 3
    assert all("LightGBM is not installed" in row["what"] for row in rows)


def test_the_whole_run_has_one_query_of_a_million_rows() -> None:
    assert Sizes().rows == 10**6
    features, labels = trees._made_up(10**4, trees._LABELS["grades 0 to 4"])
    assert features.shape == (10**4, 50)
    assert set(labels.tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
