"""What LW-SVM keeps and tells: the best network by validation, also after Ctrl-C, and the rows of its log."""

from __future__ import annotations

import csv
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lwsvm_runs import LOSSES, QUICK, TRAIN, VAL, network, rows_of, same, weights  # noqa: E402
from rankwise_lab.layerwise.block_loss import BlockLoss  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from rankwise_lab.layerwise.evaluation import as_score, objective  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver  # noqa: E402
from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402

from rankwise import metrics  # noqa: E402


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


@pytest.mark.parametrize("stage", ["pretrain", "warm_up"])
def test_an_adadelta_stage_ends_with_its_best_epoch(stage: str) -> None:
    told = iter([1.0, 3.0, 2.0])
    settings = QUICK | {"pretrain_epochs": 3, "warmup_epochs": 3}
    model = LWSVM(network(), score=lambda labels, scores: next(told), **settings)
    getattr(model, stage)(TRAIN, VAL)
    other = LWSVM(network(), **QUICK)  # of two epochs
    getattr(other, stage)(TRAIN)
    assert model.score_ == 3.0
    assert same(weights(model.net), weights(other.net))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_score_is_the_metric_of_the_loss_of_the_network_that_is_kept(loss: str) -> None:
    model = LWSVM(network(), loss, **QUICK).fit(TRAIN, VAL)
    scores, labels = model.decision_function(VAL[0]), VAL[1]
    metric = {"ap": metrics.average_precision, "ndcg": metrics.ndcg, "mrr": metrics.reciprocal_rank}.get(loss)
    if metric is None:
        expected = np.mean(model.predict(VAL[0]) == labels)
    else:
        expected = np.mean([metric(scores[:, c], labels == c) for c in range(3)])
    assert model.score_ == pytest.approx(expected, abs=1e-12)
    assert model.score_ == max(
        row["score"] for row in model.history_ if row["stage"] == "fit_layers" and row["score"] is not None
    )


def test_a_class_that_no_sample_has_is_left_out_of_the_mean() -> None:
    scores = np.random.default_rng(0).normal(size=(20, 4))
    labels = np.arange(20) % 3
    expected = np.mean([metrics.average_precision(scores[:, c], labels == c) for c in range(3)])
    assert as_score("ap", "hinge")(labels, scores) == pytest.approx(expected, abs=1e-12)


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


def test_progress_is_a_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    LWSVM(network(), **QUICK).fit(TRAIN, VAL)
    assert capsys.readouterr().err == ""
    model = LWSVM(network(), **QUICK).fit(TRAIN, VAL, progress=True)
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"LWSVM ap: fit_layers, pass {model.n_passes_}, layer 0, epoch ")
    assert f"objective {model.objective_:.6g}" in said
    assert said.endswith(" s")


def test_rows_go_to_tensorboard_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float, int]] = []

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int) -> None:
            told.append((folder, 0.0, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            told.append((name, value, step))

        def close(self) -> None:
            told.append(("closed", 0.0, 0))

    module: Any = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    model = LWSVM(network(), **QUICK).warm_up(TRAIN, VAL, checkpoint=tmp_path)
    assert told[0] == (str(tmp_path / "tensorboard"), 0.0, 0)
    assert told[-1][0] == "closed"
    for step, row in enumerate(model.history_):
        assert ("warm_up/objective", row["objective"], step) in told
        assert ("warm_up/score", row["score"], step) in told


def test_without_tensorboard_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    LWSVM(network(), **QUICK).warm_up(TRAIN, checkpoint=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.csv", "lwsvm.rw"]


def test_the_log_holds_the_history(tmp_path: Path) -> None:
    model = LWSVM(network(), **QUICK).fit(TRAIN, VAL, checkpoint=tmp_path)
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(model.history_)
    for row, kept in zip(rows, model.history_, strict=True):
        assert row.keys() == kept.keys()
        assert row == {name: "" if value is None else str(value) for name, value in kept.items()}
