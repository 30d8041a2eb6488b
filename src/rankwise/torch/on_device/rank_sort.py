"""RankSort in tensors; formulas: `rankwise.surrogates.rank_sort`.

Sums over the positives of a window that have a lower quality than one: the order of qualities is halved again and again
(a wavelet matrix). In each half, sorted by score, a sum over a window is a difference of two running sums, and the ends
of a window are found from those before the halving. This takes O(log P) rounds of O(P) work.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from rankwise.torch.layout import Samples
from rankwise.torch.objective import Outcome
from rankwise.torch.on_device.rows import sort_rows
from rankwise.torch.on_device.soft import Positives, Windows, count, positives_of, ramp_sums, windows_of

_pad = torch.nn.functional.pad


def rank_sort(scores: Tensor, samples: Samples, width: float) -> Outcome:
    """Solve scores (Q, n) with qualities for grades: values (2, Q), gradients (2, Q, n)."""
    rows = sort_rows(scores, samples)
    filled, real = rows.n_pos.squeeze(1) > 0, rows.real
    gradient = scores.new_zeros(2, *scores.shape)
    if real.shape[1] == 0:
        return Outcome(rows.pos.new_zeros(2, scores.shape[0]), filled, gradient)
    positives = positives_of(rows, width)
    dtype = positives.level.dtype
    windows = windows_of(positives, -rows.scores.to(dtype).contiguous())
    quality = rows.of_positives(cast(Tensor, samples.grades).gather(1, rows.order)).to(dtype)
    share = torch.where(real, 1.0 / rows.n_pos.clamp(min=1).to(dtype), 0.0)
    above, _ = count(positives, windows, rows.is_neg)
    place, sorting, taken = _sorting(positives, real, torch.where(real, quality, torch.inf))
    total = torch.where(real, place + above, 1.0)
    ranking, sorting = above / total * share, sorting * share
    of_negatives = ramp_sums(positives, windows, share / total)
    slope = torch.stack(
        [rows.by_rank(-ranking, of_negatives), rows.by_rank(taken * share - sorting, torch.zeros_like(of_negatives))]
    )
    gradient.scatter_(2, rows.order.expand(2, -1, -1), slope.to(scores.dtype))
    return Outcome(torch.stack([ranking.sum(1), sorting.sum(1)]), filled, gradient)


def _sorting(positives: Positives, real: Tensor, quality: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Soft places of positives (Q, P), their sorting errors, and what others pass on to them."""
    windows = windows_of(positives, positives.level)
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
    edges = [torch.zeros_like(rank), windows.under, windows.cut, windows.upto, torch.full_like(rank, n_pos)]
    found = torch.zeros_like(weights)
    for bit in reversed(range(n_pos.bit_length())):
        first = (position >> bit) % 2 == 0
        upto = _pad(first.cumsum(1), (1, 0))
        place = torch.where(first, upto[:, :-1], upto[:, -1:] + rank - upto[:, :-1])
        position = torch.empty_like(position).scatter_(1, place, position)
        weighted = torch.empty_like(weighted).scatter_(2, place.expand(weighted.shape), weighted)
        running = _pad(weighted.cumsum(2), (1, 0))
        firsts = [upto.gather(1, edge) for edge in edges]
        at = [running.gather(2, edge.expand(weighted.shape)).chunk(2) for edge in firsts]
        here = (before >> bit) % 2 == 1  # all of the first half come before
        found += torch.where(here, _in_block(at, windows, below), 0.0)
        edges = [torch.where(here, upto[:, -1:] + edge - of, of) for edge, of in zip(edges, firsts, strict=True)]
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
