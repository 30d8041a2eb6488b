"""One very large query over several processes: scores stay where they are, and `rankwise.distributed` ranks them.

Every process is a part. All receive the same replies, so all reach the same decisions. For smaller queries, gathering
all scores takes less time than several rounds of messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwise.distributed.exchange import Function, Traffic, add_all, size_of
from rankwise.distributed.hinge import solve_hinge
from rankwise.distributed.part import Large, Members, Part, divide, is_large, totals_of
from rankwise.distributed.smooth import solve_smooth
from rankwise.surrogates import Hinge, Smooth
from rankwise.torch.batches import Batch
from rankwise.torch.distributed import tell_all
from rankwise.torch.layout import compute_dtype
from rankwise.torch.objective import Objective, objective_of
from rankwise.torch.operator import Options

# From this number of scores in all processes on, they are not gathered.
_MANY = 1 << 20


class Processes:
    """An `Exchange` with one part per process; `state` is the part of this process."""

    def __init__(self, state: Any, traffic: Traffic | None = None) -> None:
        self.state = state
        self.traffic = Traffic() if traffic is None else traffic

    def derive(self, function: Function, *args: Any, reads: bool = False) -> Processes:
        """See `Exchange`; a part has no data and no argument of its own."""
        return Processes(function(self.state, *args), self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """See `Exchange`."""
        found = tell_all(function(self.state, *args), torch.device("cpu"))
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)


@torch.compiler.disable
def rank_together(batch: Batch, options: Options, times_world: bool) -> Tensor | None:
    """The loss of one query over the scores of all processes, or None, in all of them, if scores must be gathered.

    times_world: multiply gradients by the number of processes.
    """
    scores, objective = batch.scores, objective_of(options.objective)
    known = _is_known(batch, objective, options)
    relevant = batch.target.detach().numpy() != 0 if known else np.empty(0)
    own = (scores.shape[0], int(np.count_nonzero(relevant)), compute_dtype(scores)) if known else None
    of_all = tell_all(own, scores.device)
    if any(one is None for one in of_all) or len({one[2] for one in of_all}) > 1:
        return None
    n, n_pos = (sum(one[at] for one in of_all) for at in (0, 1))
    if n < _MANY or not 0 < n_pos < n or not is_large(n, n_pos):
        return None
    first = sum(one[0] for one in of_all[: torch.distributed.get_rank()])
    values = np.ascontiguousarray(scores.detach().to(torch.float64).numpy())
    part = divide(Part(values), [Members(None, np.flatnonzero(relevant), first, n)])
    exchange, query, loss, surrogate = Processes(part), [Large(n, n_pos)], objective.loss, objective.surrogate
    if isinstance(surrogate, Hinge):
        parts, (found,) = solve_hinge(exchange, query, loss, surrogate.scale)  # type: ignore[arg-type]
    else:
        parts, (found,) = solve_smooth(exchange, query, loss, surrogate)  # type: ignore[arg-type]
    (total,) = parts.ask(totals_of)
    scores = scores.to(compute_dtype(scores))
    gradient = torch.from_numpy(parts.state.portions[0].gradient)  # type: ignore[attr-defined]
    slope = gradient.to(scores.dtype) * (len(of_all) if times_world else 1)
    # Adds 0, whose gradient is known.
    return torch.tensor(found.value + total, dtype=scores.dtype) + (slope * (scores - scores.detach())).sum()


def _is_known(batch: Batch, objective: Objective, options: Options) -> bool:
    """Whether parts can rank such a batch for such an objective; errors are raised elsewhere."""
    scores, target, *rest = batch
    loss, surrogate = objective.loss, objective.surrogate
    is_hinge = type(surrogate) is Hinge and surrogate.method == "auto"
    if loss.judges_labels or loss.k is not None or not (is_hinge or type(surrogate) is Smooth):
        return False
    if any(one is not None for one in rest) or options.ignore_index is not None or options.backend == "tensor":
        return False
    if scores.dim() != 1 or scores.device.type != "cpu":
        return False
    is_binary = target.dtype == torch.bool or bool(((target == 0) | (target == 1)).all())
    return is_binary and bool((scores.detach().abs() <= torch.finfo(torch.float32).max).all())
