"""The checked input of a detector's loss: qualities in [0, 1], and finite localisation losses."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.layout import check_samples, precise, samples


class Given(NamedTuple):
    """The tensors of a call, each (n,). localisation: for aLRP only; mask and qid are optional."""

    scores: Tensor
    target: Tensor
    localisation: Tensor | None
    mask: Tensor | None
    qid: Tensor | None


class Detections(NamedTuple):
    """Flat samples, each (n,): which are positive, which count (None: all), and what is known about each positive.

    told: the quality for RankSort (`sorts`), the localisation loss for aLRP; any value where a sample is not positive.
    """

    scores: Tensor
    relevant: Tensor
    valid: Tensor | None
    told: Tensor
    qid: Tensor | None
    sorts: bool


def check_flat(given: Given) -> None:
    """Raise if shapes, dtypes or devices do not agree."""
    scores, target, localisation, mask, qid = given
    if getattr(scores, "ndim", 1) > 1:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} but must be flat, (n,); pass scores.flatten(), target.flatten() "
            "and, for several images, qid= with the image of each sample"
        )
    check_samples(scores, target, mask, qid, None)
    if localisation is None:
        return
    if not isinstance(localisation, Tensor):
        raise TypeError(
            f"localisation must be a tensor, got {type(localisation).__name__}; convert it with torch.as_tensor"
        )
    if not localisation.is_floating_point():
        raise TypeError(f"localisation must be floating point, got {localisation.dtype}; pass one loss per positive")
    if localisation.device != scores.device:
        raise ValueError(
            f"localisation is on {localisation.device} but scores are on {scores.device}; move it with .to()"
        )
    if localisation.dim() != 1:
        raise ValueError(
            f"localisation has shape {tuple(localisation.shape)} but must be flat; pass (n,) or (positives,)"
        )


@torch.compiler.disable
def by_sample(given: Given, ignore_index: int | None) -> Given:
    """Spread the localisation losses of positives that count, in order, to (n,); breaks compiled graphs."""
    losses, target = given.localisation, given.target
    assert losses is not None
    positive = samples(target, given.mask, ignore_index).relevant
    n_pos = int(positive.sum())
    if losses.shape[0] != n_pos:
        raise ValueError(
            f"localisation has {losses.shape[0]} entries; pass one for each of the {target.shape[0]} samples, or one "
            f"for each of the {n_pos} positives that count, in their order"
        )
    return given._replace(localisation=losses.new_zeros(target.shape).masked_scatter(positive, losses))


def detections(given: Given, ignore_index: int | None) -> Detections:
    """The samples of a call; raises for invalid qualities and localisation losses."""
    scores, target, localisation, mask, qid = given
    if localisation is not None:
        relevant, valid, _ = samples(target, mask, ignore_index)
        losses = localisation[relevant]
        if not bool(losses.isfinite().all()):
            k = int(relevant.nonzero()[~losses.isfinite()][0])
            raise ValueError(
                f"the localisation loss of sample {k} is {localisation[k].item()}, which is not finite; mask the "
                "sample, or look for the cause in the model"
            )
        return Detections(scores, relevant, valid, _plain(localisation), qid, False)
    valid = None if mask is None else mask.bool()
    if ignore_index is not None:
        labelled = target != ignore_index
        valid = labelled if valid is None else valid & labelled
    quality = _plain(target) if valid is None else torch.where(valid, _plain(target), 0.0)
    low, high = quality.aminmax() if quality.numel() > 0 else (torch.zeros(()), torch.ones(()))
    if not bool((low >= 0) & (high <= 1)):
        k = int((~((quality >= 0) & (quality <= 1))).nonzero()[0])
        raise ValueError(
            f"target[{k}] is {quality[k].item()}, but the quality of a positive, such as its IoU, must be in (0, 1] "
            "and that of a negative 0; clamp it, or pass ignore_index= for a value that means no label"
        )
    return Detections(scores, quality > 0, valid, quality, qid, True)


def _plain(values: Tensor) -> Tensor:
    """Values in a type that NumPy also has and that holds them exactly."""
    values = values.detach()
    return values if values.dtype in (torch.float32, torch.float64) else values.to(precise(values.device))
