"""Evaluation of a network: the objective on the training blocks, and a score on validation samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankwise.arguments import is_number
from rankwise.metrics import METRICS, as_metric
from rankwise_lab.layerwise.block_loss import HINGE, BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.network import PLCNN

# A function of labels (n,) and scores (n, C).
Score = Callable[[NDArray[np.int64], NDArray[np.floating]], float]
ACCURACY = "accuracy"


@contextmanager
def in_mode(net: nn.Module, training: bool) -> Iterator[None]:
    """Put a network in training or inference mode within a with block; each part is then again in its own mode."""
    before = [(part, part.training) for part in net.modules()]
    net.train(training)
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def risk(net: PLCNN, blocks: Blocks, loss: BlockLoss) -> float:
    """Σ_b (n_b/n)·J_b, in inference mode."""
    with in_mode(net, False), torch.no_grad():
        return sum(
            blocks.share(b) * float(loss.solve(net(blocks.images(b)), blocks.labels(b))[0].sum())
            for b in range(len(blocks))
        )


def objective(net: PLCNN, blocks: Blocks, loss: BlockLoss, lam: float) -> float:
    """F = Σ_b (n_b/n)·J_b + (lam/2) Σ_layers ‖W_l‖², in inference mode."""
    return risk(net, blocks, loss) + penalty(net, lam)


def penalty(net: PLCNN, lam: float) -> float:
    """(lam/2) Σ_layers ‖W_l‖²."""
    with torch.no_grad():
        return 0.5 * lam * float(net.regulariser())


def scores_of(net: PLCNN, samples: Blocks) -> NDArray[np.floating]:
    """Scores (n, C) of all samples in their order, in inference mode."""
    with in_mode(net, False), torch.no_grad():
        return np.concatenate([net(samples.take(rows)[0]).cpu().numpy() for rows in samples.runs()])


def score_of(net: PLCNN, samples: Blocks, score: Score) -> float:
    """The score of a network on some samples."""
    scores = scores_of(net, samples)
    if not np.isfinite(scores).all():
        raise FloatingPointError(f"the scores of {samples.name} are not finite")
    found = score(samples.all_labels.copy(), scores)
    if not (is_number(found) and np.isfinite(found)):
        raise ValueError(f"score must return a finite number, got {found!r}")
    return float(found)


def as_score(score: str | Score | None, loss: str) -> Score:
    """A score by name: the mean of a metric over classes, or accuracy; None takes the score of the loss.

    Each class is a query that ranks all samples; classes without samples are left out.
    """
    if score is None:
        if loss in (HINGE, "zero-one"):
            score = ACCURACY
        elif loss in METRICS:
            score = loss
        else:
            raise ValueError(
                f"there is no metric with the name of the loss, {loss!r}; pass score=, such as 'ap' or {ACCURACY!r}"
            )
    if isinstance(score, str):
        return _accuracy if score == ACCURACY else _mean_over_classes(score)
    if not callable(score):
        raise TypeError(f"score must be a name or a function of labels and scores, got {type(score).__name__}")
    return score


def _mean_over_classes(name: str) -> Score:
    if name.partition("@")[0] not in METRICS:
        known = ", ".join(map(repr, (ACCURACY, *METRICS)))
        raise ValueError(f"unknown score {name!r}; use one of {known}, or a function of labels and scores")
    metric = as_metric(name)

    def mean(labels: NDArray[np.int64], scores: NDArray[np.floating]) -> float:
        n, n_classes = scores.shape
        classes = np.repeat(np.arange(n_classes), n)
        return metric(scores.T.reshape(-1), np.tile(labels, n_classes) == classes, qid=classes, empty="skip")

    return mean


def _accuracy(labels: NDArray[np.int64], scores: NDArray[np.floating]) -> float:
    return float(np.mean(np.argmax(scores, axis=1) == labels))


def score_name(score: Any) -> str | None:
    """A score's name, for checkpoints."""
    if score is None or isinstance(score, str):
        return score
    return str(getattr(score, "__qualname__", type(score).__qualname__))


def check_output(net: PLCNN, samples: Blocks) -> None:
    """Raise unless the network takes these images and returns one score per class."""
    image = samples.take(np.arange(1))[0]
    try:
        with in_mode(net, False), torch.no_grad():
            shape = tuple(net(image).shape)
    except (RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{samples.name}: the network cannot process images of shape {tuple(image.shape[1:])}: {why}"
        ) from None
    if shape != (1, net.n_classes):
        raise ValueError(
            f"{samples.name}: the network returns shape {shape[1:]} per image; it must return one score per class, "
            f"({net.n_classes},)"
        )
