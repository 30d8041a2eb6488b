"""What a caller of a detector's loss gave, checked once: qualities in [0, 1], localisation losses that are numbers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.layout import check_samples, precise, samples


class Given(NamedTuple):
    """The tensors of a call, each (n,). localisation: for aLRP; mask and qid may lack."""

    scores: Tensor
    target: Tensor
    localisation: Tensor | None
    mask: Tensor | None
    qid: Tensor | None


class Detections(NamedTuple):
    """Flat samples, each (n,): which are positive, which count (None: all do), and what is told of each.

    told: of RankSort (`sorts`) the quality, of aLRP the localisation loss; anything where a sample is not positive.
    """

    scores: Tensor
    relevant: Tensor
    valid: Tensor | None
    told: Tensor
    qid: Tensor | None
    sorts: bool


def check_flat(given: Given) -> None:
    """Refuse shapes, dtypes and devices that do not go together."""
    scores, target, localisation, mask, qid = given
    if getattr(scores, "ndim", 1) > 1:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and must be flat, (n,); pass scores.flatten(), target.flatten() "
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
        raise TypeError(f"localisation must be floating point, got {localisation.dtype}; it is a loss of each positive")
    if localisation.device != scores.device:
        raise ValueError(f"localisation is on {localisation.device} and scores on {scores.device}; move it with .to()")
    if localisation.dim() != 1:
        raise ValueError(f"localisation has shape {tuple(localisation.shape)} and must be flat: (n,), or (positives,)")


@torch.compiler.disable
def by_sample(given: Given, ignore_index: int | None) -> Given:
    """With localisation losses (n,), given those of the positives that count, in order; breaks compiled graphs."""
    losses, target = given.localisation, given.target
    assert losses is not None
    positive = samples(target, given.mask, ignore_index).relevant
    n_pos = int(positive.sum())
    if losses.shape[0] != n_pos:
        raise ValueError(
            f"localisation has {losses.shape[0]} entries and must have one for each of the {target.shape[0]} samples, "
            f"or one for each of the {n_pos} positives that count, in their order"
        )
    return given._replace(localisation=losses.new_zeros(target.shape).masked_scatter(positive, losses))


def detections(given: Given, ignore_index: int | None) -> Detections:
    """What is told of each sample; refuses qualities and localisation losses that are none."""
    scores, target, localisation, mask, qid = given
    if localisation is not None:
        relevant, valid, _ = samples(target, mask, ignore_index)
        losses = localisation[relevant]
        if not bool(losses.isfinite().all()):
            k = int(relevant.nonzero()[~losses.isfinite()][0])
            raise ValueError(
                f"the localisation loss of sample {k} is {localisation[k].item()}, not finite; mask the sample, or "
                "look for its cause in the model"
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
            f"target[{k}] is {quality[k].item()}: the quality of a positive, such as its IoU, lies in (0, 1], that of "
            "a negative is 0; clamp it, or pass ignore_index= for a value that means no label"
        )
    return Detections(scores, quality > 0, valid, quality, qid, True)


def _plain(values: Tensor) -> Tensor:
    """Values of a type that NumPy knows, too, and that holds them exactly."""
    values = values.detach()
    return values if values.dtype in (torch.float32, torch.float64) else values.to(precise(values.device))
