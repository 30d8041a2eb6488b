"""One fit: from its checkpoint, if there is one, or from the start, to the end of the alternation.

The objective has many local minima. The start decides which one is found: the first candidate of each positive bag, or
coefficients that choose it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwise.arguments import as_array, check_known, first_true
from rankwise.io.models import ModelFileError, fingerprint, read_model, write_model
from rankwise.latent.bags import Bags, bag_means
from rankwise.latent.blocks import Indices
from rankwise.latent.cccp import OuterStep, Problem, State, WorkingSet, begin, minimise
from rankwise.linear.bundle import Planes
from rankwise.linear.cutting_plane import Settings, cutting_plane
from rankwise.linear.features import Vector, as_features
from rankwise.linear.objective import Clock, Objective, risk_of

_KIND, _FORMAT = "latent-checkpoint", 2
_WORKING = ("rows", "owner", "last", "round")
_NAMES = ("first", "random", "mean")


class Start(NamedTuple):
    """A start: by its name, with the number of a candidate for each bag, or with coefficients, which choose them."""

    name: str
    candidates: Indices | None = None
    coef: Vector | None = None


def as_start(init: Any, sizes: Indices, width: int, seed: int) -> Start:
    """Return the start that `init` means for bags of given sizes and width."""
    if isinstance(init, str):
        check_known("init", init, _NAMES)
        if init == "random":
            return Start(init, np.random.default_rng([seed, 0]).integers(0, sizes))
        return Start(init, np.zeros_like(sizes) if init == "first" else None)
    array = as_array(init.coef_ if hasattr(init, "coef_") else init, "init")
    if array.dtype.kind == "f":
        coef = array.astype(np.float64).ravel()
        if coef.size != width or not np.isfinite(coef).all():
            raise ValueError(
                f"init: {coef.size} coefficients for {width} features; pass one finite coefficient per feature"
            )
        return Start("coefficients", coef=coef)
    if array.dtype.kind not in "iu" or array.shape != sizes.shape:
        raise ValueError(
            f"init has shape {array.shape} and dtype {array.dtype}; pass the number of a candidate for each of the "
            f"{sizes.size} bags, or {width} coefficients"
        )
    if (i := first_true((array < 0) | (array >= sizes))) is not None:
        raise ValueError(f"init: bag {i} has no candidate {array[i]}; pass a number from 0 to {sizes[i] - 1}")
    return Start("given", array.astype(np.int64))


def train(
    problem: Problem,
    start: Start,
    checkpoint: str | os.PathLike[str] | None,
    report: Callable[[str], None] | None,
    stop: threading.Event | None,
) -> tuple[State, bool]:
    """Return the last state, and whether training was interrupted.

    checkpoint: a folder. report: called with a line of text after every round. stop: if set, training ends after its
    current round.
    """
    rng = np.random.default_rng(0)
    # Reads every feature once, and refuses values that are not finite.
    probe = problem.bags.scores(rng.standard_normal(problem.bags.width), problem.n_threads)
    path = None if checkpoint is None else _path(checkpoint, problem, start, probe, rng)
    state = _begun(problem, start) if path is None or not path.exists() else read_state(path, problem.bags)

    def after(state: State) -> None:
        if path is not None:
            write_state(path, state)
        if report is not None:
            report(_line(state, start))
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt

    try:
        minimise(problem, state, after)
    except KeyboardInterrupt:
        return state, True
    return state, False


def _path(
    folder: str | os.PathLike[str], problem: Problem, start: Start, probe: Vector, rng: np.random.Generator
) -> Path:
    """Return the file of this fit, named after everything that decides the result."""
    # The hinge of some random scores identifies the loss, the queries and the weights.
    hinges: list[Vector] = []
    for size in (0.0, 0.1, 1.0, 10.0):
        value, lost, gradient = risk_of(problem.task, size * rng.standard_normal(problem.relevant.size), Clock())
        hinges.append(np.append(gradient, [value, lost]))
    names = ("C", "intercept", "n_coefs", "tol", "outer_tol", "max_outer", "max_iter")
    inference = problem.task.inference
    settings = {name: getattr(problem, name) for name in names} | {"start": start.name, "format": _FORMAT}
    settings |= {"loss": repr(inference.loss), "surrogate": repr(inference.surrogate)}
    given = [part for part in (start.candidates, start.coef) if part is not None]
    name = fingerprint(settings, [problem.relevant, problem.bags.sizes, probe, *hinges, *given])
    path = Path(folder) / f"latent-{name}-{start.name}.rw"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"checkpoint={os.fspath(folder)!r} is a file; name a folder") from None
    return path


def _begun(problem: Problem, start: Start) -> State:
    coef = _fitted_to_means(problem) if start.name == "mean" else start.coef
    rows = None if start.candidates is None else problem.bags.starts + start.candidates
    return begin(problem, rows, None if coef is None else np.pad(coef, (0, problem.n_coefs - coef.size)))


def _fitted_to_means(problem: Problem) -> Vector:
    """Return the coefficients of a ranker of the bags' means."""
    objective = Objective(as_features(bag_means(problem.bags), problem.intercept), problem.task)
    result = cutting_plane(objective, problem.C, Settings(problem.tol, problem.max_iter))
    if result.interrupted:
        raise KeyboardInterrupt
    return result.coef


def _line(state: State, start: Start) -> str:
    return (
        f"start {start.name}, step {len(state.history) + (not state.finished)}, "
        f"objective {min(state.objective, state.primal):.6g}, gap {state.gap:.1e}, {state.passes} passes, "
        f"{state.clock.calls} inference calls, {state.seconds:.1f} s"
    )


def write_state(path: Path, state: State) -> None:
    """Write a state, completely or not at all: floats, which may be infinite, as arrays."""
    parts = vars(state) | {"clock": vars(state.clock), "history": [list(step) for step in state.history]}
    parts |= {f"planes.{name}": part for name, part in parts.pop("planes")._asdict().items()}
    working = parts.pop("working")
    parts |= {f"working.{name}": getattr(working, name) for name in _WORKING}
    plain = {name: part for name, part in parts.items() if isinstance(part, bool | int | str | list | dict)}
    write_model(path, _KIND, plain, {name: np.asarray(part) for name, part in parts.items() if name not in plain})


def read_state(path: Path, bags: Bags) -> State:
    """Read a state from a file that `write_state` wrote."""
    file = read_model(path)
    if file.kind != _KIND:
        raise ModelFileError(f"{path} is not a checkpoint but a {file.kind}; choose another folder for checkpoints")
    parts: dict[str, Any] = {name: part if part.ndim else part.item() for name, part in file.arrays.items()}
    parts |= file.header
    try:
        parts["planes"] = Planes(*(parts.pop(f"planes.{name}") for name in Planes._fields))
        parts["working"] = WorkingSet(bags, *(parts.pop(f"working.{name}") for name in _WORKING))
        parts["clock"] = Clock(**parts["clock"])
        parts["history"] = [OuterStep(*step) for step in parts["history"]]
        return State(**{part.name: parts[part.name] for part in fields(State)})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path}: the checkpoint has no {error}; remove the file to start again") from None
