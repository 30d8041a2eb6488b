"""RankSort in tensors; formulas: `rankwise.surrogates.rank_sort`.

Sums over positives of lower quality: the positives before one in the order of qualities are O(log P) blocks of 1, 2, 4,
… neighbours. In each block, sorted by score, a sum over a window is a difference of two running sums.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.torch.layout import Samples
from rankwise.torch.objective import Outcome
from rankwise.torch.on_device.ramps import Positives, Windows, count, positives_of, ramp_sums, windows_of
from rankwise.torch.on_device.rows import sort_rows

_pad = torch.nn.functional.pad


def rank_sort(scores: Tensor, samples: Samples, width: float) -> Outcome:
    """Solve scores (Q, n) with qualities for grades: values (2, Q), gradients (2, Q, n)."""
    assert samples.grades is not None
    rows = sort_rows(scores, samples)
    filled = rows.n_pos.squeeze(1) > 0
    gradient = scores.new_zeros(2, *scores.shape)
    if rows.most_pos == 0:
        return Outcome(rows.pos.new_zeros(2, scores.shape[0]), filled, gradient)
    positives = positives_of(rows, width)
    windows = windows_of(positives, -rows.scores.to(positives.level.dtype).contiguous())
    quality = rows.of_positives(samples.grades.gather(1, rows.order)).to(positives.level.dtype)
    real, share = positives.real, 1.0 / rows.n_pos.clamp(min=1).to(positives.level.dtype)
    above, _ = count(positives, windows, rows.is_neg)
    place, sorting, taken = _sorting(positives, torch.where(real, quality, torch.inf))
    total = torch.where(real, place + above, 1.0)
    ranking = above / total
    errors = torch.where(real, torch.stack([ranking, sorting]), 0.0) * share
    weight = torch.where(real, 1.0 / total, 0.0) * share
    own = torch.stack([-errors[0], torch.where(real, taken, 0.0) * share - errors[1]])
    at = (rows.is_pos.cumsum(1) - 1).clamp(min=0).expand(2, -1, -1)
    slope = torch.where(rows.is_pos, own.gather(2, at), 0.0)
    slope[0] = torch.where(rows.is_neg, ramp_sums(positives, windows, weight), slope[0])
    gradient.scatter_(2, rows.order.expand(2, -1, -1), slope.to(scores.dtype))
    return Outcome(errors.sum(2), filled, gradient)


def _sorting(positives: Positives, quality: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Soft places of positives (Q, P), their sorting errors, and what others pass on to them."""
    real, windows = positives.real, windows_of(positives, positives.level)
    poor = torch.where(real, 1.0 - quality, 0.0)
    weights = torch.stack([real.to(poor.dtype), poor])
    total = weights.sum(2, keepdim=True)
    place, lost = (total - torch.stack([ramp_sums(positives, windows, one) for one in weights])).clamp(min=0.0)
    missorted, lost_there = _sums(positives, windows, quality, weights)
    there = torch.where(missorted > 0.0, lost_there / missorted, 0.0).clamp(max=1.0)
    rest = torch.where(real, place - missorted, 1.0)
    excess = torch.where(real, (there - (lost - lost_there) / rest).clamp(min=0.0) / place, 0.0)
    taken = _sums(positives, windows, torch.where(real, -quality, torch.inf), excess[None], below=True)[0]
    return place, excess * missorted, taken


def _sums(positives: Positives, windows: Windows, key: Tensor, weights: Tensor, below: bool = False) -> Tensor:
    """Σ_k weight_k·H(s_k − s_i) by positive, over the positives of a lower key, for weights (m, Q, P).

    below: Σ_k weight_k·H(s_i − s_k) instead.
    """
    n_pos = key.shape[1]
    rank = torch.arange(n_pos, device=key.device).expand(key.shape)
    by_key, order = key.sort(dim=1, stable=True)
    position = torch.empty_like(order).scatter_(1, order, rank)
    before = torch.searchsorted(by_key, key)  # positives of a lower key: the first in the order of keys
    weighted = torch.cat([weights, weights * positives.offset])
    found = torch.zeros_like(weights)
    for bit in range(n_pos.bit_length()):
        block = (before >> bit) - 1
        here = (before >> bit) % 2 == 1
        code, sample = ((position >> bit) * (n_pos + 1) + rank).sort(dim=1)
        running = _pad(weighted.gather(2, sample.expand(len(weighted), -1, -1)).cumsum(2), (1, 0))
        edges = [block << bit]
        for edge in (windows.under, windows.cut, windows.upto):
            edges.append(torch.searchsorted(code, block * (n_pos + 1) + edge))
        edges.append((block + 1) << bit)
        at = [running.gather(2, edge.clamp(0, n_pos).expand(len(weighted), -1, -1)).chunk(2) for edge in edges]
        found += torch.where(here, _in_block(at, windows, below), 0.0)
    return found.clamp(min=0.0)


def _in_block(at: list[tuple[Tensor, ...]], windows: Windows, below: bool) -> Tensor:
    """The sums over a block, from running sums of weights and of weighted offsets at its ends and those of windows."""
    first, last = (3, 4) if below else (0, 1)
    total = at[last][0] - at[first][0]
    sign = 1.0 if below else -1.0
    for start, offset in ((1, windows.early), (2, windows.late)):
        inside, moment = (stop - begin for begin, stop in zip(at[start], at[start + 1], strict=True))
        total = total + 0.5 * inside + sign * (moment - inside * offset)
    return total
