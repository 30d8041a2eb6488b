"""Direct loss minimisation (Song et al., 2016): the loss of the ranking by scores, and an update towards a better one.

    ∇ ≈ (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R),   R_w = argmax_R F(R)

With ε > 0 it moves away from a worse ranking. With ε < 0 it moves towards a better one, which breaks (C2) and needs the
dynamic programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import is_number
from rankwise.documenting import documented
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.queries import Queries, Solved
from rankwise.surrogates.base import Surrogate
from rankwise.surrogates.hinge import Hinge


@documented
@dataclass(frozen=True)
class Direct(Surrogate):
    """The loss itself, with the update of direct loss minimisation. It takes binary relevance.

    Parameters
    ----------
    epsilon : float, default 1.0
        Weight of Δ in the second ranking. Positive: the update moves away from a worse ranking. Negative: it moves
        towards a better one, which is slower, for its time grows with the number of misordered pairs.

    See Also
    --------
    Hinge : A convex upper bound of the loss.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.evaluate(rw.Direct(epsilon=0.5), [1.0, 0.9], [False, True], "ap").value
    0.5
    """

    epsilon: float = 1.0
    name: ClassVar[str] = "direct"
    is_derivative: ClassVar[bool] = False
    takes_grades: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_number(self.epsilon) or not 0.0 < abs(self.epsilon) < np.inf:
            raise ValueError(f"epsilon must be a finite number other than 0, got {self.epsilon!r}")
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def accepts(self, loss: LossLike) -> Loss:
        found = as_loss(loss)
        if found.judges_labels:
            raise ValueError(f"{found.name} takes labels, not rankings; use a ranking loss such as 'ap'")
        return found

    def solve_binary(self, scores: NDArray[np.floating], queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        from rankwise.kernels.engine import predict

        assert isinstance(loss, DiscountedLoss)
        negative = self.epsilon < 0.0
        second = Hinge(self.epsilon, "dynamic") if negative else Hinge(self.epsilon)
        solved = second.solve_binary(scores, queries, loss, n_threads)
        by_scores = predict(scores, queries, loss, worst=True, n_threads=n_threads)
        lost, gradient = by_scores.loss, by_scores.gradient
        if not negative:
            gradient = predict(scores, queries, loss, worst=False, n_threads=n_threads).gradient
        update = (solved.gradient - gradient) / solved.gradient.dtype.type(self.epsilon)
        return Solved(lost, lost, update)
