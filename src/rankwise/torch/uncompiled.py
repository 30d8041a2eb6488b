"""Losses with a memory, which a compiled graph leaves to Python: what they refuse depends on what the memory holds."""

from __future__ import annotations

import torch

from rankwise.torch.batches import loss_of_batch

loss_among_samples = torch.compiler.disable(loss_of_batch)
