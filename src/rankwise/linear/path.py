"""The scale of C, and a path of C: one problem after another, each started where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import is_whole
from rankwise.linear.bundle import Bundle
from rankwise.linear.cutting_plane import Settings, SolverResult, cutting_plane
from rankwise.linear.objective import LinearRisk

_SMALLEST = 1e-50

# A slope up to this size, relative to the features along it, is 0 except for rounding.
_ROUNDING = 1e-14


class NoSlopeError(ValueError):
    """The risk has no slope at v = 0."""


def natural_C(objective: LinearRisk) -> float:
    """Compute the natural C of an objective, which suits the scale of the features.

    With `normal` the slope of the risk at v = 0, it is 1/‖normal‖²: the C at which one step down this slope would
    undo a loss of 1. Multiples of it make a grid of C that does not depend on the scale of the features.

    Parameters
    ----------
    objective : LinearRisk
        Risk of a linear ranker, such as an `Objective`.

    Returns
    -------
    float
        The natural C.

    Raises
    ------
    ValueError
        If no feature tells positives from negatives, or if the features are too small to be squared.

    See Also
    --------
    grid_of_C : Values of C around the natural one.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import Objective, as_features, natural_C, pose
    >>> task = pose(np.array([True, False]), AveragePrecision())
    >>> natural_C(Objective(as_features(np.array([[10.0], [0.0]])), task))
    0.0025
    """
    normal = objective.evaluate(np.zeros(objective.n_coefs)).cut.normal
    if 0.0 < np.abs(normal).max(initial=0.0) < _SMALLEST:
        raise ValueError(f"features are below {_SMALLEST:g}, which is too small to be squared; scale them first")
    squared = float(normal @ normal)
    along = objective.largest_score(normal / np.sqrt(squared)) if squared > 0.0 else 0.0
    if np.sqrt(squared) <= _ROUNDING * along:
        raise NoSlopeError(
            "every feature has the same mean for positives and negatives, so none tells them apart; add other features"
        )
    return 1.0 / squared


def usual_C(objective: LinearRisk, factor: float) -> float:
    """Return the default C: `factor` times the natural one."""
    try:
        return natural_C(objective) * factor
    except NoSlopeError:  # then C has no effect
        return 1.0


def grid_of_C(Cs: int | ArrayLike, objective: LinearRisk, ends: tuple[float, float]) -> NDArray[np.float64]:
    """Lay out values of C to try.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,)
        Number of values on a logarithmic grid, or the values themselves, in ascending order.
    objective : LinearRisk
        Risk of a linear ranker, whose natural C is the unit of the grid.
    ends : tuple of float
        First and last exponent of the grid: it reaches from 10^ends[0] to 10^ends[1] times the natural C.

    Returns
    -------
    ndarray of shape (n_Cs,)
        Values of C, in ascending order.

    Raises
    ------
    ValueError
        If the values are not positive or not in ascending order, or if the objective has no natural C.

    See Also
    --------
    natural_C : The unit of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AveragePrecision
    >>> from rankwise.linear import Objective, as_features, grid_of_C, pose
    >>> task = pose(np.array([True, False]), AveragePrecision())
    >>> grid_of_C(3, Objective(as_features(np.array([[1.0], [0.0]])), task), ends=(-1.0, 1.0)).tolist()
    [0.025, 0.25, 2.5]
    """
    if is_whole(Cs):
        if Cs < 1:  # type: ignore[operator]
            raise ValueError(f"Cs must be at least 1, got {Cs!r}; pass a number of values, or the values of C")
        return natural_C(objective) * np.logspace(*ends, int(Cs))  # type: ignore[arg-type]
    wrong = ValueError("Cs must be positive numbers in ascending order, or the number of values to try")
    try:
        values = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    if values.ndim != 1 or values.size == 0 or not ((values > 0) & (values < np.inf)).all():
        raise wrong
    if (np.diff(values) <= 0).any():
        raise wrong
    return values


def solve_path(objective: LinearRisk, Cs: NDArray[np.float64], settings: Settings) -> Iterator[SolverResult]:
    """Yield one result per C, in ascending order. Planes under the risk hold for every C, so the bundle is kept.

    Ctrl-C raises KeyboardInterrupt here.
    """
    bundle: Bundle | None = Bundle(objective.n_coefs)
    for C in Cs.tolist():
        result = cutting_plane(objective, C, settings, bundle)
        if result.interrupted:
            raise KeyboardInterrupt
        settings = replace(settings, start=result.coef)
        if Cs[-1] == C:
            bundle = None  # others use the memory while this one waits to be closed
        yield result
