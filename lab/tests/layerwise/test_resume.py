"""A run of LW-SVM that is cut off, as by a kill or by Ctrl-C, goes on to the same weights and history."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from lwsvm_runs import TRAIN, VAL, network, rows_of, samples  # noqa: E402
from rankwise_lab.layerwise.checkpoint import Checkpoint, State  # noqa: E402
from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402

from rankwise.io import ModelFileError  # noqa: E402

SETTINGS: dict[str, Any] = {
    "block_size": 30, "pretrain_epochs": 2, "warmup_epochs": 2, "max_passes": 2, "max_epochs": 3, "batch_size": 48,
    "tol": 0.0,
}  # fmt: skip


def fit(folder: Path | None, what: str = "fit", val: Any = VAL, net: Any = None, **settings: Any) -> LWSVM:
    model = LWSVM(network(torch.float32) if net is None else net, **SETTINGS | settings)
    getattr(model, what)(TRAIN, val, checkpoint=folder)
    return model


def told(model: LWSVM) -> list[Any]:
    """All of a result that no clock decides, as plain data."""
    weights = {name: part.numpy().tobytes().hex() for name, part in model.net.state_dict().items()}
    return [rows_of(model), weights, model.objective_, model.score_, model.n_passes_, model.timing_["calls"]]


class Killed(BaseException):
    """Ends a run as a kill would, but for what runs afterwards."""


def kill_after(monkeypatch: pytest.MonkeyPatch, n: int, by: type[BaseException] = Killed) -> None:
    save, count = Checkpoint.save, [0]

    def counted(checkpoint: Checkpoint, state: State) -> None:
        save(checkpoint, state)
        count[0] += 1
        if count[0] == n:
            raise by

    monkeypatch.setattr(Checkpoint, "save", counted)


def test_a_run_killed_in_every_stage_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, val, moments in (("alone", None, (1, 2, 1, 2, 1, 3, 4)), ("validated", VAL, (2, 4, 7))):
        rows, *_ = whole = told(fit(None, val=val))
        for n in moments:
            with monkeypatch.context() as patched:
                kill_after(patched, n)
                with pytest.raises(Killed):
                    fit(tmp_path / name, val=val)
        assert told(fit(tmp_path / name, val=val)) == whole
        with (tmp_path / name / "log.csv").open(newline="") as file:
            logged = [[row[at] for at in ("stage", "pass", "layer", "epoch")] for row in csv.DictReader(file)]
        places = [[row[at] for at in ("stage", "pass", "layer", "epoch")] for row in rows]
        assert logged == [["" if at is None else str(at) for at in place] for place in places]
        assert {row["stage"] for row in rows} == {"pretrain", "warm_up", "fit_layers"}


def test_after_ctrl_c_the_same_network_resumes_and_a_finished_run_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = network(torch.float32)
    with monkeypatch.context() as patched:
        kill_after(patched, 5, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path, net=net)
    resumed = fit(tmp_path, net=net)
    assert told(resumed) == told(fit(None))
    file = (tmp_path / "lwsvm.rw").read_bytes()
    kill_after(monkeypatch, 1)
    for again in (fit(tmp_path), fit(tmp_path, net=net)):
        assert told(again) == told(resumed)
        assert again.history_ == resumed.history_
        assert again.timing_ == resumed.timing_
    assert (tmp_path / "lwsvm.rw").read_bytes() == file


def changed(change: Any) -> Any:
    net = network(torch.float32)
    with torch.no_grad():
        change(net)
    return net


OTHERS: dict[str, dict[str, Any]] = {
    "lam": {"lam": 0.5},
    "seed": {"seed": 1},
    "loss": {"loss": "ndcg"},
    "scale": {"scale": 2.0},
    "mu, block_size": {"mu": 0.5, "block_size": 45},
    "method of LWSVM": {"what": "warm_up"},
    "val": {"val": samples(60, seed=2)},
    "initial weights": {"net": changed(lambda net: net[8].weight[0, 0].add_(1.0))},
    "network": {"net": changed(lambda net: setattr(net[5], "p", 0.2))},
    "train, val, network, initial weights": {"net": network()},
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            fit(folder)
    return folder


@pytest.mark.parametrize("difference", OTHERS)
def test_a_checkpoint_of_another_run_is_refused_by_folder_and_difference(begun: Path, difference: str) -> None:
    before = (begun / "lwsvm.rw").read_bytes()
    with pytest.raises(ValueError, match="pass another folder, or remove") as caught:
        fit(begun, **OTHERS[difference])
    message = str(caught.value)
    assert f"checkpoint={str(begun)!r} holds another run, " in message
    differences = message.split("differs in ")[1].split(" (")[0].split(";")[0]
    assert set(difference.split(", ")) == set(differences.split(", "))
    assert (begun / "lwsvm.rw").read_bytes() == before


def test_a_damaged_checkpoint_is_refused_and_named(begun: Path, tmp_path: Path) -> None:
    whole = (begun / "lwsvm.rw").read_bytes()
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:middle] + b"\x00\x01\x02\x03" + whole[middle + 4 :], b"", b"text"):
        (tmp_path / "lwsvm.rw").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"lwsvm\.rw"):
            fit(tmp_path)
    network().save(tmp_path / "lwsvm.rw")
    with pytest.raises(ModelFileError, match="is not a checkpoint but a plcnn"):
        fit(tmp_path)
