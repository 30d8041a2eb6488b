"""What PyTorch's compiler must be told. Importing it takes seconds, so only those who need it import this."""

from __future__ import annotations

import torch
from torch.fx.experimental.symbolic_shapes import guard_scalar

from rankwise.torch.batches import loss_of_batch
from rankwise.torch.objective import key_in_graph

# The key of an objective is a constant of a compiled graph, which holds for these numbers only.
constant_key = torch.compiler.assume_constant_result(key_in_graph)
fixed = guard_scalar if tuple(map(int, torch.__version__.split(".")[:2])) > (2, 8) else (lambda number: number)
# Losses with a memory run outside compiled graphs: their checks depend on what the memory holds.
loss_among_samples = torch.compiler.disable(loss_of_batch)
