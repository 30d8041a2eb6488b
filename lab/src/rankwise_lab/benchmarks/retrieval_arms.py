"""The losses that `rankwise bench retrieval` trains with, each made for one training."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rankwise.torch import EmbeddingMemory, RetrievalLoss
from rankwise_lab.benchmarks.arms import Arm
from rankwise_lab.benchmarks.torch_peers import METRIC_LEARNING, metric_learning, pairwise_smooth_ap

__all__ = ["ARMS", "Shape", "smooth_ap"]

# Width of the ramp, in units of cosine: the best of 0.02 to 0.4 on the validation alphabet with another seed.
_WIDTH = 0.05


class Shape(NamedTuple):
    """What a loss may need: the number of characters, the length of embeddings, and how many to remember."""

    characters: int
    embedding: int
    memory: int


def _ours(surrogate: str, remembers: bool, shape: Shape) -> Any:
    loss = RetrievalLoss("ap", surrogate=surrogate, width=_WIDTH)
    return partial(loss, memory=EmbeddingMemory(shape.memory, shape.embedding)) if remembers else loss


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
    *(
        Arm(f"{surrogate}{'-memory' if remembers else ''}", partial(_ours, surrogate, remembers), ours=True)
        for surrogate in ("hinge", "smooth", "error-driven")
        for remembers in (False, True)
    ),
)
