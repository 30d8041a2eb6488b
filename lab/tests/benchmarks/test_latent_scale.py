"""`rankwise bench latent` measures a pass and a fit over a file, and says what they were measured against."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rankwise_lab.benchmarks import latent_scale

from rankwise.cli.main import main


def test_a_quick_run_prints_and_writes_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "latent", "--quick", "--json", str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr().out
    (section,) = json.loads((tmp_path / "b.json").read_text())["sections"]
    rows = {row["what"].strip(): row for row in section["rows"]}
    assert all(row["what"] in printed for row in section["rows"])
    (one, two, share, gap) = (
        next(row for what, row in rows.items() if key in what)
        for key in ("1 thread:", "2 threads:", "share of the fit", "duality gap")
    )
    assert (one["target"]["bound"], share["target"]["bound"]) == (2.0, 5.0)
    assert one["measured"] == pytest.approx(one["parts"]["1"] / (one["parts"]["read"] + one["parts"]["multiply"]))
    assert two["measured"] == pytest.approx(two["parts"]["2"] / (two["parts"]["read"] + two["parts"]["multiply"]))
    assert 0.0 < share["measured"] < 100.0
    assert gap["met"]
    assert rows["passes over all windows"]["measured"] > rows["outer steps"]["measured"] >= 1.0


def test_one_window_of_each_positive_bag_is_shifted(tmp_path: Path) -> None:
    sizes = latent_scale.Sizes(windows=2000, features=8, bags=100, positives=10, repeats=1)
    problem = latent_scale._problem(sizes, str(tmp_path))
    assert (len(problem.bags), problem.bags.n_candidates, int(problem.y.sum())) == (100, 2000, 10)
    plain = np.random.default_rng(0)
    plain.choice(100, 10, replace=False)
    plain.standard_normal(8)
    plain.integers(0, np.full(10, 20))
    moved = np.asarray(problem.bags.features) - plain.standard_normal((2000, 8), np.float32)
    shifted = np.flatnonzero(np.abs(moved).max(axis=1) > 1e-3)
    assert np.array_equal(shifted // 20, np.flatnonzero(problem.y))
    np.testing.assert_allclose(np.linalg.norm(moved[shifted], axis=1), 5.0, rtol=1e-4)
