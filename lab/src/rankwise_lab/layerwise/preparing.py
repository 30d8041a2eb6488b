"""Checks before a run of LW-SVM, and the identity of the run for checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rankwise.arguments import is_number
from rankwise.io import fingerprint
from rankwise.metrics import LossLike
from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.evaluation import in_mode
from rankwise_lab.layerwise.network import PLCNN


def place_of(net: PLCNN) -> tuple[torch.dtype, torch.device]:
    """The dtype and device that all weights of a network share."""
    if not any(net[k].weight.requires_grad for k in net.trainable):
        raise ValueError(
            "no weights of the network require gradients, so there is nothing to train; call requires_grad_() on "
            "a layer"
        )
    for k in net.trainable:
        if len({one.requires_grad for one in net[k].parameters()}) > 1:
            raise ValueError(
                f"in part {k} only one of weight and bias requires gradients; set requires_grad alike for both"
            )
    found = {(part.dtype, part.device) for part in net.parameters()}
    if len(found) > 1:
        raise ValueError(f"the weights have several dtypes or devices, {found}; call net.to(device, dtype) first")
    dtype, device = found.pop()
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"the weights are {dtype}; convert them to float32 or float64, for example with net.float()")
    return dtype, device


def check_numbers(least: float | None, **numbers: Any) -> None:
    """Raise unless all are finite numbers of at least this size, or above 0 if it is None."""
    for name, value in numbers.items():
        if not is_number(value):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        above = value > 0.0 if least is None else value >= least
        if not above or not np.isfinite(value):
            what = "above 0" if least is None else f"at least {least:g}"
            raise ValueError(f"{name} must be finite and {what}, got {value!r}")


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


def loss_identity(loss: LossLike, n_classes: int) -> str:
    """A loss by its name and its values for some scores, which identify it however it is defined."""
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(n_classes, size=50))
    solver = BlockLoss(loss, n_classes)
    found = [solver.solve(torch.from_numpy(size * rng.normal(size=(50, n_classes))), labels) for size in (0.1, 1)]
    return f"{solver.name} {fingerprint({}, [part.numpy() for pair in found for part in pair])}"


def network_identity(net: PLCNN, dtype: torch.dtype) -> str:
    """A network by its parts and which of them are trained, not by its weights."""
    parts = [str(dtype), *(f"{part!r} {[one.requires_grad for one in part.parameters()]}" for part in net)]
    return fingerprint({"parts": parts}, [])
