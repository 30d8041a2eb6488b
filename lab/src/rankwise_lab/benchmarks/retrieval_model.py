"""What `rankwise bench retrieval` trains: a network, how it is trained and judged, and the losses that are compared."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from rankwise.torch import RetrievalLoss
from rankwise_lab.benchmarks.arms import Arm
from rankwise_lab.benchmarks.torch_peers import METRIC_LEARNING, metric_learning, pairwise_smooth_ap
from rankwise_lab.data.omniglot import Drawings

METRICS = ("MAP@R", "AP", "recall@1")

_BLOCKS = 4
_EVALUATED = 500
# Proxies, which a loss learns itself, have this many times the network's learning rate, as their authors suggest.
_OF_LOSS = 100.0


def network(channels: int, embedding: int) -> nn.Sequential:
    """Four 3 × 3 convolutions, each with batch normalisation and pooling to half the size, and a linear layer."""
    layers: list[nn.Module] = []
    for before in (1, *[channels] * (_BLOCKS - 1)):
        layers += [nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, embedding))
    return model.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]


def train(
    model: nn.Module,
    drawings: Drawings,
    loss: Any,
    batch: tuple[int, int],
    steps: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> None:
    """Train in place by Adam, its learning rate falling to 0 along half a cosine.

    batch: characters, and drawings of each, drawn anew for every step. loss: of embeddings (b, d) and labels (b,).
    """
    groups: list[dict[str, Any]] = [{"params": list(model.parameters())}]
    if isinstance(loss, nn.Module) and list(loss.parameters()):
        groups.append({"params": list(loss.parameters()), "lr": _OF_LOSS * learning_rate})
    optimiser = torch.optim.Adam(groups, lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    labels = torch.from_numpy(drawings.characters)
    members = [np.flatnonzero(drawings.characters == character) for character in np.unique(drawings.characters)]
    model.train()
    for _ in range(steps):
        rows = rows_of_batch(members, *batch, rng)
        optimiser.zero_grad()
        loss(model(_tensor(drawings.images[rows])), labels[rows]).backward()
        optimiser.step()
        schedule.step()


def rows_of_batch(
    members: list[NDArray[np.intp]], characters: int, drawings: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw rows of this many characters and drawings of each, one character after the other, no drawing twice."""
    chosen = rng.choice(len(members), characters, replace=False)
    return np.concatenate([rng.choice(members[k], drawings, replace=False) for k in chosen])


def _tensor(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images).unsqueeze(1).float().div_(255)


def judge(model: nn.Module, drawings: Drawings) -> dict[str, float]:
    """The metrics of the embeddings of all drawings."""
    model.eval()
    with torch.no_grad():
        embeddings = torch.cat([model(part) for part in _tensor(drawings.images).split(_EVALUATED)])
    return judged(embeddings.numpy(), drawings.characters)


def judged(embeddings: NDArray[np.floating[Any]], characters: NDArray[np.int64]) -> dict[str, float]:
    """MAP@R, AP and recall@1: each row a query for the others of its character, by cosine; the mean of queries.

    With R others of its character, at least one, and precisions p_k: Σ p_k over hits among the first R, over R; the
    same over all hits; and whether the first is a hit.
    """
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -np.inf)
    order = np.argsort(-similar, axis=1, kind="stable")[:, :-1]
    hits = characters[order] == characters[:, None]
    relevant = hits.sum(axis=1)
    places = np.arange(1, len(embeddings))
    precision = hits * np.cumsum(hits, axis=1) / places
    first = precision * (places <= relevant[:, None])
    each = first.sum(axis=1) / relevant, precision.sum(axis=1) / relevant, hits[:, 0]
    return {name: float(of.mean()) for name, of in zip(METRICS, each, strict=True)}


# Losses, each made for one training.

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
