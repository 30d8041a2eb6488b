"""The network of `rankwise bench finetune`, and how it is trained and judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from torch import Tensor, nn

from rankwise_lab.benchmarks.finetune_data import Images, Labels, Part

__all__ = ["LossOfRows", "mean_ap", "network", "one_thread", "optimiser_of", "step", "train"]

# A loss of the scores and labels (b, C) of a batch, and of its rows (b,).
LossOfRows = Callable[[Tensor, Tensor, Tensor], Tensor]

_WEIGHT_DECAY = 1e-4
_EVALUATED = 500
_MIDDLE, _SPREAD = 120.0, 64.0


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Run PyTorch on one thread with this seed, and restore both at the end."""
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
    loss: LossOfRows,
    epochs: int,
    batch: int,
    learning_rate: float,
    rng: np.random.Generator,
    decay: bool = True,
) -> None:
    """Train in place by AdamW on batches with every class in proportion, images mirrored at random.

    decay: the learning rate falls to 0 along half a cosine, otherwise it stays.
    """
    optimiser = optimiser_of(model, learning_rate)
    pixels, labels = _pixels(part.images), torch.from_numpy(part.labels).float()
    steps = epochs * _n_batches(len(labels), batch)
    done = 0
    model.train()
    for _ in range(epochs):
        for rows in batches(part.labels, batch, rng):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * (0.5 * (1 + math.cos(math.pi * done / steps)) if decay else 1.0)
            step(model, optimiser, loss, _tensor(_mirrored(pixels[rows], rng)), labels[rows], torch.from_numpy(rows))
            done += 1


def optimiser_of(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """AdamW with a little weight decay."""
    return torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=_WEIGHT_DECAY)


def step(
    model: nn.Module, optimiser: torch.optim.Optimizer, loss: LossOfRows, images: Tensor, labels: Tensor, rows: Tensor
) -> None:
    """One step on a batch."""
    optimiser.zero_grad()
    loss(model(images), labels, rows).backward()
    optimiser.step()


def batches(labels: Labels, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield all rows once, in batches of about `size` that contain every class in proportion."""
    first = np.where(labels.any(axis=1), labels.argmax(axis=1), -1)
    place = np.empty(len(labels))
    for label in np.unique(first):
        rows = rng.permutation(np.flatnonzero(first == label))
        place[rows] = (np.arange(rows.size) + rng.random()) / rows.size
    yield from np.array_split(np.argsort(place, kind="stable"), _n_batches(len(labels), size))


def _n_batches(n: int, size: int) -> int:
    return max(n // size, 1)


def _pixels(images: Images) -> Images:
    """Convert to (n, 32, 32, 3): convolutions are fastest with the colours of a pixel side by side in memory."""
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
