"""RankSort, for detectors: scores of samples of which the positives have a quality, such as the IoU of a box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from rankwise.documenting import SHARED, documented
from rankwise.surrogates.rank_sort import RankSort
from rankwise.torch.arguments import Asked, Options, describe, takes_also
from rankwise.torch.batches import Batch, loss_of_batch
from rankwise.torch.modules import RankLoss
from rankwise.torch.objective import Objective, posed

if TYPE_CHECKING:
    from typing_extensions import Unpack


def rank_sort_of_batch(batch: Batch, objective: Objective | str, asked: Asked) -> tuple[Tensor, Tensor]:
    """The ranking and the sorting part of a flat batch."""
    if getattr(batch.scores, "ndim", 1) > 1:
        raise ValueError(
            f"scores have shape {tuple(batch.scores.shape)} but must be flat, (n,); pass scores.flatten(), "
            "target.flatten() and, for several images, qid= with the image of each sample"
        )
    ranking, sorting = loss_of_batch(batch, objective, asked)
    return ranking, sorting


_ENTRIES = """
scores : Tensor of shape (n,)
    Raw outputs of a model, flat.
target : Tensor of shape (n,)
    Quality of each positive, in (0, 1], such as the IoU of its box. Negatives have 0.
qid : Tensor of shape (n,), optional
    Integer image id of each sample. Each image is then a query, and the parts are means over images.
width : float, default 0.5
    Half the width of the ramp H by which scores are compared.
empty : {"zero", "skip", "error"}, default "zero"
    Treatment of queries without positives: as of other losses. One without negatives still has a sorting part.
"""
_RETURNS = """\
ranking : Tensor
    Ranking part: a scalar tensor, or one value per query with reduction="none".
sorting : Tensor
    Sorting part, of the same shape."""
SHARED["rank_sort_examples"] = """\
Examples
--------
>>> import torch, rankwise.torch as rwt
>>> scores, quality = torch.tensor([[2.0, 1.0, 0.0], [0.5, 0.0, 1.0]])  # IoU of positives, 0 of negatives"""
describe("rank_sort", _ENTRIES, _RETURNS)


@documented
class RankSortLoss(RankLoss):
    """RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality. It replaces the classification loss
    of a detector. It has two parts: minimise their sum.

        ranking_i = FP_i/(a_i + FP_i),  a_i = Σ_k H(s_k − s_i) over positives,  FP_i = Σ_j H(s_j − s_i) over negatives
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), less the same over those of t_k ≥ t_i

    with H(x) = clip(x/(2·width) + ½, 0, 1). Each part is the mean over positives. Its gradient is an update: a positive
    hands its errors to the samples above it, in proportion to H, as long as it is ranked wrong.

    {rank_sort_arguments}

    See Also
    --------
    ErrorDrivenLoss : For positives without a quality (AP-loss).

    {rank_sort_examples}
    >>> ranking, sorting = rwt.RankSortLoss()(scores, quality)
    >>> round(ranking.item(), 4), round(sorting.item(), 4)
    (0.2, 0.1667)
    """

    @takes_also(Asked, without="dim")
    def __init__(self, width: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__("ap", RankSort(width), **options)

    def forward(  # type: ignore[override]
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute both parts of the loss of a batch.

        {rank_sort_function}
        """
        return rank_sort_of_batch(Batch(scores, target, mask, qid), posed("ap", self.surrogate), self.options)
