"""Small runs of LW-SVM: a network, images it can learn, settings that take no time, and what a run leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rankwise_lab.layerwise.lwsvm import LWSVM
from rankwise_lab.layerwise.network import PLCNN
from torch import nn

LOSSES = ("hinge", "zero-one", "ap", "ndcg", "mrr")
QUICK: dict[str, Any] = {
    "block_size": 30, "pretrain_epochs": 2, "warmup_epochs": 2, "max_passes": 2, "max_epochs": 5, "batch_size": 32,
}  # fmt: skip


def parts() -> list[Any]:
    torch.manual_seed(0)
    return [
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(48, 5), nn.LeakyReLU(0.1), nn.Linear(5, 3),
    ]  # fmt: skip


def network(dtype: Any = torch.float64) -> Any:
    return PLCNN(*parts()).to(dtype)


def samples(n: int = 90, seed: int = 0) -> tuple[Any, Any]:
    centres = np.random.default_rng(7).normal(size=(3, 1, 8, 8))
    labels = np.arange(n) % 3
    noise = 3.0 * np.random.default_rng(seed).normal(size=(n, 1, 8, 8))
    return (noise + centres[labels]).astype(np.float32), labels


TRAIN, VAL = samples(), samples(60, seed=1)


def weights(net: Any) -> dict[str, Any]:
    return {name: part.clone() for name, part in net.state_dict().items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(part, other[name]) for name, part in one.items())


def rows_of(model: LWSVM) -> list[dict[str, Any]]:
    """History without what a clock says."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in model.history_]
