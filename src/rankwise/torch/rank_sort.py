"""The RankSort loss of detectors, as a function and as a module."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankwise.arguments import is_whole
from rankwise.surrogates.softened import as_width
from rankwise.torch.batches import Gather, check_options, is_distributed
from rankwise.torch.documented import documented_like
from rankwise.torch.rank_sort_operator import Given, RankSort, check_flat
from rankwise.torch.score_functions import structured_hinge


@documented_like(structured_hinge)
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
    As in `structured_hinge`: mask.
    qid : Tensor of shape (n,), optional
        Integer image id of each sample, in any order. Each image is then a query of its own, and the parts are means
        over images.
    As in `structured_hinge`: ignore_index.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError. A query without negatives still
        has a sorting part.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined, for both parts. "none" returns one value per query, sorted by qid.
    As in `structured_hinge`: gather.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, at the cost of a sort; scores on other devices are copied to it.
        "tensor" runs on the device of the scores and compares all positives with all samples of their query, in chunks.
        "auto" takes "core" for CPU tensors and "tensor" for others.

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
    given = Given(scores, target, mask, qid)
    check_options(empty, reduction, gather, backend)
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    if not is_distributed(gather):
        check_flat(given)
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds

        distributed.together(partial(check_flat, given), scores.device)
        given = Given(*distributed.join(*given, None, -1, gather == "ddp")[:4])
    options = (ignore_index, as_width(width), empty, reduction, backend)
    values: Tensor = RankSort.apply(*given._replace(target=given.target.detach()), *options)[0]
    return values[0], values[1]


@documented_like(rank_sort_loss)
class RankSortLoss(torch.nn.Module):
    """
    RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality, such as the IoU of their boxes. It
    replaces the classification loss of a detector. The module returns a ranking and a sorting part: minimise their sum.

    Call it as `ranking, sorting = loss(scores, target)`, with mask or qid as needed. See `forward`.

    Parameters
    ----------
    As in `rank_sort_loss`: width, ignore_index, empty, reduction, gather, backend.

    See Also
    --------
    functional.rank_sort_loss : The same loss as a function, with the formulas.
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

    @documented_like(rank_sort_loss)
    def forward(
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """
        Compute both parts of the loss of a batch.

        Parameters
        ----------
        As in `rank_sort_loss`: scores, target, mask, qid.

        Returns
        -------
        As in `rank_sort_loss`: ranking, sorting.
        """
        return rank_sort_loss(scores, target, mask=mask, qid=qid, **self.options)
