"""The state of training, in memory and in a file, from which an interrupted run resumes as if nothing had happened.

No random state is kept: every shuffle is drawn from the seed, the stage, the pass, the layer and the epoch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.io import ModelFileError, fingerprint, read_model, write_model
from rankwise_lab.layerwise.log import STAGES, Row, as_array, as_rows

Weights = dict[str, Tensor]
_KIND = "lwsvm-checkpoint"
_FILE = "lwsvm.rw"
# This setting may differ if the network holds weights of the run itself.
INITIAL = "initial weights"


@dataclass(frozen=True, eq=False)
class State:
    """The state between two epochs. weights: those of the network at the end of the epoch or layer.

    epoch: epochs done in the stage, or on the current layer; solved: whether that layer needs no more. layer: layers
    done in the current pass. best, best_score: by validation, in this stage. objective, risk, score: of `weights`.
    pass_objective, pass_score: the objective and the best score when the pass began. ended: whether no pass follows.
    """

    stage: str
    weights: Weights
    epoch: int = 0
    passes: int = 0
    layer: int = 0
    solved: bool = False
    ended: bool = False
    finished: bool = False
    best: Weights = field(default_factory=dict)
    best_score: float | None = None
    objective: float | None = None
    risk: float | None = None
    score: float | None = None
    pass_objective: float | None = None
    pass_score: float | None = None
    optimiser: dict[str, NDArray[Any]] = field(default_factory=dict)
    solver: dict[str, NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    inference_seconds: float = 0.0
    calls: int = 0
    history: tuple[Row, ...] = ()

    @property
    def good(self) -> Weights:
        """The weights to leave in the network if training ended now."""
        return self.best or self.weights


_PLAIN: dict[str, type] = {
    "stage": str, "epoch": int, "passes": int, "layer": int, "solved": bool, "ended": bool, "finished": bool,
    "calls": int,
}  # fmt: skip
_NUMBERS = (
    "best_score", "objective", "risk", "score", "pass_objective", "pass_score", "seconds", "inference_seconds",
)  # fmt: skip


class Checkpoint:
    """The file of one run in a folder; settings: all that determines the run, by name, as plain data."""

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder, self._settings = Path(folder), dict(settings)
        self._path = self.folder / _FILE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ValueError(f"checkpoint={os.fspath(folder)!r} is a file; pass a folder") from None

    def load(self, device: torch.device) -> State | None:
        """The saved state, with weights on the device, or None if there is none; ValueError if it is of another run."""
        if not self._path.exists():
            return None
        file = read_model(self._path)
        if file.kind != _KIND:
            raise ModelFileError(f"{self._path} is not a checkpoint but a {file.kind}; pass another folder")
        try:
            settings = file.header["settings"]
            state = _state(file.header, file.arrays, device)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelFileError(
                f"{self._path}: damaged checkpoint ({error} is missing or wrong); remove it to start again"
            ) from None
        self._check(settings, state)
        return state

    def _check(self, there: dict[str, Any], state: State) -> None:
        here = self._settings
        differ = [name for name in here if name not in there or there[name] != here[name]]
        if differ == [INITIAL] and here[INITIAL] in (weights_digest(state.weights), weights_digest(state.good)):
            self._settings = there
            return
        if differ:
            remedy = " (resume with a network that has the initial weights of the run)" if differ == [INITIAL] else ""
            raise ValueError(
                f"checkpoint={os.fspath(self.folder)!r} holds another run, which differs in {', '.join(differ)}"
                f"{remedy}; pass another folder, or remove {self._path} to start again"
            )

    def save(self, state: State) -> None:
        """Replace the file by one with this state."""
        header = {name: getattr(state, name) for name in _PLAIN} | {"settings": self._settings}
        arrays: dict[str, NDArray[Any]] = {"history": as_array(state.history)}
        arrays["numbers"] = np.array([getattr(state, name) for name in _NUMBERS], np.float64)
        for group in ("weights", "best"):
            arrays |= {f"{group}.{name}": part.cpu().numpy() for name, part in getattr(state, group).items()}
        for group in ("optimiser", "solver"):
            arrays |= {f"{group}.{name}": part for name, part in getattr(state, group).items()}
        write_model(self._path, _KIND, header, arrays)


def _state(header: dict[str, Any], arrays: dict[str, NDArray[Any]], device: torch.device) -> State:
    parts: dict[str, Any] = {name: header[name] for name in _PLAIN}
    if any(type(parts[name]) is not kind for name, kind in _PLAIN.items()) or parts["stage"] not in STAGES:
        raise ValueError("the state")
    numbers = dict(zip(_NUMBERS, arrays["numbers"].tolist(), strict=True))
    parts |= {name: None if value != value else value for name, value in numbers.items()}
    for group in ("weights", "best", "optimiser", "solver"):
        prefix = f"{group}."
        found = {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}
        parts[group] = found
    for group in ("weights", "best"):
        parts[group] = {name: torch.from_numpy(np.array(part)).to(device) for name, part in parts[group].items()}
    return State(**parts, history=tuple(as_rows(arrays["history"])))


def copied(weights: Mapping[str, Tensor]) -> Weights:
    """A copy of weights, which does not change with the network."""
    return {name: part.detach().clone() for name, part in weights.items()}


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A digest of weights, by name."""
    names = sorted(weights)
    return fingerprint({"names": names}, [weights[name].detach().cpu().numpy() for name in names])
