"""argmax F − ε·Δ in tensors: the dynamic programme over positives, a running maximum over negatives for each.

V_k(c) = h_k(c) + max_{c' ≤ c} V_{k−1}(c'). Values are kept for every √P-th positive only. The others are computed
again on the way back: O(PN) work and O(N √P) memory per query.
"""

from __future__ import annotations

from math import isqrt

import torch
from torch import Tensor

from rankwise.torch.tensor_loss import TensorLoss
from rankwise.torch.tensor_rows import SortedRows, tame


def best_rewarded(rows: SortedRows, loss: TensorLoss, scale: float, most: int) -> Tensor:
    """above (Q, P) of the ranking that maximises scale·Δ + F, by row, for a scale of either sign; c_k ≤ most."""
    device, dtype = rows.pos.device, rows.pos.dtype
    j = torch.arange(most + 1, device=device)
    weight = scale * rows.n_pos.to(dtype) * rows.n_neg / 2
    pos, ceiling = tame(rows, weight * loss.largest)
    negatives = rows.negative(j[1:]).minimum(ceiling)

    def advance(k: int, values: Tensor) -> tuple[Tensor, Tensor]:
        """max over c' ≤ c of V_k(c') and its position, from the same maximum for the previous positive."""
        step = negatives - pos[:, k : k + 1] + weight * loss.gain(torch.full_like(j[1:], k + 1), j[1:])
        best, origin = (values + torch.nn.functional.pad(step.cumsum(1), (1, 0))).cummax(1)
        return torch.where(k < rows.n_pos, best, values), origin

    above = torch.zeros(rows.pos.shape, dtype=torch.int64, device=device)
    stride = isqrt(rows.most_pos) + 1
    values = torch.where(j > rows.n_neg, -torch.inf, torch.zeros(above.shape[0], 1, dtype=dtype, device=device))
    kept = []
    for k in range(rows.most_pos):
        if k % stride == 0:
            kept.append(values)
        values, _ = advance(k, values)
    last = rows.n_neg.clamp(max=most)
    for block in reversed(range(len(kept))):
        values, origins = kept[block], []
        span = range(block * stride, min((block + 1) * stride, rows.most_pos))
        for k in span:
            values, origin = advance(k, values)
            origins.append(origin)
        for k, origin in zip(reversed(span), reversed(origins), strict=True):
            last = torch.where(k < rows.n_pos, origin.gather(1, last), last)
            above[:, k] = last.squeeze(1)
    # Where the loss adds nothing to a step, a positive brought down to the highest negative would tie with it.
    real = (torch.arange(rows.most_pos, device=device) < rows.n_pos) & (rows.pos == pos)
    return torch.where(real, above, 0)
