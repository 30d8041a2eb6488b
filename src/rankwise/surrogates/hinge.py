"""The structured hinge J of a ranking loss and its semi-gradient, for one query or many.

    J = max_R scale·Δ(R*, R) + F(R) − F(R*),   F(R) = (1/PN) Σ_{x ∈ P, y ∈ N} R_xy (s_x − s_y)

With r_j the interleaving rank of a negative in the maximising ranking and c_k the number of negatives above the k-th
positive, ∂J/∂s = 2(P + 1 − r_j)/(PN) for a negative and −2 c_k/(PN) for a positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_cutoff, as_scale
from rankwise.documenting import documented
from rankwise.interleaving import Interleaving
from rankwise.kernels.contract import FAST, METHODS, WITHOUT_C2
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.metrics.zero_one import ZeroOne, solve_labels
from rankwise.queries import Queries, Solved, compiled
from rankwise.surrogates.base import Result, Surrogate, evaluate


@documented
@dataclass(frozen=True)
class Hinge(Surrogate):
    """The structured hinge: a convex upper bound of scale·Δ.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*),   F(R) = (1/PN) Σ_{x ∈ P, y ∈ N} R_xy (s_x − s_y)

    Parameters
    ----------
    {scale}
    {method}
    {cutoff}

    See Also
    --------
    structured_hinge : Its value and gradient.
    Smooth : A tighter surrogate that is not convex.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.evaluate(rw.Hinge(scale=2.0), [1.0, 0.0], [False, True], "auc").value
    4.0
    """

    scale: float = 1.0
    method: str = "auto"
    cutoff: int | None = None
    name: ClassVar[str] = "hinge"
    is_convex = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; use one of {', '.join(map(repr, METHODS))}")
        object.__setattr__(self, "scale", as_scale(self.scale, self.method))
        if self.cutoff is not None:
            if self.method != "chakrabarti":
                raise ValueError(f"cutoff={self.cutoff} works only with method='chakrabarti', not {self.method!r}")
            as_cutoff(self.cutoff, "cutoff")

    def accepts(self, loss: LossLike) -> Loss:
        found = as_loss(loss)
        if found.judges_labels and self.method != "auto":
            found.check(1, 1)  # refuses: labels have no ranking to search for
        return found

    def solve_binary(self, scores: NDArray[np.floating], queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        if isinstance(loss, ZeroOne):
            return solve_labels(scores, queries, self.scale)
        assert isinstance(loss, DiscountedLoss)
        method, k = self.method, None
        if loss.k is not None and method == "auto" and not _is_suitable(loss, queries):
            k = loss.k
            if loss.tables(1, k).discount.min() < 0.0:
                method, k = "dynamic", None  # cutoff.py needs D ≥ 0
        _check(loss, queries, k is None and method not in WITHOUT_C2)
        if method in FAST:
            found: Solved = compiled("engine").solve(scores, queries, loss, self.scale, n_threads, k)
        else:
            found = compiled("published").solve(scores, queries, loss, self.scale, method, self.cutoff)
        return found


def _check(loss: DiscountedLoss, queries: Queries, needs_c2: bool) -> None:
    """Refuse a loss that has no normaliser for some query with something to rank, or breaks (C2) if this is needed."""
    if not loss.proven:
        counts = queries.counts[:, queries.counts.min(axis=0) > 0]
        if needs_c2:
            loss.check(*counts)
        else:
            loss.normaliser(*counts)


def _is_suitable(loss: DiscountedLoss, queries: Queries) -> bool:
    """Whether a loss of the first k places is QS-suitable because no query has more than k samples."""
    if loss.k is None or loss.k < queries.sizes.max(initial=0):
        return False
    try:
        loss.check(*queries.counts)
    except NotQSSuitableError:
        return False
    return True


@documented
def structured_hinge(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    qid: ArrayLike | None = None,
    scale: float = 1.0,
    method: str = "auto",
    cutoff: int | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> Result:
    """Compute the structured hinge of a ranking loss and its gradient in the scores.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*),   F(R) = (1/PN) Σ_{x ∈ P, y ∈ N} R_xy (s_x − s_y)

    J is a convex upper bound of scale·Δ, such as 1 − AP. R is a ranking of the P positives and N negatives of a query,
    with R_xy = 1 if positive x is above negative y, else −1, and R* the perfect one. F(R) is how well R agrees with the
    scores s. For a single query, the ranking that reaches the maximum is the `interleaving` of the result. With grades,
    J is a weighted mean over the grades as thresholds, still convex and an upper bound. A `NotQSSuitableError` is
    raised if the method needs the loss to be QS-suitable and it is not.

    {evaluating}

    See Also
    --------
    most_violating_ranking : Return only the ranking.
    smooth_loss : A tighter loss that is not convex.

    Notes
    -----
    J is piecewise linear; at a kink, `gradient` is the gradient of one of the pieces. A negative of interleaving rank
    r_j in the most violating ranking has ∂J/∂s = 2(P + 1 − r_j)/(PN), and the k-th positive with c_k negatives above it
    has −2 c_k/(PN). Samples of one class with equal scores share theirs.

    Examples
    --------
    >>> r = structured_hinge([2.0, 1.0, 0.5, 0.0], [False, True, False, True], loss="ap")
    >>> round(r.value, 4), round(r.loss, 4), r.interleaving.pattern()
    (2.25, 0.5, '-+-+')
    >>> r.gradient
    array([ 1. , -0.5,  0.5, -1. ])
    """
    surrogate = Hinge(scale, method, cutoff)
    return evaluate(surrogate, scores, relevant, loss, qid=qid, n_threads=n_threads, empty=empty)


@documented
def most_violating_ranking(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    scale: float = 1.0,
    method: str = "auto",
    cutoff: int | None = None,
    n_threads: int = 1,
) -> Interleaving:
    """Find the ranking that maximises the loss plus the agreement with the scores.

        R = argmax_R scale·Δ(R*, R) + F(R)

    This is loss-augmented inference, the inner problem of a structured SVM. See `structured_hinge` for Δ and F.

    {arguments_of_one_query}

    Returns
    -------
    Interleaving
        The ranking.

    See Also
    --------
    structured_hinge : The value of the maximum, and its gradient.

    Examples
    --------
    >>> most_violating_ranking([1.2, 1.0, 0.9, -9.0], [True, True, False, False], "ap").pattern()
    '-++-'
    """
    surrogate = Hinge(scale, method, cutoff)
    return evaluate(surrogate, scores, relevant, loss, n_threads=n_threads, empty="error").interleaving
