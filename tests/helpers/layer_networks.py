"""Networks that have every part whose layers can be trained one by one, with images for them."""

from __future__ import annotations

from typing import Any

import torch
from rankwise_lab.layerwise import pieces
from rankwise_lab.layerwise.network import PLCNN
from torch import nn

SLOPES = (0.0, 0.1, 1.0, 1.5, -0.3)


def scrambled(parts: list[Any], seed: int, dtype: Any = torch.float64) -> Any:
    """A network in inference mode, whose batch normalisations have factors of both signs."""
    generator = torch.Generator().manual_seed(seed)
    net = PLCNN(*parts).double().eval()
    with torch.no_grad():
        for part in net:
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                part.running_mean.normal_(generator=generator)
                part.running_var.uniform_(0.5, 2.0, generator=generator)
            for parameter in part.parameters():
                parameter.normal_(std=0.7, generator=generator)
    return net.to(dtype)


def dense(slope: float) -> list[Any]:
    middle = [nn.BatchNorm1d(6), nn.LeakyReLU(slope, inplace=True), nn.Linear(6, 5, bias=False), nn.LeakyReLU(slope)]
    return [nn.Linear(4, 6), *middle, nn.Dropout(), nn.Linear(5, 3)]


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    **{f"dense, slope {slope}": (lambda slope=slope: dense(slope), (4,)) for slope in SLOPES},
    "reflected, pooled over the edge": (
        lambda: [
            nn.Conv2d(2, 4, 3, padding=1, groups=2, padding_mode="reflect"), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.Conv2d(4, 3, 2, dilation=2, bias=False),
            nn.LeakyReLU(-0.3), nn.AvgPool2d(2, 1, padding=1, count_include_pad=False), nn.Flatten(), nn.Linear(27, 3),
        ],
        (2, 7, 7),
    ),
    "strided, of unequal sides": (
        lambda: [
            nn.Sequential(nn.Conv2d(1, 3, (3, 2), stride=(2, 1), padding="valid"), nn.MaxPool2d((1, 2), (1, 1))),
            nn.Dropout2d(), nn.LeakyReLU(1.5), nn.AdaptiveAvgPool2d((2, None)), nn.Identity(),
            nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 3),
        ],
        (1, 6, 6),
    ),
    "circular, averaged": (
        lambda: [
            nn.Conv2d(1, 2, 3, padding="same", padding_mode="circular"), nn.AvgPool2d(3, 2, ceil_mode=True),
            nn.BatchNorm2d(2, affine=False), nn.LeakyReLU(0.1), nn.Conv2d(2, 2, 1), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(2, 2), nn.LeakyReLU(-0.3), nn.Linear(2, 3),
        ],
        (1, 5, 5),
    ),
    "replicated, with dropped channels": (
        lambda: [
            nn.Conv2d(1, 2, 3, stride=2, padding=(1, 0), padding_mode="replicate"), nn.ReLU(),
            nn.AvgPool2d(2, divisor_override=3), nn.Flatten(2), nn.Dropout1d(), nn.BatchNorm1d(2), nn.Flatten(),
            nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3),
        ],
        (1, 6, 6),
    ),
}  # fmt: skip


def made(name: str, dtype: Any = torch.float64, n: int = 3) -> tuple[Any, Any]:
    make, shape = NETS[name]
    seed = list(NETS).index(name)
    x = torch.randn(n, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(99)).to(dtype)
    return scrambled(make(), seed, dtype), x


def up_to(net: Any, k: int, x: Any) -> Any:
    for part in list(net)[:k]:
        x = pieces.value_of(part, x)
    return x
