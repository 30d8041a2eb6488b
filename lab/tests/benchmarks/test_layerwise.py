"""`rankwise bench lwsvm`: LW-SVM against Adadelta from the same start, for as long, by the same objective."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.benchmarks import layerwise  # noqa: E402
from rankwise_lab.benchmarks.layerwise import Adadelta, Duel, Sizes, duel  # noqa: E402
from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.evaluation import objective  # noqa: E402

from rankwise.cli.main import main  # noqa: E402

QUICK = Sizes.quick()


@pytest.mark.slow
def test_a_quick_run_prints_and_writes_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "lwsvm", "--quick", "--json", str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr().out
    sections = json.loads((tmp_path / "b.json").read_text())["sections"]
    rows = [row for section in sections for row in section["rows"]]
    assert all(row["what"] in printed for row in rows)
    duels = [row for row in rows if row["target"] and row["target"]["sense"] == "<="]
    wins = [row for row in rows if row["target"] and row["target"]["sense"] == ">="]
    assert [row["what"].partition(",")[0] for row in duels[::3]] == ["AP", "NDCG", "multi-class hinge"]
    for row in duels:
        parts = row["parts"]
        assert row["measured"] == pytest.approx(parts["lwsvm"] / parts["adadelta 0.1"])
        assert parts["lwsvm"] <= parts["start"]
    assert [row["measured"] for row in wins] == [row["measured"] < 1.0 for row in duels[2::3]]


@pytest.mark.parametrize("seed", [0, 1])
def test_whoever_is_first_both_have_the_same_start_and_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    by_layers, until = layerwise._by_layers, Adadelta.until
    monkeypatch.setattr(layerwise, "_by_layers", lambda *given: order.append("lwsvm") or by_layers(*given))
    monkeypatch.setattr(Adadelta, "until", lambda self, s: order.append("adadelta") or until(self, s))
    found = duel(replace(QUICK, seconds=0.05), "ap", seed)
    assert order[0] == ("lwsvm" if seed == 0 else "adadelta")
    values = [found.start, *(value for _, value in found.by_layers)]
    assert all(after <= before * (1.0 + 1e-6) for before, after in itertools.pairwise(values))
    assert min(path[-1][0] for path in found.adadelta.values()) >= found.by_layers[-1][0] >= 0.05


def test_the_lowest_objective_of_epochs_begun_in_time_counts() -> None:
    found = Duel(9.0, [(2.0, 5.0), (4.0, 4.0)], {0.1: [(1.0, 8.0), (3.0, 6.0), (5.0, 7.0)], 1.0: [(2.5, 1.0)]})
    assert found.at(1.0) == (2.0, 5.0, {0.1: 6.0, 1.0: 1.0})
    assert found.at(0.0) == found.at(2.0)
    assert found.at(2.1) == (4.0, 4.0, {0.1: 6.0, 1.0: 1.0})
    assert found.at(99.0) == found.at(4.0)


def problem() -> tuple[torch.nn.Module, Blocks]:
    images, labels = layerwise._data(replace(QUICK, n_train=60), seed=0)
    torch.manual_seed(0)
    net = layerwise._network(QUICK)
    return net, Blocks(images, labels, 10, block_size=20)


def test_adadelta_goes_on_with_what_it_has_gathered() -> None:
    net, blocks = problem()
    loss = BlockLoss("ap", 10)
    warm = Adadelta(net, blocks, loss, 0.1, seed=1)
    warm.epoch()
    other = warm.continued(0.1, seed=2)
    warm._rng = np.random.default_rng(2)
    warm.epoch()
    other.epoch()
    for one, same in zip(warm.net.parameters(), other.net.parameters(), strict=True):
        torch.testing.assert_close(one, same, rtol=0.0, atol=0.0)


def test_the_objective_is_told_after_every_epoch_and_statistics_stay() -> None:
    net, blocks = problem()
    loss = BlockLoss("ndcg", 10)
    before = net[1].running_mean.clone()
    run = Adadelta(net, blocks, loss, 1.0, seed=0)
    seen = []
    for _ in range(4):
        run.epoch()
        seen.append(objective(net, blocks, loss, 1e-3))
    assert [value for _, value in run.path] == seen
    assert seen[-1] < seen[0]
    torch.testing.assert_close(net[1].running_mean, before, rtol=0.0, atol=0.0)


def test_without_data_one_line_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    assert main(["bench", "lwsvm"]) == 2
    assert "set RANKWISE_DATA to a folder with CIFAR-10" in capsys.readouterr().err.splitlines()[-1]
