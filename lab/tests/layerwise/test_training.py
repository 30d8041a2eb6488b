"""The stages of LW-SVM: each against its definition, F that never rises, and the same bits from the same seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lwsvm_runs import LOSSES, QUICK, TRAIN, VAL, network, parts, rows_of, same, weights  # noqa: E402
from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.evaluation import as_score, objective  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver  # noqa: E402
from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise import metrics  # noqa: E402


def test_pretraining_is_adadelta_on_softmax_over_shuffled_batches_in_training_mode() -> None:
    net, by_hand = PLCNN(*parts()[:5], *parts()[6:]).double(), PLCNN(*parts()[:5], *parts()[6:]).double()
    model = LWSVM(net, lam=0.01, seed=4, **QUICK | {"pretrain_epochs": 3}).pretrain(TRAIN)
    optimiser = torch.optim.Adadelta(by_hand.parameters(), lr=1.0)
    images, labels = torch.from_numpy(TRAIN[0]).double(), torch.from_numpy(TRAIN[1])
    means = []
    for epoch in (1, 2, 3):
        order, total = np.random.default_rng([4, 1, epoch]).permutation(90), 0.0
        for at in np.array_split(order, 3):
            loss = nn.functional.cross_entropy(by_hand(images[at]), labels[at])
            squares = sum((by_hand[k].weight ** 2).sum() + (by_hand[k].bias ** 2).sum() for k in (0, 5, 7))
            optimiser.zero_grad()
            (loss + 0.005 * squares).backward()
            optimiser.step()
            total += loss.item() * len(at) / 90
        means.append(total)
    for name, part in by_hand.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], part, rtol=1e-9, atol=1e-12)
    assert [row["risk"] for row in model.history_] == pytest.approx(means, rel=1e-9)
    assert means[2] < means[0]
    assert not torch.equal(net[1].running_mean, torch.zeros(3).double())


def test_the_warm_up_is_adadelta_on_the_loss_of_the_blocks_in_inference_mode() -> None:
    net, by_hand = network(), network().eval()
    model = LWSVM(net, "ap", lam=0.01, seed=4, learning_rate=0.5, **QUICK).warm_up(TRAIN)
    blocks = Blocks(*TRAIN, 3, block_size=30, seed=4, dtype=torch.float64)
    optimiser = torch.optim.Adadelta(by_hand.parameters(), lr=0.5)
    for epoch in (1, 2):
        for b in np.random.default_rng([4, 2, epoch]).permutation(3).tolist():
            target = blocks.labels(b)[:, None] == torch.arange(3)
            loss = rwt.functional.structured_hinge(by_hand(blocks.images(b)), target, "ap", dim=0)
            optimiser.zero_grad()
            (loss + 0.005 * by_hand.regulariser()).backward()
            optimiser.step()
    for name, part in by_hand.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], part, rtol=1e-9, atol=1e-12)
    assert model.objective_ == objective(net, blocks, BlockLoss("ap", 3), 0.01)
    assert torch.equal(net[1].running_mean, torch.zeros(3).double())
    assert not torch.equal(net[1].weight, torch.ones(3).double())


@pytest.mark.slow
@pytest.mark.parametrize("decomposition", ["auto", "dc", "fixed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_layer_of_any_pass_raises_the_objective_and_no_epoch_lowers_the_dual(loss: str, decomposition: str) -> None:
    model = LWSVM(network(), loss, decomposition=decomposition, **QUICK).fit(TRAIN)
    rows = [row for row in model.history_ if row["stage"] == "fit_layers"]
    layers = [row for row in rows if row["objective"] is not None]
    objectives = [row["objective"] for row in layers]
    assert [row["layer"] for row in layers] == [None, *[8, 6, 0] * model.n_passes_]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(objectives))
    assert objectives[-1] < 0.99 * objectives[0]
    for row, later in pairwise(rows):
        if row["layer"] is not None and (row["pass"], row["layer"]) == (later["pass"], later["layer"]):
            assert later["dual"] >= row["dual"] - 1e-12
    # The convex problem is the true one for the last layer alone.
    assert all((row["primal"] is None) == (row["layer"] != 8) for row in layers[1:])
    assert all(row["primal"] >= row["dual"] - 1e-12 for row in layers[1:] if row["layer"] == 8)
    blocks = Blocks(*TRAIN, 3, block_size=30, dtype=torch.float64)
    assert model.objective_ == objectives[-1] == objective(model.net, blocks, BlockLoss(loss, 3), 1e-3)


@pytest.mark.parametrize("val", [None, VAL], ids=["alone", "validated"])
def test_the_recipe_in_one_call_or_in_three_gives_the_same_bits(val: Any) -> None:
    one, three = LWSVM(network(), **QUICK).fit(TRAIN, val), LWSVM(network(), **QUICK)
    rows = []
    for stage in (three.pretrain, three.warm_up, three.fit_layers):
        rows += [row["objective"] for row in stage(TRAIN, val).history_]
    assert same(weights(one.net), weights(three.net))
    assert [row["objective"] for row in one.history_] == rows
    assert one.score_ == three.score_


def test_the_same_seed_gives_the_same_bits_to_a_sequential_too_whatever_the_callers_random_state_which_stays() -> None:
    found = []
    for state, net in ((1, network()), (2, nn.Sequential(*parts()).double())):
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002
        before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
        net[1].eval()
        modes = [part.training for part in net.modules()]
        model = LWSVM(net, **QUICK).fit(TRAIN, VAL)
        assert [part.training for part in net.modules()] == modes
        assert torch.equal(torch.get_rng_state(), before[0])
        assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
        found.append((weights(net), rows_of(model)))
    assert same(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    other = network()
    LWSVM(other, seed=1, **QUICK).fit(TRAIN, VAL)
    assert not same(weights(other), found[0][0])


def test_a_frozen_layer_stays_as_it_is_and_only_as_many_of_the_last_are_taken_as_asked_for() -> None:
    for settings, freeze in (({}, [0]), ({"layers": 2}, [])):
        net = network()
        for k in freeze:
            net[k].requires_grad_(False)
        before = weights(net)
        model = LWSVM(net, **settings, **QUICK).fit_layers(TRAIN)
        assert {row["layer"] for row in model.history_} == {None, 8, 6}
        changed = {name.partition(".")[0] for name, part in weights(net).items() if not torch.equal(part, before[name])}
        assert changed == {"8", "6"}


def test_scores_are_those_of_inference_in_batches() -> None:
    net = network(torch.float32)
    model = LWSVM(net)
    images = np.random.default_rng(0).normal(size=(1203, 1, 8, 8)).astype(np.float32)
    scores = model.decision_function(images)
    assert net.training
    assert scores.dtype == np.float32
    with torch.no_grad():
        np.testing.assert_allclose(scores, net.eval()(torch.from_numpy(images)).numpy(), rtol=1e-5, atol=1e-6)
    assert np.array_equal(model.predict(images), scores.argmax(1))
    assert model.decision_function(images[:0]).shape == (0, 3)
    model = LWSVM(net, "ap", **QUICK).fit((TRAIN[0], TRAIN[1] % 2))  # a class that no block has counts as nothing
    assert model.objective_ is not None
    assert np.isfinite(model.objective_)


def far() -> PLCNN:
    """A network with large weights."""
    net = PLCNN(*parts())
    with torch.no_grad():
        net[8].weight.mul_(1e6)
    return net


DIVERGING: dict[str, tuple[Any, str, float, str]] = {
    "warm_up": (network(torch.float32), "warm_up", 1.0, r"warm_up, epoch 1: .* use a smaller learning_rate"),
    "pretrain": (far(), "pretrain", 1e33, "pretrain, epoch 1: .*; scale the images"),
}


@pytest.mark.parametrize("case", DIVERGING)
def test_a_stage_that_diverges_says_so_and_leaves_the_last_good_weights(case: str) -> None:
    net, stage, scale, says = DIVERGING[case]
    model, before = LWSVM(net, learning_rate=1e38, **QUICK), weights(net)
    with pytest.raises(ValueError, match=says):
        getattr(model, stage)((TRAIN[0] * np.float32(scale), TRAIN[1]))
    assert same(weights(net), before)
    assert model.history_ == []


def test_passes_end_when_the_validation_score_falls_and_the_best_network_is_kept() -> None:
    falling = iter(range(100, 0, -1))
    net = network()
    before = weights(net)
    settings = QUICK | {"max_passes": 9}
    model = LWSVM(net, score=lambda labels, scores: float(next(falling)), **settings).fit_layers(TRAIN, VAL)
    assert model.n_passes_ == 1
    assert model.score_ == 100.0
    assert same(weights(net), before)
    assert [row["score"] for row in model.history_ if row["score"] is not None] == [100.0, 99.0, 98.0, 97.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_score_is_the_metric_of_the_loss_of_the_network_that_is_kept(loss: str) -> None:
    model = LWSVM(network(), loss, **QUICK).fit(TRAIN, VAL)
    scores, labels = model.decision_function(VAL[0]), VAL[1]
    few = as_score("ap", "hinge")(labels, np.column_stack([scores, scores[:, 0]]))  # no sample has the last class
    assert few == pytest.approx(as_score("ap", "hinge")(labels, scores), abs=1e-12)
    metric = {"ap": metrics.average_precision, "ndcg": metrics.ndcg, "mrr": metrics.reciprocal_rank}.get(loss)
    if metric is None:
        expected = np.mean(model.predict(VAL[0]) == labels)
    else:
        expected = np.mean([metric(scores[:, c], labels == c) for c in range(3)])
    assert model.score_ == pytest.approx(expected, abs=1e-12)
    assert model.score_ == max(
        row["score"] for row in model.history_ if row["stage"] == "fit_layers" and row["score"] is not None
    )


@pytest.mark.parametrize("val", [None, VAL], ids=["alone", "validated"])
def test_ctrl_c_leaves_the_best_network_so_far_and_goes_on(monkeypatch: pytest.MonkeyPatch, val: Any) -> None:
    whole = LWSVM(network(), **QUICK).fit(TRAIN, val)
    epoch, calls = LayerSolver.epoch, [0]

    def interrupted(solver: LayerSolver, order: Any) -> None:
        epoch(solver, order)
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(LayerSolver, "epoch", interrupted)
    model = LWSVM(network(), **QUICK)
    with pytest.raises(KeyboardInterrupt):
        model.fit(TRAIN, val)
    done = rows_of(model)
    assert done == rows_of(whole)[: len(done)]
    assert len(done) > 7
    assert model.timing_["calls"] == done[-1]["calls"]
    blocks = Blocks(*TRAIN, 3, block_size=30, dtype=torch.float64)
    layers = [row for row in done if row["stage"] == "fit_layers" and row["objective"] is not None]
    kept = layers[-1] if val is None else max(layers, key=lambda row: row["score"])
    assert objective(model.net, blocks, BlockLoss("ap", 3), 1e-3) == pytest.approx(kept["objective"], rel=1e-12)
    assert model.score_ == kept["score"]
