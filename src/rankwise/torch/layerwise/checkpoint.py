"""Where training stands, in memory and in a file: a run that is killed goes on from there as if it had not been.

Nothing random is kept: every shuffle is drawn anew from the seed, the stage, the pass, the layer and the epoch.
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

from rankwise.io.fingerprint import fingerprint
from rankwise.io.models import ModelFileError, read_model, write_model
from rankwise.torch.layerwise.log import STAGES, Row, as_array, as_rows

Weights = dict[str, Tensor]
_KIND = "lwsvm-checkpoint"
_FILE = "lwsvm.rw"
# The setting that may differ, if the network holds weights of the run itself.
INITIAL = "initial weights"


@dataclass(frozen=True, eq=False)
class State:
    """A moment between two epochs. weights: the network's, where the epoch or the layer ended.

    epoch: done in the stage, or on the layer in hand; solved: whether that layer needs no more. layer: layers done in
    the pass in hand. best, best_score: by validation, in this stage. objective, risk, score: of `weights`.
    pass_objective, pass_score: the objective and the best score when the pass began. ended: no pass is to follow.
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
    """The file of one run in a folder; settings: plain data, all that decides the run, by name."""

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder, self._settings = Path(folder), dict(settings)
        self._path = self.folder / _FILE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ValueError(f"checkpoint={os.fspath(folder)!r} is a file; name a folder") from None

    def load(self, device: torch.device) -> State | None:
        """What was saved, its weights on the device; None if nothing was yet, ValueError if it was by another run."""
        if not self._path.exists():
            return None
        file = read_model(self._path)
        if file.kind != _KIND:
            raise ModelFileError(f"{self._path} is no checkpoint but a {file.kind}; name another folder")
        try:
            settings = file.header["settings"]
            state = _state(file.header, file.arrays, device)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelFileError(f"{self._path}: a checkpoint without {error}; remove it to begin afresh") from None
        self._check(settings, state)
        return state

    def _check(self, there: dict[str, Any], state: State) -> None:
        here = self._settings
        differ = [name for name in here if name not in there or there[name] != here[name]]
        if differ == [INITIAL] and here[INITIAL] in (weights_digest(state.weights), weights_digest(state.good)):
            self._settings = there
            return
        if differ:
            remedy = " (a run goes on with a network as it was made)" if differ == [INITIAL] else ""
            raise ValueError(
                f"checkpoint={os.fspath(self.folder)!r} holds another run: it differs in {', '.join(differ)}{remedy}; "
                f"name another folder, or remove {self._path} to begin afresh"
            )

    def save(self, state: State) -> None:
        """Replace the file by one of this state."""
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
        raise ValueError("where it stands")
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
    """Weights that do not change with the network."""
    return {name: part.detach().clone() for name, part in weights.items()}


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A digest of weights, by name."""
    names = sorted(weights)
    return fingerprint({"names": names}, [weights[name].detach().cpu().numpy() for name in names])
