"""What the losses compute from soft counts: the loss of each positive, and its weight in the negatives' gradients.

c_k is the soft number of negatives above the k-th positive, see `rankwise.smooth`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.discounted_loss import DiscountedLoss
from rankwise.loss_forms import Form, Loss

__all__ = ["WAYS", "Errors", "errors_of", "soft_kernels"]


@cache
def soft_kernels() -> ModuleType:
    """Return the compiled module, imported at the first use."""
    from rankwise.inference import soft

    return soft


class _Case(NamedTuple):
    """The inputs for all positives, one query after the other, ascending by score within a query.

    n_pos: (Q,). place: (P,) k, from the top. norm: (P,) C of the query. n: the largest number of samples in a query.
    """

    loss: Loss
    n_pos: NDArray[np.int64]
    place: NDArray[np.int64]
    norm: NDArray[np.float64]
    n: int
    n_threads: int


class Errors(NamedTuple):
    """For each positive: its part of the loss, its gradient, and its weight for the negatives, by ramp or not."""

    part: NDArray[np.float64]
    own: NDArray[np.float64]
    weight: NDArray[np.float64]
    ramp: bool


def _smooth(soft: Any, case: _Case) -> Errors:
    if case.loss.form is Form.THRESHOLD:
        return _at_best_threshold(soft, case)
    loss = cast(DiscountedLoss, case.loss)
    w = loss.tables(int(case.n_pos.max()), case.n).weight[case.place - 1] / case.norm
    ideal, _ = loss.continued(case.place.astype(np.float64), case.n)
    found, slope = loss.continued(case.place + soft.above, case.n)
    return _by_ramp(soft, w * (ideal - found), -w * slope)


def _at_best_threshold(soft: Any, case: _Case) -> Errors:
    """The F-measure: Δ = min_k (c_k + P − k)/(c_k + P + k) is the part of one k, the first that reaches the minimum.

    ∂Δ/∂c_k = 2k/(c_k + P + k)².
    """
    n_pos = np.repeat(case.n_pos, case.n_pos)
    whole = soft.above + n_pos + case.place
    each = (soft.above + (n_pos - case.place)) / whole
    first = soft.starts[:-1][case.n_pos > 0]
    is_least = each == np.repeat(np.minimum.reduceat(each, first), case.n_pos[case.n_pos > 0])
    chosen = np.maximum.reduceat(np.where(is_least, np.arange(each.size), -1), first)  # places are in falling order
    part, weight = np.zeros_like(each), np.zeros_like(each)
    part[chosen], weight[chosen] = each[chosen], 2.0 * case.place[chosen] / np.square(whole[chosen])
    return _by_ramp(soft, part, weight)


def _by_ramp(soft: Any, part: NDArray[np.float64], slope: NDArray[np.float64]) -> Errors:
    """Return errors with the true gradient. slope is ∂Δ/∂c_k; positives with equal scores share theirs."""
    soft_kernels().share(soft, slope)
    return Errors(part, -slope * soft.near * (0.5 / soft.width), slope, False)


def _error_driven(soft: Any, case: _Case, interpolate: bool) -> Errors:
    place = np.maximum(soft_kernels().places(soft.level, soft.starts, soft.width, case.n_threads), 1.0)
    most = int(case.n_pos.max())
    loss = cast(DiscountedLoss, case.loss)
    table = loss.tables(most, case.n).weight
    w = np.interp(place, np.arange(1.0, most + 1.0), table[:most]) / case.norm
    ideal, _ = loss.continued(place, case.n)
    found, _ = loss.continued(place + soft.above, case.n)
    has_precision = (ideal > 0.0) | ((ideal == 0.0) & (loss.k is not None))
    if interpolate and has_precision.any():
        n_pos = case.n_pos[case.n_pos > 0]
        in_all = np.repeat(np.logical_and.reduceat(has_precision, soft.starts[:-1][case.n_pos > 0]), n_pos)
        precision = np.divide(found, ideal, out=np.zeros_like(found), where=ideal > 0.0)
        soft_kernels().highest(soft, precision)
        found = np.where(in_all, ideal * precision, found)
    error = w * (ideal - found)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(soft.above > 0.0, error / soft.above, 0.0)
    return Errors(error, -error, weight, True)


# The ways to use soft counts, by name.
WAYS: dict[str, Callable[[Any, _Case], Errors]] = {
    "smooth": _smooth,
    "by threshold": _smooth,
    "error-driven": partial(_error_driven, interpolate=False),
    "interpolated": partial(_error_driven, interpolate=True),
}


def errors_of(
    soft: Any, n_pos: NDArray[np.int64], n_neg: NDArray[np.int64], loss: Loss, way: str, n_threads: int = 1
) -> Errors:
    """Return the errors that a way computes from the soft counts of queries with (Q,) positives and negatives."""
    both, ends = (n_pos > 0) & (n_neg > 0), np.cumsum(n_pos)
    place = np.repeat(ends, n_pos) - np.arange(ends[-1])
    norms = np.ones(n_pos.size)
    norms[both] = loss.normalisers(n_pos[both], n_neg[both])
    return WAYS[way](soft, _Case(loss, n_pos, place, np.repeat(norms, n_pos), int((n_pos + n_neg).max()), n_threads))
