"""Batches of scores in PyTorch, and the value and the gradient of a loss; to be imported where PyTorch is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def batch(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> tuple[Any, Any]:
    """Scores and relevance; in every row, the first sample is relevant and the second is not."""
    scores, target = samples(*shape, seed=seed, dtype=dtype, rate=0.4)
    target[..., 0], target[..., 1] = True, False
    return scores, target


def samples(*shape: int, seed: int = 0, dtype: Any = torch.float64, rate: float = 0.3) -> tuple[Any, Any]:
    """Scores and relevance at random."""
    made = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=made).to(dtype), torch.rand(*shape, generator=made) < rate


def with_gradient(run: Callable[..., Any], scores: Any, *args: Any, **given: Any) -> tuple[Any, Any]:
    """The value, and the gradient of its sum."""
    leaf = scores.detach().clone().requires_grad_()
    value = run(leaf, *args, **given)
    value.sum().backward()
    return value.detach(), leaf.grad
