"""The losses that `rankwise bench retrieval` trains with, each made for one training."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rankwise.torch import RetrievalLoss
from rankwise_lab.benchmarks.arms import Arm
from rankwise_lab.benchmarks.torch_peers import METRIC_LEARNING, metric_learning, pairwise_smooth_ap

__all__ = ["ARMS", "Shape", "smooth_ap"]

# Width of the ramp, in units of cosine: the best of 0.02 to 0.4 on the validation alphabet with another seed.
_WIDTH = 0.05


class Shape(NamedTuple):
    """What a loss may need: the number of characters, and the length of embeddings."""

    characters: int
    embedding: int


def _ours(surrogate: str, shape: Shape) -> Any:
    return RetrievalLoss("ap", surrogate=surrogate, width=_WIDTH)


def _proxy_anchor(shape: Shape) -> Any:
    return metric_learning("ProxyAnchorLoss", shape, num_classes=shape.characters, embedding_size=shape.embedding)


def smooth_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    """SmoothAP (Brown et al., 2020): every embedding a query for the others of its label, by cosine; τ = 0.01."""
    unit = functional.normalize(embeddings, dim=1)
    others = ~torch.eye(len(labels), dtype=torch.bool)
    each = [
        pairwise_smooth_ap(similar[of], (labels == label)[of])
        for similar, label, of in zip(unit @ unit.T, labels, others, strict=True)
    ]
    return torch.stack(each).mean()


def _same(loss: Any, shape: Shape) -> Any:
    return loss


ARMS = (
    *(
        Arm(name, partial(metric_learning, f"{name}Loss"), ours=False, package=METRIC_LEARNING)
        for name in ("TripletMargin", "MultiSimilarity", "SupCon", "FastAP")
    ),
    Arm("ProxyAnchor", _proxy_anchor, ours=False, package=METRIC_LEARNING),
    # Not pytorch-metric-learning's, which mixes up rows if a batch has more classes than members per class.
    Arm("SmoothAP", partial(_same, smooth_ap), ours=False),
    *(Arm(surrogate, partial(_ours, surrogate), ours=True) for surrogate in ("hinge", "smooth", "error-driven")),
)
