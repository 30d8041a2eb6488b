"""What PyTorch's compiler must be told. Importing it takes seconds, so only those who need it import this."""

from __future__ import annotations

import torch

from rankwise.torch.batches import loss_of_batch
from rankwise.torch.options import register

# The key of a loss object is a constant of a compiled graph.
constant_key = torch.compiler.assume_constant_result(register)
# Losses with a memory run outside compiled graphs: their checks depend on what the memory holds.
loss_among_samples = torch.compiler.disable(loss_of_batch)
