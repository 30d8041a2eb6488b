"""All metrics by name: each is a class in a file of its own, listed here. `register` adds those of users."""

from __future__ import annotations

import difflib
import re
from typing import Any, TypeVar

from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import check_whole
from rankwise.documenting import documented
from rankwise.metrics.ap import AveragePrecision
from rankwise.metrics.auc import AUC
from rankwise.metrics.base import FloatArray, Metric, check_judges, values_of
from rankwise.metrics.err import ExpectedReciprocalRank
from rankwise.metrics.f1 import FMeasure
from rankwise.metrics.gains import Gain, as_gain
from rankwise.metrics.loss import Loss
from rankwise.metrics.mrr import ReciprocalRank
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.precision import PrecisionAt, RecallAt
from rankwise.metrics.zero_one import ZeroOne

MetricLike = Metric | str
LossLike = Loss | str
Class = TypeVar("Class", bound=type[Metric])

METRICS: dict[str, type[Metric]] = {}
LOSSES: dict[str, type[Loss]] = {}
# Metrics that were made from names: they keep tables, so they are made once.
_KEPT: dict[str, Metric] = {}


def register(metric: Class) -> Class:
    """Make a class of metrics known by its `name`, wherever a metric or a loss is taken by name; a decorator.

    The name is that of the class called without arguments, and "name@10" that of the class called with k=10. If `cut`
    is "never" (the default) there is only the first, if "always" only the second.

    Parameters
    ----------
    metric : type
        Subclass of `Metric`, such as of `rankwise.DiscountedLoss`.

    Returns
    -------
    type
        The class.

    See Also
    --------
    as_metric : Get a metric by name.

    Examples
    --------
    >>> import rankwise as rw
    >>> @register
    ... class Root(rw.DiscountedLoss):
    ...     name, cut = "root-of-rank", "optionally"
    ...
    ...     def discount(self, m):
    ...         return m**-0.5
    >>> rw.ranking_loss([3.0, 2.0, 1.0], [False, True, True], "root-of-rank@1")
    1.0
    """
    name = metric.name
    if not re.fullmatch(r"[^\s@]+", name):
        raise ValueError(f"the name {name!r} of a metric must be a word without @")
    known = METRICS.get(name) or LOSSES.get(name) or metric
    if (known.__module__, known.__qualname__) != (metric.__module__, metric.__qualname__):
        raise ValueError(f"{name!r} is the name of {known.__name__}; choose another name")
    _KEPT.clear()
    if not metric.judges_labels:
        METRICS[name] = metric
    if issubclass(metric, Loss):
        LOSSES[name] = metric
    return metric


for _class in (
    AveragePrecision, NDCG, ReciprocalRank, AUC, FMeasure, PrecisionAt, RecallAt, ExpectedReciprocalRank, ZeroOne,
):  # fmt: skip
    register(_class)


@documented
def as_metric(
    metric: MetricLike, k: int | None = None, *, gain: Gain | None = None, max_grade: float | None = None
) -> Metric:
    """Get a metric by name.

    Parameters
    ----------
    {metric}
    k : int, optional
        Last place that counts, if the name does not say so.
    gain : {"exp2", "linear"} or callable, optional
        For NDCG, the worth of a grade y: 2^y − 1 (the default), y itself, or a function of grades; see `rankwise.NDCG`.
    max_grade : float, optional
        For ERR, the largest possible grade. By default the largest given.

    Returns
    -------
    Metric
        The metric. Call it, or pass it to any function that takes a metric.

    See Also
    --------
    Metric : The class of metrics.
    register : Give a metric of your own a name.

    Examples
    --------
    >>> as_metric("ndcg@10")
    NDCG(k=10)
    >>> as_metric("ndcg", 5, gain="linear")([3.0, 2.0, 1.0], [1, 2, 0])
    0.8597186998521972
    """
    if isinstance(metric, Metric):
        check_judges(metric)
        found = metric if k is None else metric.replace(k=_cut(type(metric), metric.k, k))
    elif isinstance(metric, str):
        kind, own = _named(metric, METRICS, "metric")
        found = _made(kind, _cut(kind, own, k))
    else:
        raise TypeError(f"metric must be a name, such as 'ap' or 'ndcg@10', or a Metric, got {type(metric).__name__}")
    if gain is not None:
        as_gain(gain)
        if not isinstance(found, NDCG):
            raise ValueError(f"{found.name} has no gains; gain= is for 'ndcg'")
        found = found.replace(gain=gain)
    if max_grade is not None:
        if not isinstance(found, ExpectedReciprocalRank):
            raise ValueError(f"{found.name} has no largest grade; max_grade= is for 'err'")
        found = found.replace(max_grade=max_grade)
    return found


