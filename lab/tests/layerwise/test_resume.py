"""A run of LW-SVM that is killed, by kill -9 or Ctrl-C, and begun again ends with the same weights and history."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.checkpoint import Checkpoint, State  # noqa: E402
from rankwise_lab.layerwise.frank_wolfe import LayerSolver  # noqa: E402
from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

from rankwise.io import ModelFileError  # noqa: E402

SETTINGS: dict[str, Any] = {
    "block_size": 20, "pretrain_epochs": 2, "warmup_epochs": 2, "max_passes": 2, "max_epochs": 3, "batch_size": 32,
    "tol": 0.0,
}  # fmt: skip


def network() -> Any:
    torch.manual_seed(0)
    return PLCNN(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 3),
    )  # fmt: skip


def samples(n: int = 60, seed: int = 0) -> tuple[Any, Any]:
    centres = np.random.default_rng(7).normal(size=(3, 1, 8, 8))
    labels = np.arange(n) % 3
    noise = 3.0 * np.random.default_rng(seed).normal(size=(n, 1, 8, 8))
    return (noise + centres[labels]).astype(np.float32), labels


TRAIN, VAL = samples(), samples(45, seed=1)


def fit(folder: Path | None, what: str = "fit", val: Any = VAL, net: Any = None, **settings: Any) -> LWSVM:
    model = LWSVM(network() if net is None else net, **SETTINGS | settings)
    getattr(model, what)(TRAIN, val, checkpoint=folder)
    return model


def told(model: LWSVM) -> tuple[Any, ...]:
    """All of a result that no clock decides, weights as bytes."""
    rows = [{name: value for name, value in row.items() if "seconds" not in name} for row in model.history_]
    weights = {name: part.numpy().tobytes() for name, part in model.net.state_dict().items()}
    return rows, weights, model.objective_, model.score_, model.n_passes_, model.timing_["calls"]


class Killed(BaseException):
    """Ends a run as a kill would, but for what runs afterwards."""


def kill_after(monkeypatch: pytest.MonkeyPatch, n: int, error: type[BaseException] = Killed) -> None:
    save, count = Checkpoint.save, [0]

    def counted(checkpoint: Checkpoint, state: State) -> None:
        save(checkpoint, state)
        count[0] += 1
        if count[0] == n:
            raise error

    monkeypatch.setattr(Checkpoint, "save", counted)


# --- by kill -9, in processes of their own

KILLED = """
import json, os, signal, sys
import torch
from pathlib import Path
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from test_resume import Checkpoint, fit, told, VAL

# In this process: kill -9, when the checkpoint of a moment has been written.
def after(moment):
    save = Checkpoint.save

    def watched(checkpoint, state):
        save(checkpoint, state)
        if all(getattr(state, name) == value for name, value in moment.items()):
            os.kill(os.getpid(), signal.SIGKILL)

    Checkpoint.save = watched

# In this process: kill -9 when a new checkpoint is whole but not yet in the place of the old one.
def before_replacing(moment):
    os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)

# How a process ends that is to be killed at a moment and fits.
def ended(folder, val, moment):
    pid = os.fork()
    if pid == 0:
        (after if moment else before_replacing)(moment)
        fit(folder, val=val)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def plain(model):
    rows, weights, *rest = told(model)
    return [rows, {name: part.hex() for name, part in weights.items()}, *rest]

layers = {"stage": "fit_layers"}
moments = {
    "alone": [
        {"stage": "pretrain", "epoch": 1},
        {"stage": "warm_up", "epoch": 0},
        {"stage": "warm_up", "epoch": 1},
        {},
        layers | {"passes": 0, "layer": 0, "epoch": 2},
        layers | {"passes": 0, "layer": 1, "epoch": 0},
        layers | {"passes": 0, "layer": 1, "epoch": 1},
        layers | {"passes": 0, "layer": 2, "epoch": 3},
        layers | {"passes": 1, "layer": 0, "epoch": 0},
        layers | {"passes": 1, "layer": 2, "epoch": 2},
        {"finished": True},
    ],
    "validated": [
        {"stage": "pretrain", "epoch": 2},
        layers | {"passes": 0, "layer": 0, "epoch": 0},
        layers | {"passes": 0, "layer": 1, "epoch": 3},
        {"finished": True},
    ],
}
found = {}
for name, val in {"alone": None, "validated": VAL}.items():
    folder, whole = Path(sys.argv[2]) / name, plain(fit(None, val=val))
    ends = [ended(folder, val, moment) for moment in moments[name]]
    found[name] = {"whole": whole, "resumed": plain(fit(folder, val=val)), "ends": ends}
