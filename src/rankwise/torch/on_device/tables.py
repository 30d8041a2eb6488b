"""A loss in tensors: what one more negative above a positive costs, and Δ of a ranking.

Ranks are 1-based: k (Q, P) numbers positives from the top, m (Q, P) is a number of negatives above one, P and N are
the counts of each query (Q, 1).
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from rankwise.kernels.contract import Tail
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.torch.layout import precise

_TABLES: WeakKeyDictionary[Loss, dict[torch.device, tuple[Tensor, Tensor]]] = WeakKeyDictionary()


class DiscountedTensors:
    """Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)), from tables of w and D kept on the device.

    weight: w_1, …. norm: (Q, 1) C of each query. largest: (Q, 1) a bound on the size of gains.
    """

    def __init__(self, loss: DiscountedLoss, n_pos: Tensor, n_neg: Tensor, most: tuple[int, int]) -> None:
        self._loss, self.is_cut = loss, loss.k is not None
        self.weight, self._discount = _tables(loss, *most, n_pos.device)
        if loss.tables(1, 1).per_pair:
            self.norm = n_pos.to(self.weight.dtype) * n_neg
        else:
            ideal = (self.weight * self._discount[1 : self.weight.shape[0] + 1]).cumsum(0)
            self.norm = ideal[(n_pos - 1).clamp(min=0)]
        self.largest = self.weight.amax() * self._discount[1:].diff().abs().amax() / self.norm

    def gain(self, k: Tensor, m: Tensor) -> Tensor:
        """Δ's growth when the m-th negative passes the k-th positive: w_k (D(k + m − 1) − D(k + m)) / C."""
        at = (k + m).clamp(1, self._discount.shape[0] - 1)
        return self.weight[k - 1] * (self._discount[at - 1] - self._discount[at]) / self.norm

    def lost(self, above: Tensor, counts: Tensor) -> Tensor:
        """Δ (Q,) of rankings with above (Q, P) negatives above each positive, of which counts (Q, 1) are real."""
        k = torch.arange(1, above.shape[1] + 1, device=above.device)
        terms = self.weight[k - 1] * (self._discount[k] - self._discount[(k + above)])
        return (torch.where(k <= counts, terms, 0.0) / self.norm).sum(1)

    def continued(self, m: Tensor) -> tuple[Tensor, Tensor]:
        """D and D′ at real places, as `DiscountedLoss.continued`; a custom slope is evaluated on the host."""
        k, last = self._loss.k, self._discount.shape[0] - 1
        if self._loss.closed_form is Tail.NONE and self._loss.is_continuous:
            found = self._loss.continued(m.double().cpu().numpy(), last)
            value, slope = (torch.as_tensor(one, dtype=m.dtype, device=m.device) for one in found)
            return value, slope
        if k is None or last <= k:
            return self._between(m, last)
        value, slope = self._between(m.clamp(max=k), k)
        left = k + 1.0 - m
        falling = torch.where(left > 0.0, -value, 0.0)
        return value * left.clamp(0.0, 1.0), torch.where(left >= 1.0, slope, falling)

    def _between(self, m: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """`continued` up to the cut-off."""
        tail = self._loss.closed_form
        if tail is Tail.RECIPROCAL:
            return 1.0 / m, -1.0 / m.square()
        if tail is Tail.LOG2:
            return 1.0 / (1.0 + m).log2(), -math.log(2.0) / ((1.0 + m) * m.log1p().square())
        if tail is Tail.LINEAR:
            return -m, -torch.ones_like(m)
        below = m.long().clamp(1, max(n - 1, 1))
        step = self._discount[below + 1] - self._discount[below]
        return self._discount[below] + (m - below) * step, step


def _tables(loss: DiscountedLoss, n_pos: int, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """w_1..w_P and D(0)..D(n) on the device, created when first needed or too short."""
    kept = _TABLES.setdefault(loss, {})
    weight, discount = kept.get(device, (torch.empty(0), torch.empty(0)))
    if weight.shape[0] < n_pos or discount.shape[0] <= n:
        n_pos, n = max(n_pos, weight.shape[0]), max(n, discount.shape[0] - 1)
        dtype = precise(device)
        numbers = np.concatenate([[0.0], loss.discounts(np.arange(1, n + 1), n)])
        kept[device] = (
            torch.as_tensor(loss.tables(n_pos, 1).weight[:n_pos].copy(), dtype=dtype, device=device),
            torch.as_tensor(numbers, dtype=dtype, device=device),
        )
        weight, discount = kept[device]
    return weight[:n_pos], discount[: n + 1]