@documented
def as_loss(loss: LossLike) -> Loss:
    """Get a loss by name: a metric that can be trained for.

    Parameters
    ----------
    {loss}

    Returns
    -------
    Loss
        The loss.

    See Also
    --------
    as_metric : Get a metric by name.

    Examples
    --------
    >>> as_loss("ap@100")
    AveragePrecision(k=100)
    """
    found: Any = _KEPT.get(loss, loss) if isinstance(loss, str) else loss
    if isinstance(found, str):
        known = METRICS if found.partition("@")[0] in METRICS else LOSSES
        kind, own = _named(found, known, "loss")
        found = _made(kind, _cut(kind, own, None))
    if not isinstance(found, Metric):
        raise TypeError(f"loss must be a name or a Loss, got {type(found).__name__}; see rankwise.DiscountedLoss")
    if not isinstance(found, Loss):
        remedy = found.train_instead or f"train for one of {', '.join(map(repr, LOSSES))}"
        raise ValueError(f"{found.name} judges rankings but cannot be trained for; {remedy}")
    return found


def _named(text: str, known: dict[str, Any], what: str) -> tuple[type[Metric], int | None]:
    """Return the class of that name, and its cut-off."""
    name, at, cut = text.partition("@")
    if name not in known:
        names = f"{', '.join(map(repr, known))}, with a cut-off such as 'ndcg@10', or a {what.capitalize()} object"
        near = difflib.get_close_matches(name.strip().lower(), LOSSES | METRICS, 1)
        meant = f". Did you mean {near[0] + at + cut.strip()!r}?" if near else ""
        raise ValueError(f"unknown {what} {text!r}; use one of {names}{meant}")
    if at and not re.fullmatch("[1-9][0-9]*", cut):
        raise ValueError(f"the cut-off of {text!r} must be a whole number, at least 1, as in '{name}@10'")
    return known[name], int(cut) if at else None


def _cut(metric: type[Metric], own: int | None, k: int | None) -> int | None:
    """Return the cut-off of a metric that is cut at `own` by its name, and at k; None if it has none."""
    if k is not None:
        check_whole(1, k=k)
        if own not in (None, k):
            raise ValueError(f"{metric.name}@{own} is already cut at {own}, not at k={k}; pass only one of them")
        own = int(k)
    if own is not None and metric.cut == "never":
        able = ", ".join(repr(other) for other, one in METRICS.items() if one.cut != "never")
        raise ValueError(f"{metric.name} cannot be cut at k={own}; only {able} can")
    if own is None and metric.cut == "always":
        raise ValueError(f"{metric.name} needs the last place that counts; use a name such as '{metric.name}@10'")
    return own


def _made(metric: type[Metric], k: int | None) -> Metric:
    name = metric.name if k is None else f"{metric.name}@{k}"
    if name not in _KEPT:
        _KEPT[name] = metric() if k is None else metric(k=k)
    return _KEPT[name]


@documented
def per_query(
    metric: MetricLike,
    scores: ArrayLike,
    relevant: ArrayLike,
    qid: ArrayLike,
    *,
    k: int | None = None,
    empty: str = "skip",
) -> tuple[NDArray[Any], FloatArray]:
    """Compute a metric for each query.

    {arguments_of_metrics}

    Returns
    -------
    ids : ndarray of shape (q,)
        The queries, sorted.
    values : ndarray of shape (q,)
        Value of each query.

    See Also
    --------
    as_metric : Get a metric by name. Call it for the mean over queries.

    Examples
    --------
    >>> per_query("ap", [0.9, 0.8, 0.7, 0.1, 0.5], [0, 1, 1, 0, 0], qid=[4, 4, 2, 2, 7])
    (array([2, 4, 7]), array([1. , 0.5, nan]))
    """
    return values_of(as_metric(metric, k), scores, relevant, qid, empty)


@documented
def check_qs_suitable(loss: LossLike, n_pos: int, n_neg: int) -> None:
    """Check that a loss works with the fast methods for a query of this size.

    A loss is QS-suitable if it is a sum over negatives, Δ = Σ_j δ_j(r_j), and its steps do not fall from one negative
    to the next:

        (C2):  δ_{j+1}(i+1) − δ_{j+1}(i) ≥ δ_j(i+1) − δ_j(i)   for 1 ≤ j < n_neg, 1 ≤ i ≤ n_pos

    r_j is the interleaving rank of the j-th negative: one plus the number of positives above it.

    {arguments}

    Raises
    ------
    NotQSSuitableError
        If the loss is not QS-suitable. The error names the first place (i, j) where (C2) breaks.

    See Also
    --------
    DiscountedLoss : A loss that is QS-suitable if its discount is convex.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.check_qs_suitable("ndcg", n_pos=3, n_neg=5)
    >>> rw.check_qs_suitable(rw.NDCG(discount="chakrabarti"), n_pos=3, n_neg=5)
    Traceback (most recent call last):
    rankwise.metrics.loss.NotQSSuitableError: ndcg breaks (C2) at (i, j) = (1, 1): step_2(1) = -0.140281 < step_1(1)...
    """
    check_whole(1, n_pos=n_pos, n_neg=n_neg)
    as_loss(loss).check(int(n_pos), int(n_neg))
