"""Surrogates: how a metric becomes trainable. Each solves queries to a value and a gradient in the scores.

`evaluate`: arguments of a user → queries → `Surrogate.solve` → the mean over queries, in the user's order and dtype.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import NotFiniteError, as_scores, as_threads, as_truth, check_empty, not_finite
from rankwise.documenting import documented
from rankwise.interleaving import Interleaving
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.metrics.thresholds import sum_over_levels
from rankwise.queries import FoundRanking, Queries, Solved, as_queries, group, n_used, single_query

Scores = NDArray[np.floating]


@documented
class Surrogate(ABC):
    """Base class of surrogates: trainable losses made from a ranking loss, such as `Hinge` and `Smooth`.

    To define your own, override `solve_binary`, and `accepts` if it cannot take every loss. Grades then follow, as a
    weighted mean over thresholds, and every host takes it.

    Attributes
    ----------
    name : str
        Name of the surrogate, such as "hinge".
    is_convex : bool
        Whether the value is convex in the scores, so that solvers can certify a minimum.
    is_derivative : bool
        Whether the gradient is the derivative of the value, not an update rule.
    takes_grades : bool
        Whether it can be solved for grades, not only for binary relevance.
    width : float or None
        Half the width of the ramp by which scores are compared, if there is one.

    See Also
    --------
    evaluate : The value of a surrogate and its gradient.
    Hinge : The structured hinge.
    Smooth : A tighter loss that is not convex.

    Examples
    --------
    >>> import rankwise as rw
    >>> isinstance(rw.Hinge(), rw.Surrogate), rw.Hinge().is_convex, rw.Smooth().is_convex
    (True, True, False)
    """

    name: ClassVar[str]
    is_convex: ClassVar[bool] = False
    is_derivative: ClassVar[bool] = True
    takes_grades: ClassVar[bool] = True
    width: float | None = None

    def accepts(self, loss: LossLike) -> Loss:
        """Return the loss, also of a name, if the surrogate can be made from it; otherwise raise an error.

        Parameters
        ----------
        {loss}

        Returns
        -------
        Loss
            The loss.
        """
        return as_loss(loss)

    @abstractmethod
    def solve_binary(self, scores: Scores, queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        """Solve queries of binary relevance; raise `NotFiniteError` if a score is not finite or too large.

        {solving}
        """

    def solve(self, scores: Scores, queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        """Solve queries of binary or graded relevance.

        Everything but the scores was checked before; a `NotFiniteError` names the first that is not finite.

        {solving}
        """
        try:
            if queries.grades is None:
                return self.solve_binary(scores, queries, loss, n_threads)
            return self.solve_graded(scores, queries, loss, n_threads)
        except NotFiniteError:
            changed = RuntimeError("the scores changed while they were read; do not write to them from another thread")
            raise not_finite(scores) or changed from None

    def solve_graded(self, scores: Scores, queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        """Solve queries of graded relevance, by default as the weighted sum over all thresholds.

        {solving}
        """
        if not self.takes_grades:
            raise ValueError(f"the {self.name} surrogate takes binary relevance, not grades; pass relevant > 0")
        return sum_over_levels(scores, queries, loss, lambda s, q: self.solve_binary(s, q, loss, n_threads))


@dataclass(frozen=True, eq=False)
class PerQuery:
    """Results for each query, sorted by query.

    Parameters
    ----------
    qid : ndarray of shape (Q,)
        The queries.
    value, loss : ndarray of shape (Q,)
        Value and loss of each query, as in `Result`.
    n_pos, n_neg : ndarray of shape (Q,)
        Numbers of positives and of negatives of each query.

    See Also
    --------
    Result : The result that holds this in `per_query`.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.structured_hinge([2.0, 1.0, 0.5, 0.0], [False, True, True, False], qid=[7, 7, 8, 8])
    >>> r.per_query.qid, r.per_query.value
    (array([7, 8]), array([2.5, 0. ]))
    """

    qid: NDArray[Any]
    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    n_pos: NDArray[np.int64]
    n_neg: NDArray[np.int64]


@dataclass(eq=False)
class Result:
    """Value of a surrogate and its gradient.

    Parameters
    ----------
    value : float
        The value, or its mean over queries.
    gradient : ndarray of shape (n,)
        Gradient of `value` in the scores, a semi-gradient or an update. It is read-only and in the dtype of the scores.
    loss : float
        Loss Δ of the most violating ranking, or its mean over queries; the value again where none is searched for.
    per_query : PerQuery, optional
        Results of each query. None if no `qid` was given.

    See Also
    --------
    evaluate : Compute this result.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.structured_hinge([2.0, 1.0, 0.5, 0.0], [False, True, False, True])
    >>> round(r.value, 4), r.interleaving
    (2.25, Interleaving(-+-+))
    """

    value: float
    gradient: Scores
    loss: float
    per_query: PerQuery | None = None
    _ranking: FoundRanking | None = field(default=None, init=False, repr=False)

    @cached_property
    def interleaving(self) -> Interleaving:
        """The most violating ranking, if there is one: that of the hinge of a single query of binary relevance."""
        if self._ranking is None:
            several = self.per_query is not None
            why = "each query has its own" if several else "the query is empty or has grades, or the loss is of labels"
            raise ValueError(
                f"there is no single most violating ranking: {why}; call most_violating_ranking on one query's samples"
            )
        return self._ranking.interleaving()


@documented
def evaluate(
    surrogate: Surrogate,
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    qid: ArrayLike | None = None,
    n_threads: int = 1,
    empty: str = "zero",
) -> Result:
    """Compute a surrogate and its gradient in the scores.

    {evaluating}

    See Also
    --------
    structured_hinge : The same for `Hinge`.

    Examples
    --------
    >>> import rankwise as rw
    >>> r = rw.evaluate(rw.Smooth(width=2.0), [1.0, 0.0], [False, True], "auc")
    >>> r.value, r.gradient
    (0.75, array([ 0.25, -0.25]))
    """
    array, dtype = take_scores(scores)
    truth = as_truth(relevant, array.shape[0])
    if not isinstance(surrogate, Surrogate):
        raise TypeError(f"surrogate must be a Surrogate, such as Hinge() or Smooth(), got {type(surrogate).__name__}")
    known = surrogate.accepts(loss)
    check_empty(empty)
    n_threads = as_threads(n_threads)
    if qid is None:
        queries = single_query(truth)
        solved = surrogate.solve(array, queries, known, n_threads)
        if solved.ranking is None:
            n_used(queries, None, empty)
        result = Result(float(solved.value[0]), give_gradient(solved.gradient, dtype), float(solved.loss[0]))
        result._ranking = solved.ranking
        return result
    grouping = group(qid, array.shape[0])
    queries = as_queries(grouping.gather(truth), grouping.starts)
    try:
        solved = surrogate.solve(grouping.gather(array), queries, known, n_threads)
    except NotFiniteError as error:
        raise not_finite(array) or error from None  # name its place in the input
    used = n_used(queries, grouping.ids, empty)
    gradient = solved.gradient  # of the sum over queries
    np.multiply(gradient, gradient.dtype.type(1.0 / used), out=gradient)
    gradient = give_gradient(grouping.scatter(gradient), dtype)
    per_query = PerQuery(grouping.ids, solved.value, solved.loss, *queries.counts)
    return Result(float(solved.value.sum()) / used, gradient, float(solved.loss.sum()) / used, per_query)


def take_scores(scores: ArrayLike) -> tuple[Scores, np.dtype[Any]]:
    """Return `as_scores`, with a faster conversion of float16 than NumPy's."""
    if type(scores) is not np.ndarray or scores.dtype != np.float16 or scores.ndim != 1:
        return as_scores(scores)
    from rankwise.kernels.half import from_half

    return as_scores(from_half(scores))[0], scores.dtype


def give_gradient(gradient: Scores, dtype: np.dtype[Any]) -> Scores:
    """Return the gradient in the dtype of the scores, read-only."""
    if dtype == np.float16:
        from rankwise.kernels.half import to_half

        gradient = to_half(gradient)
    gradient = gradient.astype(dtype, copy=False)
    gradient.flags.writeable = False
    return gradient