print(json.dumps(found))
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork here")
def test_a_run_killed_in_every_stage_and_in_the_middle_of_layers_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for name, found in json.loads(done.stdout).items():
        assert found["ends"] == [-signal.SIGKILL] * (11 if name == "alone" else 4)
        rows = found["whole"][0]
        assert len(rows) > 15
        assert found["resumed"] == found["whole"]
        with (tmp_path / name / "log.csv").open(newline="") as file:
            logged = [[row["stage"], row["pass"], row["layer"], row["epoch"]] for row in csv.DictReader(file)]
        assert logged == [
            [row["stage"], *("" if row[at] is None else str(row[at]) for at in ("pass", "layer", "epoch"))]
            for row in rows
        ]


# --- in this process


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fit", "pretrain", "warm_up", "fit_layers"])
def test_each_stage_resumes_on_its_own_and_after_several_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    whole = fit(None, what)
    for after in (1, 2, 3) if what.startswith("fit") else (1, 1):
        with monkeypatch.context() as patched:
            kill_after(patched, after)
            with pytest.raises(Killed):
                fit(tmp_path, what)
    assert told(fit(tmp_path, what)) == told(whole)


@pytest.mark.parametrize("loss", ["hinge", "ndcg"])
@pytest.mark.parametrize("decomposition", ["dc", "fixed"])
def test_every_way_to_pose_a_layer_resumes_in_its_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str, decomposition: str
) -> None:
    settings: dict[str, Any] = {"loss": loss, "decomposition": decomposition, "max_passes": 1}
    whole = fit(None, "fit_layers", None, **settings)
    for n in (2, 3, 4):
        with monkeypatch.context() as patched:
            kill_after(patched, n)
            with pytest.raises(Killed):
                fit(tmp_path, "fit_layers", None, **settings)
    assert told(fit(tmp_path, "fit_layers", None, **settings)) == told(whole)


def test_ctrl_c_leaves_a_checkpoint_that_resumes_with_a_new_network_or_with_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(None)
    for n, name in ((2, "early"), (9, "late")):
        net, folder = network(), tmp_path / name
        with monkeypatch.context() as patched:
            epoch, calls = LayerSolver.epoch, [0]

            def interrupted(solver: LayerSolver, order: Any, n: int = n, calls: list[int] = calls) -> None:
                calls[0] += 1
                if calls[0] == n:
                    raise KeyboardInterrupt
                epoch(solver, order)  # noqa: B023

            patched.setattr(LayerSolver, "epoch", interrupted)
            with pytest.raises(KeyboardInterrupt):
                fit(folder, net=net)
        assert told(fit(folder, net=net)) == told(whole)


def test_a_finished_run_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit(tmp_path)
    file = (tmp_path / "lwsvm.rw").read_bytes()

    def refused(*given: Any) -> None:
        raise AssertionError("nothing is to be done")

    monkeypatch.setattr(LayerSolver, "epoch", refused)
    monkeypatch.setattr(Checkpoint, "save", refused)
    again = fit(tmp_path)
    assert told(again) == told(whole)
    assert again.history_ == whole.history_
    assert again.timing_ == whole.timing_
    assert told(fit(tmp_path, net=whole.net)) == told(whole)
    assert (tmp_path / "lwsvm.rw").read_bytes() == file


def other_weights() -> Any:
    net = network()
    with torch.no_grad():
        net[8].weight[0, 0] += 1.0
    return net


def other_parts() -> Any:
    net = network()
    net[5].p = 0.2
    return net


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "lam": ({"lam": 0.5}, "lam"),
    "seed": ({"seed": 1}, "seed"),
    "loss": ({"loss": "ndcg"}, "loss"),
    "scale": ({"scale": 2.0}, "scale"),
    "two": ({"mu": 0.5, "block_size": 30}, "mu, block_size"),
    "stage": ({"what": "warm_up"}, "method of LWSVM"),
    "val": ({"val": None}, "val"),
    "val images": ({"val": samples(45, seed=2)}, "val"),
    "weights": ({"net": other_weights()}, "initial weights"),
    "parts": ({"net": other_parts()}, "network"),
    "dtype": ({"net": network().double()}, "train, val, network, initial weights"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            fit(folder)
    return folder


@pytest.mark.parametrize("case", OTHERS)
def test_a_checkpoint_of_another_run_is_refused_by_folder_and_difference(begun: Path, case: str) -> None:
    changed, difference = OTHERS[case]
    before = (begun / "lwsvm.rw").read_bytes()
    with pytest.raises(ValueError, match="pass another folder, or remove") as caught:
        fit(begun, **changed)
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
