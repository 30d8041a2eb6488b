"""The network of `rankwise bench finetune`, how it is trained, and the losses it is trained on with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from torch import Tensor, nn
from torch.nn import functional

from rankwise.torch import APHingeLoss, DirectLoss, NDCGHingeLoss
from rankwise_lab.benchmarks.finetune_data import Images, Labels, Part

__all__ = ["ARMS", "REFERENCE", "Arm", "cross_entropy", "mean_ap", "network", "one_thread", "train"]

LossOfScores = Callable[[Tensor, Tensor], Tensor]

_WEIGHT_DECAY = 1e-4
_SMOOTHING = 0.05
_EVALUATED = 500
_MIDDLE, _SPREAD = 120.0, 64.0


@dataclass(frozen=True)
class Arm:
    """A way to train on: a loss, made for labels (n, C), of scores and labels of a batch."""

    name: str
    make: Callable[[Labels], LossOfScores]
    ours: bool


def cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over images and classes."""
    return functional.binary_cross_entropy_with_logits(scores, target)


def _smoothed(scores: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy with labels of 0.05 and 0.95 for 0 and 1, a common remedy for wrong ones."""
    return cross_entropy(scores, target * (1 - 2 * _SMOOTHING) + _SMOOTHING)


def _weighted(labels: Labels) -> LossOfScores:
    """Cross-entropy with positives of a class weighed by √(N/P)."""
    positives = np.maximum(labels.sum(axis=0), 1)
    weight = torch.from_numpy(np.sqrt((len(labels) - positives) / positives)).float()
    return lambda scores, target: functional.binary_cross_entropy_with_logits(scores, target, pos_weight=weight)


def _whatever_the_labels(loss: LossOfScores, labels: Labels) -> LossOfScores:
    return loss


def _arm(name: str, loss: LossOfScores, ours: bool) -> Arm:
    return Arm(name, partial(_whatever_the_labels, loss), ours)


REFERENCE = "cross-entropy"
ARMS = (
    _arm(REFERENCE, cross_entropy, ours=False),
    Arm("weighted", _weighted, ours=False),
    _arm("smoothed", _smoothed, ours=False),
    _arm("ap-hinge", APHingeLoss(dim=0), ours=True),
    _arm("ndcg-hinge", NDCGHingeLoss(dim=0), ours=True),
    _arm("direct-ap", DirectLoss("ap", epsilon=0.1, dim=0), ours=True),
)


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """PyTorch on one thread with this seed; both are set back at the end."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def network(widths: Sequence[int], outputs: int) -> nn.Sequential:
    """3 × 3 convolutions of stride 2 with batch normalisation, the mean over places, and a linear layer."""
    layers: list[nn.Module] = []
    for before, after in zip((3, *widths), widths, strict=False):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], outputs)]
    model: nn.Sequential = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


def train(
    model: nn.Module,
    part: Part,
    loss: LossOfScores,
    epochs: int,
    batch: int,
    learning_rate: float,
    rng: np.random.Generator,
    decay: bool = True,
) -> None:
    """Train in place by AdamW on batches with every class in proportion, images mirrored at random.

    decay: the learning rate falls to 0 along half a cosine, otherwise it stays.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=_WEIGHT_DECAY)
    pixels, labels = _pixels(part.images), torch.from_numpy(part.labels).float()
    steps = epochs * _n_batches(len(labels), batch)
    step = 0
    model.train()
    for _ in range(epochs):
        for rows in batches(part.labels, batch, rng):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * (0.5 * (1 + math.cos(math.pi * step / steps)) if decay else 1.0)
            optimiser.zero_grad()
            value = loss(model(_tensor(_mirrored(pixels[rows], rng))), labels[rows])
            value.backward()
            optimiser.step()
            step += 1


def batches(labels: Labels, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """All rows once, in batches of about `size`, in each of which every class has its share of rows."""
    first = np.where(labels.any(axis=1), labels.argmax(axis=1), -1)
    place = np.empty(len(labels))
    for label in np.unique(first):
        rows = rng.permutation(np.flatnonzero(first == label))
        place[rows] = (np.arange(rows.size) + rng.random()) / rows.size
    yield from np.array_split(np.argsort(place, kind="stable"), _n_batches(len(labels), size))


def _n_batches(n: int, size: int) -> int:
    return max(n // size, 1)


def _pixels(images: Images) -> Images:
    """As (n, 32, 32, 3): colours side by side in memory are what convolutions are quickest with."""
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1))


def _mirrored(pixels: Images, rng: np.random.Generator) -> Images:
    """A copy in which about half of the images are left-right mirrored."""
    which = rng.random(len(pixels)) < 0.5
    mirrored = pixels.copy()
    mirrored[which] = pixels[which][:, :, ::-1]
    return mirrored


def _tensor(pixels: Images) -> Tensor:
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().sub_(_MIDDLE).div_(_SPREAD)


def mean_ap(model: nn.Module, part: Part) -> float:
    """Mean over rare classes of the average precision of the images ranked by that class's score."""
    model.eval()
    with torch.no_grad():
        pieces = [
            model(_tensor(_pixels(part.images[i : i + _EVALUATED]))) for i in range(0, len(part.images), _EVALUATED)
        ]
    scores = torch.cat(pieces).numpy()
    return float(
        np.mean(
            [
                average_precision_score(truth, column, sample_weight=part.weight)
                for truth, column in zip(part.labels.T, scores.T, strict=True)
            ]
        )
    )
