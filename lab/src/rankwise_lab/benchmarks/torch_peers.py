"""Other losses for average precision, to compare ours with on the same batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rankwise.torch import APHingeLoss, ErrorDrivenLoss, RetrievalLoss
from rankwise_lab.benchmarks.arms import TORCH, Package
from rankwise_lab.benchmarks.plan import Target, at_least
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import Task

# Share of positives among the scores, by kind.
_POSITIVES = {"scores": 0.02, "rare": 1 / 1001}
_DIMENSIONS = 128
# Spread of embeddings around the centre of their class, in units of the spread of centres: classes overlap.
_SPREAD = np.float32(2.0)
_TEMPERATURE = 0.01
# Of AP-loss.
_WIDTH = 1.0

Objective = Callable[..., Any]


class Batch(NamedTuple):
    """A batch: scores and target, or embeddings and labels; the first has a gradient."""

    inputs: torch.Tensor
    truth: torch.Tensor


@dataclass(frozen=True)
class Peer:
    """A third-party loss. kind: "embeddings", "scores" or "rare"; target: for its time over ours."""

    name: str
    kind: str
    make: Callable[[int], Objective]
    package: Package = TORCH
    target: Target | None = None


def step(objective: Objective, batch: Batch) -> Task:
    """Return a task: forward and backward, without the previous gradient."""

    def task() -> object:
        batch.inputs.grad = None
        return objective(batch.inputs, batch.truth).backward()

    return task


def batch_of(kind: str, size: int) -> Batch:
    """Return scores (B,), 2 % or one in 1,001 of positives; or embeddings (B, 128) of √B classes, √B of each.

    Embeddings are in the order of their classes: SmoothAPLoss follows its paper only if there are as many classes as
    members of each, one class after the other.
    """
    if kind in _POSITIVES:
        n_pos = max(1, round(_POSITIVES[kind] * size))
        return batch_of_arrays(*normal(n_pos, size - n_pos))
    members = math.isqrt(size)
    if members**2 != size:
        raise ValueError(f"the number of embeddings in a batch must be a square, got {size}")
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


def metric_learning(name: str, batch: object, **options: Any) -> Objective:
    """Make a loss of pytorch-metric-learning with these options, else its defaults; it does not depend on the batch."""
    from pytorch_metric_learning import losses

    objective: Objective = getattr(losses, name)(**options)
    return objective


def libauc(size: int) -> Objective:
    """Make LibAUC's APLoss for this many samples: of scores and target (b, 1), and of the indices (b,) of a batch."""
    from libauc.losses import APLoss

    objective: Objective = APLoss(data_len=size, device="cpu")
    return objective


def _libauc_of_all(size: int) -> Objective:
    objective, index = libauc(size), torch.arange(size)
    return lambda scores, target: objective(scores, target, index)


class _PublishedLoop(torch.autograd.Function):
    """AP-loss as its authors compute it: from the lowest positive to the highest, each against all within its width."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        positives = scores[target]
        met = ~target & (scores >= positives.min() - _WIDTH)
        negatives = scores[met]
        update, shares = torch.zeros_like(scores), torch.zeros_like(negatives)
        precision = torch.zeros_like(positives)
        best = torch.zeros(())
        for i in positives.argsort():
            a = _ramp(positives - positives[i]).sum() + 0.5
            above = _ramp(negatives - positives[i])
            rank = a + above.sum()
            above /= rank
            if best <= a / rank:
                best = a / rank
            else:
                above *= (1 - best) / (1 - a / rank)
            shares += above
            precision[i] = best
        update[met] = shares / len(positives)
        update[target] = (precision - 1) / len(positives)
        ctx.save_for_backward(update)
        return 1 - precision.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (update,) = ctx.saved_tensors
        return gradients[0] * update, None


def _ramp(differences: torch.Tensor) -> torch.Tensor:
    return (differences / (2 * _WIDTH) + 0.5).clamp_(0, 1)


def published_ap_loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """AP-loss of width 1 with interpolated precision (Chen et al., 2019): scores (n,), target (n,) bool; P·N steps."""
    value: torch.Tensor = _PublishedLoop.apply(scores, target)
    return value


OURS: dict[str, tuple[str, Callable[[], Objective]]] = {
    "embeddings": ("RetrievalLoss", partial(RetrievalLoss, surrogate="hinge")),
    "scores": ("APHingeLoss", APHingeLoss),
    "rare": ("ErrorDrivenLoss", partial(ErrorDrivenLoss, width=_WIDTH)),
}

METRIC_LEARNING = Package(
    "pytorch_metric_learning", "pip install 'rankwise-lab[torch]' (in a checkout: pip install './lab[torch]')"
)
# It requires dozens of packages, but its losses use only those of the extra.
LIBAUC = Package("libauc", "pip install --no-deps libauc")
_PEERS = (
    *(
        Peer(name, "embeddings", partial(metric_learning, name), METRIC_LEARNING)
        for name in ("SmoothAPLoss", "FastAPLoss")
    ),
    Peer("LibAUC's APLoss", "scores", _libauc_of_all, LIBAUC),
    Peer("pairwise sigmoids", "scores", lambda size: pairwise_smooth_ap),
    Peer("AP-loss as published", "rare", lambda size: published_ap_loss, target=at_least(20)),
)
PEERS = {peer.name: peer for peer in _PEERS}
