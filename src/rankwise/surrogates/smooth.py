"""The smooth loss: a ranking loss at soft counts c_k, see softened.py, and its true gradient.

Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),   a_k = ∂Δ/∂c_k = −(w_k/C)·D′(k + c_k)
∂Δ/∂s_k = −a_k·#{j : |s_j − s_k| < width}/(2·width);   ∂Δ/∂s_j = Σ {a_k : |s_j − s_k| < width}/(2·width)

It is bounded, and has no gradient for positives that lie far below the negatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.documenting import documented
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike
from rankwise.queries import Queries, Solved, compiled
from rankwise.surrogates.base import Result, evaluate
from rankwise.surrogates.softened import Errors, SoftCounts, Softened


@documented
@dataclass(frozen=True)
class Smooth(Softened):
    """The loss itself with softened comparisons: bounded, differentiable, not convex.

    Parameters
    ----------
    {width}
    soft_ranks : bool, default True
        Whether grades soften the ranks of all samples. Otherwise the loss is a weighted mean over the grades as
        thresholds.

    See Also
    --------
    smooth_loss : Its value and gradient, and what it does with grades.
    ErrorDriven : An update that does not vanish for positives far below.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.evaluate(rw.Smooth(width=2.0), [1.0, 0.0], [False, True], "auc").value
    0.75
    """

    soft_ranks: bool = True
    name: ClassVar[str] = "smooth"

    def errors(self, counts: SoftCounts, loss: DiscountedLoss, n_threads: int = 1) -> Errors:
        soft, place = counts.soft, counts.place
        w = loss.tables(int(place.max()), counts.n).weight[place - 1] / counts.norm
        ideal, _ = loss.continued(place.astype(np.float64), counts.n)
        found, slope = loss.continued(place + soft.above, counts.n)
        weight = -w * slope
        compiled("soft.pairs").share_ties(soft.level, soft.starts, weight)
        return Errors(w * (ideal - found), -weight * soft.near * (0.5 / soft.width), weight, False)

    def solve_graded(self, scores: NDArray[np.floating], queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        # A query with one grade beside 0 is binary, so that its loss depends on that query alone.
        if not self.soft_ranks:
            return super().solve_graded(scores, queries, loss, n_threads)
        from rankwise.surrogates.soft_ranks import by_kind, solve_ranked

        value, gradient = np.empty(queries.sizes.size), np.empty_like(scores)
        for which, samples, own in by_kind(queries, loss):
            if own.grades is None:
                found = self.solve_binary(scores[samples], own, loss, n_threads)
            else:
                found = solve_ranked(scores[samples], own, loss, self.width, n_threads)
            value[which], gradient[samples] = found.value, found.gradient
        return Solved(value, value, gradient)


@documented
def smooth_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    qid: ArrayLike | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> Result:
    """Compute a ranking loss with softened comparisons, and its gradient.

        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),   c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1)

    The loss, such as 1 − AP, depends on how many negatives j are above each positive k. Here each comparison of two
    scores is softened by a ramp, so the loss has a gradient. It is bounded and not convex, and need not be QS-suitable.
    As the width falls to 0 it becomes the loss itself, with a tie counted as half an error.

    {evaluating}

    See Also
    --------
    error_driven_loss : An update that does not vanish for positives far below.
    structured_hinge : A convex upper bound of the loss.

    Notes
    -----
    A query with grade 0 and one other grade is binary. In a query with more, ranks are softened among all samples,
    r_d = 1 + Σ_{e≠d} H(s_e − s_d) with the ramp H: NDCG is 1 − Σ_d G_d·D(r_d)/ideal, and AP is Robertson's graded AP at
    soft places. So the loss of a query depends on that query alone. Positives with equal scores share their gradient.

    Examples
    --------
    >>> r = smooth_loss([2.0, 1.0, 0.5, 0.0], [False, True, False, True], loss="ap", width=0.75)
    >>> round(r.value, 4)
    0.5084
    >>> r.gradient.round(4).tolist()
    [0.0, -0.071, 0.1164, -0.0454]
    """
    return evaluate(Smooth(width), scores, relevant, loss, qid=qid, n_threads=n_threads, empty=empty)
