"""What `rankwise bench finetune` trains: a network, how it is trained and judged, and the losses that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from torch import Tensor, nn
from torch.nn import functional

from rankwise.torch import APHingeLoss, DirectLoss, ErrorDrivenLoss, NDCGHingeLoss, ScoreMemory, SmoothRankLoss
from rankwise_lab.benchmarks import arms
from rankwise_lab.benchmarks.torch_peers import LIBAUC, libauc

Images = NDArray[np.uint8]
Labels = NDArray[np.bool_]

# A loss of the scores and labels (b, C) of a batch, and of its rows (b,).
LossOfRows = Callable[[Tensor, Tensor, Tensor], Tensor]

_WEIGHT_DECAY = 1e-4
_EVALUATED = 500
_MIDDLE, _SPREAD = 120.0, 64.0


@dataclass(frozen=True, eq=False)
class Part:
    """Images (n, 3, 32, 32), labels (n, C), one per rare class, and weights of images in a metric (n,)."""

    images: Images
    labels: Labels
    weight: NDArray[np.float64]


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


# Losses, each made for the labels of one training.

LossOfScores = Callable[[Tensor, Tensor], Tensor]

_SMOOTHING = 0.05
_FOCUS = 2.0


@dataclass(frozen=True)
class Arm(arms.Arm):
    """make: from labels (n, C) to a loss of scores, labels and rows of a batch.

    whole: trains for the whole budget from initial weights, instead of continuing from cross-entropy.
    """

    whole: bool = False


def _cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over images and classes."""
    return functional.binary_cross_entropy_with_logits(scores, target)


def plain(scores: Tensor, target: Tensor, rows: Tensor) -> Tensor:
    """Cross-entropy, whatever the rows."""
    return _cross_entropy(scores, target)


def _smoothed(scores: Tensor, target: Tensor) -> Tensor:
    """Return cross-entropy with labels 0.05 and 0.95 for 0 and 1, a common remedy for wrong labels."""
    return _cross_entropy(scores, target * (1 - 2 * _SMOOTHING) + _SMOOTHING)


def focal(scores: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy times (1 − p)², p being the probability of the right label."""
    each = functional.binary_cross_entropy_with_logits(scores, target, reduction="none")
    return ((1 - torch.exp(-each)) ** _FOCUS * each).mean()


def softmax(scores: Tensor, target: Tensor) -> Tensor:
    """−log(exp s_i / (exp s_i + Σ_j exp s_j)), j over the negatives of a class: the mean over positives i, or 0."""
    positive = target > 0
    against = torch.logsumexp(scores.masked_fill(positive, -torch.inf), dim=0)
    each = functional.softplus(against - scores)[positive]
    return each.sum() / max(each.numel(), 1)


def _of_scores(loss: LossOfScores, labels: Labels) -> LossOfRows:
    """Return a loss that needs neither labels nor rows."""
    return lambda scores, target, rows: loss(scores, target)


def _weighted(labels: Labels) -> LossOfRows:
    """Return cross-entropy with the positives of a class weighted by √(N/P)."""
    positives = np.maximum(labels.sum(axis=0), 1)
    weight = torch.from_numpy(np.sqrt((len(labels) - positives) / positives)).float()
    return _of_scores(partial(functional.binary_cross_entropy_with_logits, pos_weight=weight), labels)


def _remembering(loss: Any, labels: Labels) -> LossOfRows:
    """Return a loss that ranks a batch among the last scores of all images, with an empty memory."""
    memory = ScoreMemory(*labels.shape)
    return lambda scores, target, rows: loss(scores, target, index=rows, memory=memory)


def _libauc(labels: Labels) -> LossOfRows:
    """Return the mean of LibAUC's APLoss over classes with positives in the batch, which it requires."""
    n, n_classes = labels.shape
    objectives = [libauc(n) for _ in range(n_classes)]

    def loss(scores: Tensor, target: Tensor, rows: Tensor) -> Tensor:
        found = [
            objective(scores[:, [k]], target[:, [k]], rows)
            for k, objective in enumerate(objectives)
            if bool(target[:, k].any())
        ]
        return torch.stack(found).mean() if found else 0 * scores.sum()

    return loss


REFERENCE = "cross-entropy"
_ERROR_DRIVEN = ErrorDrivenLoss(width=1.0, dim=0)
ARMS = (
    Arm(REFERENCE, partial(_of_scores, _cross_entropy), ours=False),
    Arm("weighted", _weighted, ours=False),
    Arm("smoothed", partial(_of_scores, _smoothed), ours=False),
    Arm("focal", partial(_of_scores, focal), ours=False),
    Arm("softmax", partial(_of_scores, softmax), ours=False),
    Arm("libauc-ap", _libauc, ours=False, package=LIBAUC),
    Arm("cross-entropy-whole", partial(_of_scores, _cross_entropy), ours=False, whole=True),
    Arm("ap-hinge", partial(_of_scores, APHingeLoss(dim=0)), ours=True),
    Arm("ndcg-hinge", partial(_of_scores, NDCGHingeLoss(dim=0)), ours=True),
    Arm("direct-ap", partial(_of_scores, DirectLoss("ap", epsilon=0.1, dim=0)), ours=True),
    Arm("error-driven", partial(_of_scores, _ERROR_DRIVEN), ours=True),
    Arm("ap-hinge-memory", partial(_remembering, APHingeLoss(dim=0)), ours=True),
    Arm("smooth-memory", partial(_remembering, SmoothRankLoss(width=1.0, dim=0)), ours=True),
    Arm("error-driven-memory", partial(_remembering, _ERROR_DRIVEN), ours=True),
    Arm("error-driven-memory-whole", partial(_remembering, _ERROR_DRIVEN), ours=True, whole=True),
)
