"""Algorithm 1 by halving, in O(log N) tensor operations, for all queries of a batch at once.

Seen from the positives, the objective is Σ_k h_k(c_k) over 0 ≤ c_1 ≤ … ≤ c_P ≤ N, and under (C2) each h_k is concave:

    h_k(m) − h_k(m − 1) = s*_m − s⁺_k + (PN/2)·scale·gain(k, m)   does not rise with m (units of 2/(PN)).

So the c_k are found by halving. All positives whose c is known to lie in one interval form a block. Let m be the middle
of the interval: c_k ≥ m holds for the end of the block that adds most to the objective. Blocks never interact again, as
in the paper's recursion. Each halving takes O(P) memory and work, and there are as many as N has binary digits.

A ranking is given by above (Q, P): c_k, the number of negatives above the k-th positive.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.surrogates import Hinge
from rankwise.torch.on_device.rows import SortedRows, mean_of_ties
from rankwise.torch.on_device.tables import DiscountedTensors


def hinge(rows: SortedRows, loss: DiscountedTensors, surrogate: Hinge) -> tuple[Tensor, Tensor]:
    """Values (Q,), and gradients by rank, (Q, n); any value where a query has one class only."""
    scale = surrogate.scale
    unit = torch.where(rows.can_rank, 2 / (rows.n_pos.to(rows.pos.dtype) * rows.n_neg), 0.0)
    above = _most_violating(rows, loss, scale)
    slope = _gradient(rows, above) * unit
    return scale * loss.lost(above, rows.n_pos) + _total(rows, slope), slope


def _most_violating(rows: SortedRows, loss: DiscountedTensors, scale: float) -> Tensor:
    """above (Q, P) of the ranking that maximises scale·Δ + F, by row."""
    k, real = torch.arange(rows.pos.shape[1], device=rows.pos.device).expand(rows.pos.shape), rows.real
    weight = scale * rows.n_pos.to(rows.pos.dtype) * rows.n_neg / 2
    pos, ceiling = _within_reach(rows, weight * loss.largest)
    low, high = torch.zeros_like(k), torch.where(real, rows.n_neg, 0)
    start, end = torch.where(real, 0, k), torch.where(real, rows.n_pos - 1, k)
    for _ in range(rows.most_neg.bit_length()):
        m, active = (low + high + 1) // 2, low < high
        step = rows.negative(m).minimum(ceiling) - pos + weight * loss.gain(k + 1, m)
        up = active & _best_ends(torch.where(active, step, 0.0), start, end)
        split = end + 1 - _in_block(up, start, end)
        down = active & ~up
        low, high = torch.where(up, m, low), torch.where(down, m - 1, high)
        start, end = torch.where(up, split, start), torch.where(down, split - 1, end)
    return low


def _best_ends(step: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Which positives belong to the end of their block with the largest sum of steps; the shortest such end."""
    sums = step.cumsum(1)
    before = torch.nn.functional.pad(sums, (1, 0)).gather(1, start)
    least = torch.full_like(sums, torch.inf).scatter_reduce_(1, start, sums, "amin").gather(1, start)
    lowest = sums <= torch.minimum(least, before)
    here = lowest.cumsum(1)
    return here.gather(1, end) - here + lowest.to(here.dtype) == 0


def _in_block(flag: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The number of flags in each one's block."""
    counts = torch.nn.functional.pad(flag.cumsum(1), (1, 0))
    return counts.gather(1, end + 1) - counts.gather(1, start)


def _within_reach(rows: SortedRows, reach: Tensor) -> tuple[Tensor, Tensor]:
    """Positives (Q, P), lowered to where no negative passes them, and a ceiling (Q, 1) that passes them all.

    reach (Q, 1): the most that the loss adds to a step, in absolute value. Sums of steps keep their signs, and no
    distant score makes them inexact.
    """
    highest = rows.negative(torch.ones_like(rows.n_neg))
    pos = rows.pos.minimum(highest + 2 * reach.abs())
    return pos, pos[:, :1] + 1 + pos[:, :1].abs() + 2 * reach.abs()


def _gradient(rows: SortedRows, above: Tensor) -> Tensor:
    """∂(F(R) − F(R*))/∂s (Q, n) in sorted order, in units of 2/(PN): c of a negative's rank, −c_k of a positive.

    A negative's is the number of positives it is above. Samples of one class that tie in score share theirs.
    """
    # ends[c] is the number of positives with c negatives above them, so P − Σ_{c < j} ends[c] have at least j.
    ends = above.new_zeros(above.shape[0], rows.most_neg + 1).scatter_add_(1, above, rows.real.to(above.dtype))
    below = (rows.n_pos - ends.cumsum(1)).gather(1, (rows.is_neg.cumsum(1) - 1).clamp(min=0))
    inside = rows.real & (above > 0) & (above < rows.n_neg)
    torn = inside & (rows.negative(above) == rows.negative(above + 1))
    split = (rows.pos[:, 1:] == rows.pos[:, :-1]) & (above[:, 1:] != above[:, :-1]) & rows.real[:, 1:]
    if bool(torn.any() | split.any()):
        above = mean_of_ties(rows.pos, above, rows.real)
        below = mean_of_ties(rows.scores, below, rows.is_neg)
    dtype = rows.pos.dtype
    return rows.by_rank(-above.to(dtype), below.to(dtype))


def _total(rows: SortedRows, steepness: Tensor) -> Tensor:
    """Σ gradient·score (Q,), with scores measured from the highest negative of each row; gradients of a row sum to 0.

    Positives far above it, whose gradient is 0, do not make the sum inexact.
    """
    scores, first = rows.scores.to(steepness.dtype), rows.negative(torch.ones_like(rows.n_neg))
    return torch.where(steepness != 0, steepness * (scores - first), 0.0).sum(1)
