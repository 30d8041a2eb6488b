"""Losses with a memory, which run outside compiled graphs: their checks depend on what the memory holds."""

from __future__ import annotations

import torch

from rankwise.torch.batches import loss_of_batch

loss_among_samples = torch.compiler.disable(loss_of_batch)
