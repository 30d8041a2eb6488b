"""What others train on average precision with, and what ours is compared with on the same batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rankwise.torch import APHingeLoss, RetrievalLoss
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import Task

__all__ = ["OURS", "PEERS", "Batch", "Peer", "batch_of", "batch_of_arrays", "pairwise_smooth_ap", "step"]

# Of scores, this share belongs to positives.
_POSITIVES = 0.02
_DIMENSIONS = 128
# Of embeddings about the centre of their class, the spread of centres being 1: classes overlap.
_SPREAD = np.float32(2.0)
_TEMPERATURE = 0.01

Objective = Callable[..., Any]


class Batch(NamedTuple):
    """What has a gradient, and what says which of it is positive: scores and target, or embeddings and labels."""

    inputs: torch.Tensor
    truth: torch.Tensor


@dataclass(frozen=True)
class Peer:
    """A loss of others. kind: "scores" or "embeddings"; package: what must be importable; install: how to get it."""

    name: str
    kind: str
    make: Callable[[int], Objective]
    package: str = "torch"
    install: str = ""

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return find_spec(self.package) is not None


def step(objective: Objective, batch: Batch) -> Task:
    """Forward and backward; the gradient of the step before is forgotten."""

    def task() -> object:
        batch.inputs.grad = None
        return objective(batch.inputs, batch.truth).backward()

    return task


def batch_of(kind: str, size: int) -> Batch:
    """Scores (B,) with 2 % positives, or embeddings (B, 128) of √B classes, √B of each and in order.

    SmoothAPLoss gives what its paper defines only for as many classes as each has members, one class after the other.
    """
    if kind == "scores":
        n_pos = max(1, round(_POSITIVES * size))
        return batch_of_arrays(*normal(n_pos, size - n_pos))
    members = math.isqrt(size)
    if members**2 != size:
        raise ValueError(f"a batch of embeddings has a square number of them, got {size}")
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(members), members)
    centres = rng.standard_normal((members, _DIMENSIONS), dtype=np.float32)
    noise = rng.standard_normal((size, _DIMENSIONS), dtype=np.float32)
    return batch_of_arrays(centres[labels] + _SPREAD * noise, labels)


def batch_of_arrays(inputs: NDArray[np.float32], truth: NDArray[Any]) -> Batch:
    """The batch of two arrays."""
    return Batch(torch.from_numpy(inputs).requires_grad_(), torch.from_numpy(truth))


def pairwise_smooth_ap(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1 − AP with every comparison of scores smoothed: scores (n,), target (n,) bool; P·n sigmoids.

    rank(i) = 1 + Σ_{j≠i} σ((s_j − s_i)/τ), over all j and over the positives; AP = mean over positives of their ratio.
    """
    above = torch.sigmoid((scores - scores[target].unsqueeze(1)) / _TEMPERATURE)  # (P, n), σ(0) = ½ at itself
    return 1 - ((0.5 + above[:, target].sum(1)) / (0.5 + above.sum(1))).mean()


def _metric_learning(name: str, size: int) -> Objective:
    from pytorch_metric_learning import losses

    objective: Objective = getattr(losses, name)()
    return objective


def _libauc(size: int) -> Objective:
    from libauc.losses import APLoss

    objective, index = APLoss(data_len=size, device="cpu"), torch.arange(size)
    return lambda scores, target: objective(scores, target, index)


OURS: dict[str, tuple[str, Callable[[], Objective]]] = {
    "embeddings": ("RetrievalLoss", RetrievalLoss),
    "scores": ("APHingeLoss", APHingeLoss),
}

_METRIC_LEARNING = ("pytorch_metric_learning", "pip install './lab[torch]' in a checkout")
_PEERS = (
    *(
        Peer(name, "embeddings", partial(_metric_learning, name), *_METRIC_LEARNING)
        for name in ("SmoothAPLoss", "FastAPLoss")
    ),
    # It asks for dozens of packages, of which its losses use none but those of the extra.
    Peer("LibAUC's APLoss", "scores", _libauc, "libauc", "pip install --no-deps libauc"),
    Peer("pairwise sigmoids", "scores", lambda size: pairwise_smooth_ap),
)
PEERS = {peer.name: peer for peer in _PEERS}
