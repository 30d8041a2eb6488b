"""What a call computes: a loss and a surrogate. A compiled operator takes strings, so an objective has a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike
from rankwise.queries import Queries
from rankwise.surrogates import SURROGATES, Surrogate, as_surrogate
from rankwise.surrogates.rank_sort import RankSort
from rankwise.torch.layout import Samples, precise, read_qualities, read_samples

_BY_KEY: WeakValueDictionary[str, Objective] = WeakValueDictionary()
_IN_GRAPHS: set[Objective] = set()  # of compiled graphs, which hold only their keys


@dataclass(frozen=True, eq=False)
class Objective:
    """A surrogate of a loss that it accepts; known: the name of the loss, if both are the library's, else "".

    parts: the leading dimensions of values.
    """

    loss: Loss
    surrogate: Surrogate
    known: str
    parts: ClassVar[tuple[int, ...]] = ()

    def read(self, target: Tensor, mask: Tensor | None, ignore_index: int | None) -> Samples:
        """Read a target; raises for what is no label."""
        return read_samples(target, mask, ignore_index, graded=True)

    def can_rank(self, queries: Queries) -> NDArray[np.bool_]:
        """Whether each query counts, (Q,)."""
        return queries.can_rank

    def lacks(self, graded: bool) -> str:
        """What a query lacks that does not count."""
        what = "two different grades" if graded else "positives or no negatives"
        return f"no {what} and so no ranking loss"

    def key(self) -> str:
        """The key by which an operator finds it as long as it is alive."""
        # Of what the library knows, keys are the same in every process.
        key = f"{self.surrogate!r} of {self.known}" if self.known else f"{type(self.surrogate).__name__} #{id(self)}"
        _BY_KEY[key] = self
        return key


class OfQualities(Objective):
    """RankSort, whose targets are qualities, and which also takes queries without negatives."""

    parts = (2,)

    def read(self, target: Tensor, mask: Tensor | None, ignore_index: int | None) -> Samples:
        return read_qualities(target, mask, ignore_index)

    def can_rank(self, queries: Queries) -> NDArray[np.bool_]:
        return np.asarray(queries.counts[0] > 0)

    def lacks(self, graded: bool) -> str:
        return "no positives and so no loss"


def posed(loss: LossLike, surrogate: str | Surrogate | type[Surrogate], *parameters: float) -> Objective | str:
    """The objective, or its key where PyTorch compiles; a class and its parameters stand for a surrogate."""
    if torch.compiler.is_compiling():
        from rankwise.torch.compiling import constant_key, fixed  # imports PyTorch's compiler, which takes seconds

        key: str = constant_key(loss, surrogate, *[fixed(one) for one in parameters])
        return key
    return _make(loss, surrogate, *parameters)


def _make(loss: LossLike, surrogate: str | Surrogate | type[Surrogate], *parameters: float) -> Objective:
    made = surrogate(*parameters) if isinstance(surrogate, type) else as_surrogate(surrogate)
    accepted = made.accepts(loss)
    kind = OfQualities if type(made) is RankSort else Objective
    named = isinstance(loss, str) and type(made) in (*SURROGATES.values(), RankSort)
    return kind(accepted, made, str(loss) if named else "")


def key_in_graph(*described: Any) -> str:
    """The key of an objective that is kept for good."""
    found = _make(*described)
    _IN_GRAPHS.add(found)
    return found.key()


def objective_of(key: Objective | str) -> Objective:
    """The objective with that key."""
    if not isinstance(key, str):
        return key
    found = _BY_KEY.get(key)
    if found is None:
        raise RuntimeError("the loss of this call has been deleted; keep a reference to it as long as it is used")
    return found


class Outcome(NamedTuple):
    """values (Q,), in the best precision; filled (Q,), whether a query has something to rank; the gradient.

    The gradient, as the scores are laid out, is that of the sum of values. With parts, values and gradient have them
    as their first dimension. query: with qid, that of each sample, (n,).
    """

    values: Tensor
    filled: Tensor
    gradient: Tensor
    query: Tensor | None = None


def queries_counted(filled: Tensor, empty: str) -> Tensor:
    """The number of queries that a mean is taken over."""
    return (filled if empty == "skip" else torch.ones_like(filled)).sum()


def share_of_query(filled: Tensor, empty: str, reduction: str) -> Tensor | float | None:
    """The factor of each query's value in the sum over queries; None if there is no sum."""
    if reduction == "none":
        return None
    if reduction == "sum":
        return 1.0
    if not torch.compiler.is_compiling() and (empty != "skip" or filled.shape[0] == 1):  # a number takes less time
        return 1.0 / max(filled.shape[0], 1)
    return 1.0 / queries_counted(filled, empty).clamp(min=1).to(precise(filled.device))


def refuse_empty(filled: Tensor, lacks: str, qid: Tensor | None = None) -> None:
    """Raise for the first query with nothing to rank."""
    if not bool(filled.all()):
        q = int((~filled).nonzero()[0])
        which = f"query {q}" if qid is None else f"the query with qid {int(qid.long().unique()[q])}"
        raise ValueError(f"{which} has {lacks}; remove it, or pass empty='zero' or empty='skip'")
