"""The losses of detectors, RankSort and aLRP, as functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankwise.arguments import is_whole
from rankwise.surrogates.softened import as_width
from rankwise.torch.batches import Gather, check_options, is_distributed
from rankwise.torch.detector_layout import Given, by_sample, check_flat
from rankwise.torch.detector_operator import DetectorLoss


def rank_sort_loss(
    scores: Tensor,
    target: Tensor,
    *,
    width: float = 0.5,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """
    Compute the RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality. Minimise the sum of both parts:

        ranking_i = FP_i/(a_i + FP_i),  a_i = Σ_k H(s_k − s_i) over positives,  FP_i = Σ_j H(s_j − s_i) over negatives
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), less the same over those of t_k ≥ t_i

    with H(x) = clip(x/(2·width) + ½, 0, 1). Each part is the mean over positives.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Raw outputs of a model, in floating point, flat.
    target : Tensor of shape (n,)
        Quality of each positive, in (0, 1], such as the IoU of its box. Negatives have 0.
    width : float, default 0.5
        Half the width of the ramp H by which scores are compared, in units of the scores.
    mask : Tensor of shape (n,), optional
        True where a sample counts. Masked entries may hold anything and get no gradient.
    qid : Tensor of shape (n,), optional
        Integer image id of each sample, in any order. Each image is then a query of its own, and the parts are means
        over images.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError. A query without negatives still
        has a sorting part.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined, for both parts. "none" returns one value per query, sorted by qid.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code for the CPU, at the cost of a sort. "tensor" runs on any device and
        compares all positives with all samples of their query, in chunks. "auto" takes "core" for CPU tensors and
        "tensor" for others.

    Returns
    -------
    ranking : Tensor
        Ranking part: a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 for
        float64 scores.
    sorting : Tensor
        Sorting part, of the same shape.

    Raises
    ------
    ValueError
        If shapes do not agree, a score is not finite, or a target is not in [0, 1].
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.RankSortLoss : The same loss as a module.
    alrp_loss : For a localisation loss instead of a quality.
    error_driven_loss : For positives without a quality (AP-loss).

    Notes
    -----
    The gradient is an update, not the derivative of the value. A positive hands its ranking error to the negatives
    above it, and its sorting error to positives of lower quality above it, in proportion to H.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import rank_sort_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> ranking, sorting = rank_sort_loss(scores, torch.tensor([0.0, 0.6, 0.0, 0.9]))
    >>> (ranking + sorting).backward()
    >>> round(ranking.item(), 4), round(sorting.item(), 4), [round(g, 4) for g in scores.grad.tolist()]
    (0.619, 0.1, [0.4762, -0.2333, 0.1429, -0.3857])
    """
    options = (ignore_index, as_width(width), empty, reduction, backend)
    return _parts(Given(scores, target, None, mask, qid), options, gather)


def alrp_loss(
    scores: Tensor,
    target: Tensor,
    localisation: Tensor,
    *,
    width: float = 1.0,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """
    Compute the aLRP loss of a detector (Oksuz et al., NeurIPS 2020).

    It ranks positives above negatives, well localised positives first. Minimise the sum of both parts:

        classification_i = FP_i/r_i,  r_i = 1 + Σ_{k≠i} H(s_k − s_i) + FP_i,  FP_i = Σ_j H(s_j − s_i) over negatives
        localisation_i = (Σ ℓ over i and the positives above it)/r_i

    with H(x) = clip(x/(2·width) + ½, 0, 1). Each part is the mean over positives.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Raw outputs of a model, in floating point, flat.
    target : Tensor of shape (n,)
        Booleans, or 0 and 1: which samples are positive.
    localisation : Tensor of shape (n,) or (positives,)
        Localisation loss ℓ, such as 1 − GIoU. It has one entry per sample, of which only those of positives are read,
        or one entry per positive that counts, in their order. The latter breaks a compiled graph.
    width : float, default 1.0
        Half the width of the ramp H by which scores are compared, in units of the scores.
    mask : Tensor of shape (n,), optional
        True where a sample counts. Masked entries may hold anything and get no gradient.
    qid : Tensor of shape (n,), optional
        Integer image id of each sample, in any order. Each image is then a query of its own, and the parts are means
        over images.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined, for both parts. "none" returns one value per query, sorted by qid.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code for the CPU, at the cost of a sort. "tensor" runs on any device and
        compares all positives with all samples of their query, in chunks. "auto" takes "core" for CPU tensors and
        "tensor" for others.

    Returns
    -------
    classification : Tensor
        Classification part: a scalar tensor, or one value per query with reduction="none". The type is float32, or
        float64 for float64 scores.
    localisation : Tensor
        Localisation part, of the same shape. Positives that tie in score count with the mean over their orders.

    Raises
    ------
    ValueError
        If shapes do not agree, a score or the localisation loss of a positive is not finite, or a target is not binary.
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.ALRPLoss : The same loss as a module.
    rank_sort_loss : For a quality of each positive, such as its IoU.
    error_driven_loss : For positives without localisation (AP-loss).

    Notes
    -----
    The gradient of the classification part is an update of the scores, not the derivative of its value: a positive
    hands (Σ_{k≠i} H(s_k − s_i)·ℓ_k + FP_i)/r_i to the negatives above it. The localisation part is differentiable in ℓ
    and has no gradient in the scores.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import alrp_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> losses = torch.tensor([0.2, 0.4], requires_grad=True)
    >>> parts = alrp_loss(scores, torch.tensor([0, 1, 0, 1]), losses, width=0.5)
    >>> sum(parts).backward()
    >>> [round(part.item(), 4) for part in parts], [round(g, 4) for g in losses.grad.tolist()]
    ([0.5, 0.125], [0.375, 0.125])
    """
    options = (ignore_index, as_width(width), empty, reduction, backend)
    return _parts(Given(scores, target, localisation, mask, qid), options, gather)


def _parts(given: Given, options: tuple[Any, ...], gather: Gather) -> tuple[Tensor, Tensor]:
    """Check, join, solve and reduce."""
    ignore_index, _, empty, reduction, backend = options
    check_options(empty, reduction, gather, backend)
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    if not is_distributed(gather):
        given = _checked(given, ignore_index)
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds

        given = distributed.together(partial(_checked, given, ignore_index), given.scores.device)
        scores, target, losses, mask, qid = given
        if losses is not None:
            nothing = torch.zeros_like(target, dtype=torch.bool)
            losses = distributed.join(losses, nothing, None, None, None, -1, gather == "ddp")[0]
        scores, target, mask, qid, _ = distributed.join(scores, target, mask, qid, None, -1, gather == "ddp")
        given = Given(scores, target, losses, mask, qid)
    values: Tensor = DetectorLoss.apply(*given, *options)[0]
    return values[0], values[1]


def _checked(given: Given, ignore_index: int | None) -> Given:
    """Check the tensors of a call, and return them with localisation losses by sample."""
    check_flat(given)
    given = given._replace(target=given.target.detach())  # an IoU may belong to the graph of the boxes
    if given.localisation is None or given.localisation.shape == given.scores.shape:
        return given
    spread: Given = by_sample(given, ignore_index)
    return spread
