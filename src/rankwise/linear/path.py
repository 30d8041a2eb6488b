"""A path of C: one problem after the other, each begun where the one before ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import is_whole
from rankwise.linear.bundle import Bundle
from rankwise.linear.objective import LinearRisk
from rankwise.linear.solvers import SOLVERS, Settings, SolverResult, cutting_plane

_SMALLEST = 1e-50

# A slope of no more than this, relative to the features along it, is a sum that should have been 0.
_ROUNDING = 1e-14


class NoSlopeError(ValueError):
    """The risk is level at v = 0."""


def natural_C(objective: LinearRisk) -> float:
    """The C at which one step down the risk's first slope would undo a loss of 1: 1/‖normal‖² at v = 0.

    It makes a grid of C independent of the features' scale.
    """
    normal = objective.evaluate(np.zeros(objective.n_coefs)).cut.normal
    if 0.0 < np.abs(normal).max(initial=0.0) < _SMALLEST:
        raise ValueError(f"features are below {_SMALLEST:g}, too small to be squared; scale them first")
    squared = float(normal @ normal)
    along = objective.largest_score(normal / np.sqrt(squared)) if squared > 0.0 else 0.0
    if np.sqrt(squared) <= _ROUNDING * along:
        raise NoSlopeError("no feature tells positives from negatives at all: every feature has the same mean in both")
    return 1.0 / squared


def usual_C(objective: LinearRisk, factor: float) -> float:
    """A C where none is given: `factor` times the natural one."""
    try:
        return natural_C(objective) * factor
    except NoSlopeError:  # then C has no effect
        return 1.0


def grid_of_C(Cs: int | ArrayLike, objective: LinearRisk, ends: tuple[float, float]) -> NDArray[np.float64]:
    """Values of C as they are, or a number of them between powers of ten, `ends`, of the natural one."""
    if is_whole(Cs):
        if Cs < 1:  # type: ignore[operator]
            raise ValueError(f"Cs must be at least 1, or values of C, got {Cs!r}")
        return natural_C(objective) * np.logspace(*ends, int(Cs))  # type: ignore[arg-type]
    wrong = ValueError("Cs must be positive numbers in ascending order, or how many of them to lay out")
    try:
        values = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    if values.ndim != 1 or values.size == 0 or not ((values > 0) & (values < np.inf)).all():
        raise wrong
    if (np.diff(values) <= 0).any():
        raise wrong
    return values


def solve_path(
    objective: LinearRisk, Cs: NDArray[np.float64], solver: str, settings: Settings
) -> Iterator[SolverResult]:
    """One result a C, in ascending order. Planes under the risk hold for every C, so the bundle is kept."""
    bundle = Bundle(objective.n_coefs)
    for C in Cs:
        if solver == "cutting-plane":
            result = cutting_plane(objective, float(C), settings, bundle)
        else:
            result = SOLVERS[solver](objective, float(C), settings)
        yield result
        settings = replace(settings, start=result.coef)
