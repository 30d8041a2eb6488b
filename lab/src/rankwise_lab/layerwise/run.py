"""One run of training: its data, its state, and the move from one state to the next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.checkpoint import Checkpoint, State, copied
from rankwise_lab.layerwise.evaluation import Score, score_of
from rankwise_lab.layerwise.log import STAGES, Log, as_row
from rankwise_lab.layerwise.network import PLCNN


@dataclass(frozen=True)
class Settings:
    """The numbers that determine a run; as in `LWSVM`."""

    lam: float
    mu: float
    pretrain_epochs: int
    warmup_epochs: int
    max_passes: int
    max_epochs: int
    tol: float
    layers: int | None
    decomposition: str
    learning_rate: float
    batch_size: int
    memory: float
    seed: int


class Run:
    """A network, its samples and its stages; `state` is the last complete state."""

    def __init__(
        self,
        net: PLCNN,
        settings: Settings,
        loss: BlockLoss,
        train: Blocks,
        *,
        val: Blocks | None,
        score: Score | None,
        plan: tuple[str, ...],
        log: Log,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.net, self.settings, self.loss, self.train = net, settings, loss, train
        self._val, self._score, self._plan, self._log, self._checkpoint = val, score, plan, log, checkpoint
        self._began = time.perf_counter()
        self.state = State(plan[0], copied(net.state_dict()))
        self.reread()
        # What the state has counted already, minus what the loss has counted.
        self._calls = self.state.calls - loss.calls
        self._inference = self.state.inference_seconds - loss.seconds

    def reread(self) -> None:
        """Return to the state of the file, if there is one: a run can be resumed from there."""
        found = None if self._checkpoint is None else self._checkpoint.load(self.device)
        if found is not None:
            self.state = found

    def begin(self) -> None:
        """Put the weights of the state into the network, and its rows into the log."""
        self.net.load_state_dict(self.state.weights)
        self._log.begin(self.state.history)

    @property
    def saving(self) -> bool:
        """Whether states are written to a file."""
        return self._checkpoint is not None

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self.train.device

    @property
    def layers(self) -> list[int]:
        """Positions of the convolutions and dense layers that LW-SVM trains, last to first, without frozen ones."""
        free = [k for k in self.net.trainable[::-1] if self.net[k].weight.requires_grad]
        return free[: self.settings.layers]

    def rng(self, *where: int) -> np.random.Generator:
        """The generator for shuffles at this place of the current stage."""
        return np.random.default_rng([self.settings.seed, STAGES.index(self.state.stage) + 1, *where])

    def validate(self) -> float | None:
        """The network's score on the validation samples, if there are any."""
        if self._val is None or self._score is None:
            return None
        return score_of(self.net, self._val, self._score)

    def judged(self, weights: dict[str, Tensor], score: float | None) -> dict[str, Any]:
        """The changes of the state by weights with this score; they become the best if no score was higher."""
        changes: dict[str, Any] = {"weights": weights, "score": score}
        if score is not None and (self.state.best_score is None or score >= self.state.best_score):
            changes |= {"best": weights, "best_score": score}
        return changes

    def commit(self, row: dict[str, Any] | None = None, **changes: Any) -> None:
        """Move to the next state, in the file and here."""
        clock: dict[str, Any] = {
            "seconds": self.state.seconds + time.perf_counter() - self._began,
            "inference_seconds": self._inference + self.loss.seconds,
            "calls": self._calls + self.loss.calls,
        }
        if row is not None:
            changes["history"] = (*self.state.history, as_row(self.state.stage, **row, **clock))
        state = replace(self.state, **changes, **clock)
        if self._checkpoint is not None:
            self._checkpoint.save(state)
        self.state, self._began = state, time.perf_counter()
        self._log.show(state.history)

    def end_stage(self) -> None:
        """Put the best weights of the stage into the network and move to the next stage, if there is one."""
        state, at = self.state, self._plan.index(self.state.stage) + 1
        self.net.load_state_dict(state.good)
        changes: dict[str, Any] = {"weights": state.good, "optimiser": {}, "solver": {}}
        if at == len(self._plan):
            self.commit(**changes, finished=True)
        else:
            changes |= dict.fromkeys(("objective", "risk", "score", "best_score"))
            self.commit(**changes, stage=self._plan[at], epoch=0, best={})


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch's random numbers within a with block; the state of the caller is restored afterwards."""
    on_cpu = device.type == "cpu"
    devices = [] if on_cpu else [device]
    with torch.random.fork_rng(devices, device_type="cuda" if on_cpu else device.type):
        torch.default_generator.manual_seed(seed)
        if not on_cpu:
            getattr(torch, device.type).manual_seed(seed)
        yield
