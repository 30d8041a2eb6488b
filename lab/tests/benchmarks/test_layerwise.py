"""`rankwise bench lwsvm`: LW-SVM against Adadelta from the same start, for as long, by the same objective."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.benchmarks import layerwise  # noqa: E402
from rankwise_lab.benchmarks.layerwise import Adadelta, Duel, Sizes, duel  # noqa: E402
from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.evaluation import objective  # noqa: E402

QUICK = Sizes.quick()


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
