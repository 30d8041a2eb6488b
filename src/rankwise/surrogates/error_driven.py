"""The error-driven loss: each positive passes its error to the negatives above it (AP-loss, Chen et al., 2019).

With soft counts c_k and the ramp H, see softened.py, and soft places among positives, p_k = ½ + Σ_i H(s_i − s_k):

    e_k = (w(p_k)/C) (D(p_k) − D(p_k + c_k));   update −e_k of a positive, Σ_k e_k·H(s_j − s_k)/c_k of a negative
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankwise.documenting import documented
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.registry import LossLike
from rankwise.queries import compiled
from rankwise.surrogates.base import Result, evaluate
from rankwise.surrogates.softened import Errors, SoftCounts, Softened


@documented
@dataclass(frozen=True)
class ErrorDriven(Softened):
    """Error-driven update of a ranking loss: bounded, and never 0 while a positive is misranked.

    Parameters
    ----------
    {width}
    {interpolate}

    See Also
    --------
    error_driven_loss : Its value and update.
    Smooth : A softened loss with its true gradient.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.evaluate(rw.ErrorDriven(width=0.5), [2.0, 1.0], [False, True], "auc").gradient
    array([ 1., -1.])
    """

    interpolate: bool = True
    name: ClassVar[str] = "error-driven"
    is_derivative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.interpolate, bool | np.bool_):
            raise TypeError(f"interpolate must be True or False, got {self.interpolate!r}")

    def errors(self, counts: SoftCounts, loss: DiscountedLoss, n_threads: int = 1) -> Errors:
        soft, most = counts.soft, int(counts.place.max())
        place, _ = compiled("soft.pairs").places(soft.level, soft.starts, soft.width, n_threads)
        table = loss.tables(most, counts.n).weight
        w = np.interp(place, np.arange(1.0, most + 1.0), table[:most]) / counts.norm
        ideal, _ = loss.continued(place, counts.n)
        found, _ = loss.continued(place + soft.above, counts.n)
        has_precision = (ideal > 0.0) | ((ideal == 0.0) & (loss.k is not None))
        if self.interpolate and has_precision.any():
            sizes = np.diff(soft.starts)
            some = sizes > 0
            in_all = np.repeat(np.logical_and.reduceat(has_precision, soft.starts[:-1][some]), sizes[some])
            precision = np.divide(found, ideal, out=np.zeros_like(found), where=ideal > 0.0)
            compiled("soft.pairs").running_maximum(soft.starts, precision)
            found = np.where(in_all, ideal * precision, found)
        error = w * (ideal - found)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(soft.above > 0.0, error / soft.above, 0.0)
        return Errors(error, -error, weight, True)


@documented
def error_driven_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    qid: ArrayLike | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> Result:
    """Compute the error-driven ranking loss and its update for each sample.

    With loss="ap" this is AP-loss (Chen et al., 2019). Each positive passes its error to the negatives above it, in
    proportion to how far above they are. The `gradient` is this update, not the derivative of the value. It is bounded
    by the positive's share of the loss, and does not vanish while a positive is misranked. With grades, it is a
    weighted mean over the grades as thresholds.

    {evaluating}

    See Also
    --------
    smooth_loss : A softened loss with its true gradient.
    structured_hinge : A convex upper bound of the loss.

    Examples
    --------
    >>> r = error_driven_loss([2.0, 1.0, 0.5, 0.0], [False, True, False, True], width=0.5)
    >>> round(r.value, 4), r.gradient.round(4).tolist()
    (0.5, [0.375, -0.25, 0.125, -0.25])
    """
    surrogate = ErrorDriven(width, interpolate)
    return evaluate(surrogate, scores, relevant, loss, qid=qid, n_threads=n_threads, empty=empty)
