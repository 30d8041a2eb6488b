"""The losses of detectors, RankSort and aLRP, as modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.surrogates.softened import as_width
from rankwise.torch.batches import Gather, check_options
from rankwise.torch.detectors import alrp_loss, rank_sort_loss


class _DetectorLoss(torch.nn.Module):
    """The options of the function with the same meaning."""

    def __init__(
        self, width: float, ignore_index: int | None, empty: str, reduction: str, gather: Gather, backend: str
    ) -> None:
        super().__init__()
        check_options(empty, reduction, gather, backend)
        self.options: dict[str, Any] = {
            "width": as_width(width), "ignore_index": ignore_index, "empty": empty, "reduction": reduction,
            "gather": gather, "backend": backend,
        }  # fmt: skip

    def extra_repr(self) -> str:
        """
        List the options, for the printed form of the module.

        Returns
        -------
        str
            Each option as name=value.
        """
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


class RankSortLoss(_DetectorLoss):
    """
    RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality, such as the IoU of their boxes. It
    replaces the classification loss of a detector. The module returns a ranking and a sorting part: minimise their sum.

    Call it as `ranking, sorting = loss(scores, target)`, with mask or qid as needed. See `forward`.

    Parameters
    ----------
    width : float, default 0.5
        Half the width of the ramp by which scores are compared, in units of the scores.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries (images) are combined, for both parts. "none" returns one value per query, sorted
        by qid.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code for the CPU and "tensor" runs on any device. "auto" takes "core" for CPU
        tensors and "tensor" for others.

    See Also
    --------
    functional.rank_sort_loss : The same loss as a function, with the formulas.
    ALRPLoss : For a localisation loss of each positive instead of a quality.
    ErrorDrivenLoss : For positives without a quality (AP-loss).

    Notes
    -----
    The gradient is an update, not the derivative of the value. It does not vanish while a positive is ranked wrong.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import RankSortLoss
    >>> criterion = RankSortLoss()
    >>> scores = torch.tensor([2.0, 1.0, 0.0], requires_grad=True)  # the output of a detector's head
    >>> quality = torch.tensor([0.5, 0.0, 1.0])  # IoU of positives, 0 of negatives
    >>> ranking, sorting = criterion(scores, quality)
    >>> (ranking + sorting).backward()
    >>> round(ranking.item(), 4), round(sorting.item(), 4)
    (0.2, 0.1667)
    """

    def __init__(
        self,
        width: float = 0.5,
        *,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        super().__init__(width, ignore_index, empty, reduction, gather, backend)

    def forward(
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """
        Compute both parts of the loss of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,)
            Raw outputs of a model, in floating point, flat.
        target : Tensor of shape (n,)
            Quality of each positive, in (0, 1]. Negatives have 0.
        mask : Tensor of shape (n,), optional
            True where a sample counts.
        qid : Tensor of shape (n,), optional
            Integer image id of each sample, in any order. Each image is then ranked separately.

        Returns
        -------
        ranking : Tensor
            Ranking part.
        sorting : Tensor
            Sorting part.
        """
        return rank_sort_loss(scores, target, mask=mask, qid=qid, **self.options)


class ALRPLoss(_DetectorLoss):
    """
    Average localisation-recall-precision (aLRP) loss of a detector (Oksuz et al., NeurIPS 2020).

    It ranks positives above negatives, well localised positives first, and weighs localisation losses by rank. The
    module returns a classification and a localisation part: minimise their sum.

    Call it as `classification, localisation = loss(scores, target, localisation)`, with mask or qid as needed. See
    `forward`.

    Parameters
    ----------
    width : float, default 1.0
        Half the width of the ramp by which scores are compared, in units of the scores.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries (images) are combined, for both parts. "none" returns one value per query, sorted
        by qid.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code for the CPU and "tensor" runs on any device. "auto" takes "core" for CPU
        tensors and "tensor" for others.

    See Also
    --------
    functional.alrp_loss : The same loss as a function, with the formulas.
    RankSortLoss : For a quality of each positive, such as its IoU.
    ErrorDrivenLoss : For positives without localisation (AP-loss).

    Notes
    -----
    The gradient of the classification part is an update of the scores, not the derivative of its value. The
    localisation part is differentiable in the localisation losses and has no gradient in the scores.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import ALRPLoss
    >>> criterion = ALRPLoss(width=0.5)
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a detector's head
    >>> box_losses = torch.tensor([0.2, 0.4], requires_grad=True)  # of the positives, such as 1 - GIoU
    >>> classification, localisation = criterion(scores, torch.tensor([0, 1, 0, 1]), box_losses)
    >>> (classification + localisation).backward()
    >>> round(classification.item(), 4), round(localisation.item(), 4)
    (0.5, 0.125)
    """

    def __init__(
        self,
        width: float = 1.0,
        *,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        super().__init__(width, ignore_index, empty, reduction, gather, backend)

    def forward(
        self,
        scores: Tensor,
        target: Tensor,
        localisation: Tensor,
        *,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """
        Compute both parts of the loss of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,)
            Raw outputs of a model, in floating point, flat.
        target : Tensor of shape (n,)
            Booleans, or 0 and 1: which samples are positive.
        localisation : Tensor of shape (n,) or (positives,)
            Localisation loss of each sample, or of each positive that counts, in their order.
        mask : Tensor of shape (n,), optional
            True where a sample counts.
        qid : Tensor of shape (n,), optional
            Integer image id of each sample, in any order. Each image is then ranked separately.

        Returns
        -------
        classification : Tensor
            Classification part.
        localisation : Tensor
            Localisation part.
        """
        return alrp_loss(scores, target, localisation, mask=mask, qid=qid, **self.options)
