"""One very large query over several processes: scores stay where they are, and `rankwise.distributed` ranks them.

Every process is a part. All receive the same replies, so all reach the same decisions. For smaller queries, gathering
all scores takes less time than several rounds of messages.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.distributed.exchange import Function, Traffic, add_all, size_of
from rankwise.distributed.hinge import solve_hinge
from rankwise.distributed.part import Large, Members, Part, divide, is_large, totals_of
from rankwise.distributed.smooth import solve_smooth
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.surrogates import Hinge, Smooth
from rankwise.torch.batches import Batch
from rankwise.torch.distributed import gather_parts, tell_all
from rankwise.torch.layout import compute_dtype
from rankwise.torch.objective import Objective, objective_of
from rankwise.torch.operator import Options

__all__ = ["Processes", "rank_together"]

# From this number of scores in all processes on, they are not gathered.
_MANY = 1 << 20
_DTYPES = (torch.float32, torch.float64)


class Processes:
    """An `Exchange` with one part per process; `state` is the part of this process."""

    def __init__(self, state: Any, traffic: Traffic | None = None) -> None:
        self.state = state
        self.traffic = Traffic() if traffic is None else traffic

    def derive(self, function: Function, *args: Any, reads: bool = False) -> Processes:
        """See `Exchange`; a part has no data and no argument of its own."""
        assert not reads
        return Processes(function(self.state, *args), self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """See `Exchange`."""
        reply = pickle.dumps(self.derive(function, *args, reads=reads).state)
        own = torch.frombuffer(bytearray(reply), dtype=torch.uint8)
        sizes = [numbers[0] for numbers in tell_all([own.shape[0]], own.device)]
        parts = gather_parts(own, sizes).split(sizes)
        found = [pickle.loads(part.numpy().tobytes()) for part in parts]
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)


@torch.compiler.disable
def rank_together(batch: Batch, options: Options, times_world: bool) -> Tensor | None:
    """The loss of one query over the scores of all processes, or None, in all of them, if scores must be gathered.

    times_world: multiply gradients by the number of processes.
    """
    scores, target, *rest = batch
    is_plain = all(one is None for one in rest)
    objective = objective_of(options.objective)
    relevant = _relevant(scores, target) if is_plain and _is_known(scores, objective, options) else None
    own = [0, 0, 0, 0]
    if relevant is not None:
        own = [1, scores.shape[0], int(np.count_nonzero(relevant)), _DTYPES.index(compute_dtype(scores))]
    of_all = tell_all(own, scores.device)
    n, n_pos = (sum(one[at] for one in of_all) for at in (1, 2))
    together = all(one[0] for one in of_all) and len({one[3] for one in of_all}) == 1
    if relevant is None or not together or n < _MANY or not 0 < n_pos < n or not is_large(n, n_pos):
        return None
    first = sum(one[1] for one in of_all[: torch.distributed.get_rank()])
    values = scores.detach().to(compute_dtype(scores)).to(torch.float64).numpy()
    part = divide(Part(np.ascontiguousarray(values)), [Members(None, np.flatnonzero(relevant), first, n)])
    value, gradient = _solve(Processes(part), Large(n, n_pos), objective)
    scores = scores.to(compute_dtype(scores))
    slope = torch.from_numpy(gradient).to(scores.dtype) * (len(of_all) if times_world else 1)
    # Adds 0, whose gradient is known.
    return torch.tensor(value, dtype=scores.dtype) + (slope * (scores - scores.detach())).sum()


def _solve(exchange: Processes, query: Large, objective: Objective) -> tuple[float, NDArray[np.float64]]:
    loss, surrogate = objective.loss, objective.surrogate
    assert isinstance(loss, DiscountedLoss)
    if isinstance(surrogate, Smooth):
        parts, (found,) = solve_smooth(exchange, [query], loss, surrogate)
    else:
        assert isinstance(surrogate, Hinge)
        parts, (found,) = solve_hinge(exchange, [query], loss, surrogate.scale)
    (total,) = parts.ask(totals_of)
    gradient: NDArray[np.float64] = parts.state.portions[0].gradient  # type: ignore[attr-defined]
    return found.value + total, gradient


def _is_known(scores: Tensor, objective: Objective, options: Options) -> bool:
    """Whether parts can rank such scores for such an objective."""
    loss, surrogate = objective.loss, objective.surrogate
    is_hinge = type(surrogate) is Hinge and surrogate.method == "auto"
    known = not loss.judges_labels and loss.k is None and (is_hinge or type(surrogate) is Smooth)
    of_call = options.ignore_index is None and options.backend != "tensor"
    return known and of_call and scores.dim() == 1 and scores.device.type == "cpu"


def _relevant(scores: Tensor, target: Tensor) -> NDArray[np.bool_] | None:
    """Binary relevance, or None if it is not binary or a score is not finite; errors are raised elsewhere."""
    values = target.detach()
    if values.dtype != torch.bool and not bool(((values == 0) | (values == 1)).all()):
        return None
    limit = torch.finfo(torch.float32).max
    if not bool((scores.detach().abs() <= limit).all()):
        return None
    found: NDArray[np.bool_] = (values != 0).numpy()
    return found
