"""The losses of detectors, RankSort and aLRP, as functions and as modules."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankwise.inputs import is_whole
from rankwise.smooth import as_width
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
    """RankSort (Oksuz et al., ICCV 2021): positives above negatives, and among themselves by quality; minimise the sum.

        ranking_i = FP_i/(a_i + FP_i),  a_i = Σ_k H(s_k − s_i) over positives,  FP_i = Σ_j H(s_j − s_i) over negatives
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), less the same over those of t_k ≥ t_i

    with H(x) = clip(x/(2·width) + ½, 0, 1), each part the mean over positives. The gradient is an update, not the
    derivative of the value: a positive hands its ranking error to the negatives above it, and its sorting error to the
    positives of lesser quality above it, in proportion to H.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Raw outputs of a model, floating point, flat.
    target : Tensor of shape (n,)
        The quality of each positive, in (0, 1], such as the IoU of its box; 0 of negatives.
    width : float
        Half the width of the ramp by which scores are compared.
    mask, ignore_index, reduction, gather
        As in `structured_hinge`; ignore_index and reduction apply to both parts.
    qid : Tensor of shape (n,), optional
        Integers: the image of each sample, in any order. The parts are then means over images.
    empty : {"zero", "skip", "error"}
        A query without positives is 0, also left out of the mean, or refused. One without negatives has a sorting part.
    backend : {"auto", "core", "tensor"}
        "core" runs on the CPU, at the cost of a sort; "tensor" on any device, all positives against all samples of
        their query, in chunks.

    Returns
    -------
    ranking, sorting : Tensor
        float32, or float64 for scores of float64: a number each, or with reduction="none" one a query.

    Raises
    ------
    ValueError
        If shapes do not agree, a score is not finite or a target not in [0, 1].
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
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
    """aLRP (Oksuz et al., NeurIPS 2020): positives above negatives, well localised ones first; minimise the sum.

        classification_i = FP_i/r_i,  r_i = 1 + Σ_{k≠i} H(s_k − s_i) + FP_i,  FP_i = Σ_j H(s_j − s_i) over negatives
        localisation_i = (Σ ℓ over i and the positives above it)/r_i

    with H(x) = clip(x/(2·width) + ½, 0, 1), each part the mean over positives. The gradient of the classification part
    is an update of the scores, not the derivative of its value: a positive hands (Σ_{k≠i} H(s_k − s_i)·ℓ_k + FP_i)/r_i
    to the negatives above it. The localisation part is differentiable in ℓ, and has no gradient in the scores.

    Parameters
    ----------
    scores, width, mask, qid, ignore_index, empty, reduction, gather, backend
        As in `rank_sort_loss`.
    target : Tensor of shape (n,)
        Boolean, or 0 and 1.
    localisation : Tensor of shape (n,) or (positives,)
        ℓ, such as 1 − GIoU: of each sample, where only positives' entries are read, or of the positives that count, in
        their order. The latter breaks a compiled graph.

    Returns
    -------
    classification, localisation : Tensor
        As in `rank_sort_loss`. Positives that tie in score are in any order, of which the mean is taken.

    Raises
    ------
    ValueError, TypeError
        As in `rank_sort_loss`; and if a target is not binary or a localisation loss of a positive not finite.

    Examples
    --------
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
    """What was given, localisation losses by sample; refuses what does not go together."""
    check_flat(given)
    given = given._replace(target=given.target.detach())  # an IoU may hang on the boxes' graph, which is not ours
    if given.localisation is None or given.localisation.shape == given.scores.shape:
        return given
    spread: Given = by_sample(given, ignore_index)
    return spread


class _DetectorLoss(torch.nn.Module):
    """The options of a functional twin."""

    def __init__(
        self,
        width: float,
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
        """The options."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


class RankSortLoss(_DetectorLoss):
    """RankSort: positives above negatives, and among themselves by quality. Returns two parts: minimise their sum.

    Called with scores and target (n,), and mask= or qid=.

    Parameters
    ----------
    width, ignore_index, empty, reduction, gather, backend
        As in `functional.rank_sort_loss`.

    Examples
    --------
    >>> ranking, sorting = RankSortLoss()(torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0.5, 0.0, 1.0]))
    >>> round(ranking.item(), 4), round(sorting.item(), 4)
    (0.2, 0.1667)
    """

    def __init__(self, width: float = 0.5, **options: Any) -> None:
        super().__init__(width, **options)

    def forward(
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Ranking and sorting part of one batch."""
        return rank_sort_loss(scores, target, mask=mask, qid=qid, **self.options)


class ALRPLoss(_DetectorLoss):
    """aLRP: positives above negatives, well localised ones first. Returns two parts: minimise their sum.

    Called with scores and target (n,), localisation (n,) or (positives,), and mask= or qid=.

    Parameters
    ----------
    width, ignore_index, empty, reduction, gather, backend
        As in `functional.alrp_loss`.
    """

    def __init__(self, width: float = 1.0, **options: Any) -> None:
        super().__init__(width, **options)

    def forward(
        self,
        scores: Tensor,
        target: Tensor,
        localisation: Tensor,
        *,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Classification and localisation part of one batch."""
        return alrp_loss(scores, target, localisation, mask=mask, qid=qid, **self.options)
