"""Algorithm 1 by halving, in O(log N) tensor operations, for all queries of a batch at once.

Seen from the positives, the objective is Σ_k h_k(c_k) over 0 ≤ c_1 ≤ … ≤ c_P ≤ N, and under (C2) each h_k is concave:

    h_k(m) − h_k(m − 1) = s*_m − s⁺_k + (PN/2)·scale·gain(k, m)   does not rise with m (units of 2/(PN)).

So the c_k are found by halving. All positives whose c is known to lie in one interval form a block. Let m be the middle
of the interval: c_k ≥ m holds for the end of the block that adds most to the objective. Blocks never interact again, as
in the paper's recursion. Each halving takes O(P) memory and work, and there are as many as N has binary digits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.torch.tensor_loss import TensorLoss
from rankwise.torch.tensor_rows import SortedRows, tame


def most_violating(rows: SortedRows, loss: TensorLoss, scale: float) -> Tensor:
    """above (Q, P) of the ranking that maximises scale·Δ + F, by row."""
    k = torch.arange(rows.most_pos, device=rows.pos.device).expand(rows.pos.shape)
    real = k < rows.n_pos
    weight = scale * rows.n_pos.to(rows.pos.dtype) * rows.n_neg / 2
    pos, ceiling = tame(rows, weight * loss.largest)
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
