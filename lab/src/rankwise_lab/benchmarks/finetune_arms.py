"""The losses that `rankwise bench finetune` trains with, each made for the labels of one training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rankwise.torch import APHingeLoss, DirectLoss, ErrorDrivenLoss, NDCGHingeLoss, ScoreMemory, SmoothRankLoss
from rankwise_lab.benchmarks import arms
from rankwise_lab.benchmarks.finetune_data import Labels
from rankwise_lab.benchmarks.finetune_model import LossOfRows
from rankwise_lab.benchmarks.torch_peers import LIBAUC, libauc

__all__ = ["ARMS", "REFERENCE", "Arm", "focal", "plain", "softmax"]

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
