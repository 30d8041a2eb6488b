"""What PyTorch's compiler must be told. Importing it takes seconds, so only those who need it import this."""

from __future__ import annotations

import torch

from rankwise.torch.batches import loss_of_batch
from rankwise.torch.objective import key_in_graph

# The key of an objective is a constant of a compiled graph.
constant_key = torch.compiler.assume_constant_result(key_in_graph)
# Losses with a memory run outside compiled graphs: their checks depend on what the memory holds.
loss_among_samples = torch.compiler.disable(loss_of_batch)
