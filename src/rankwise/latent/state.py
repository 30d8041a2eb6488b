"""State of the alternation after a pass over all candidates, from which it can continue, in memory or in a file.

A run that is killed and resumed takes the same steps as an undisturbed one, because each round starts from this state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.io.models import ModelFileError, read_model, write_model
from rankwise.linear.bundle import Planes
from rankwise.linear.features import Vector
from rankwise.linear.objective import Clock

Indices = NDArray[np.int64]
_KIND = "latent-checkpoint"


class OuterStep(NamedTuple):
    """One line of history: the objective after an outer step, and how well its convex problem was solved.

    objective: with each positive at its best candidate. primal, dual, gap: of the convex problem. changed: positives
    whose best candidate has changed.
    """

    objective: float
    primal: float
    dual: float
    gap: float
    changed: int
    rounds: int
    passes: int
    calls: int
    seconds: float


_WHOLE = ("changed", "rounds", "passes", "calls")


@dataclass(eq=False)
class State:
    """Best coefficients of the current convex problem, the scores of all candidates there, and the progress so far.

    coef: v. fixed: (bags,) the row that represents each positive bag. best, best_rows: (bags,) at coef, the score of
    each bag and its row. primal: of the convex problem at coef. dual: its lower bound, from `planes`. objective: at the
    end of the last outer step. working, owner, last: rows of the working set, their bags, and the round in which they
    were last used. tight: whether to solve the working set to the wanted gap, because the last pass found nothing to
    add. learnt: whether coef comes from data.
    """

    coef: Vector
    fixed: Indices
    best: Vector
    best_rows: Indices
    working: Indices
    owner: Indices
    last: Indices
    planes: Planes
    primal: float
    dual: float = 0.0
    objective: float = np.inf
    round: int = 0
    rounds: int = 0
    passes: int = 0
    seconds: float = 0.0
    finished: bool = False
    learnt: bool = False
    tight: bool = False
    reason: str = ""
    clock: Clock = field(default_factory=Clock)
    history: list[OuterStep] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """(primal − dual)/primal of the current convex problem."""
        return max((self.primal - self.dual) / self.primal, 0.0) if self.primal > 0.0 else 0.0


def write_state(path: Path, state: State) -> None:
    """Write a state, completely or not at all: floats, which may be infinite, as arrays."""
    parts = vars(state) | {f"planes.{name}": part for name, part in state.planes._asdict().items()}
    del parts["planes"]
    parts["history"] = np.array(state.history, np.float64).reshape(-1, len(OuterStep._fields))
    plain = {name: part for name, part in parts.items() if isinstance(part, bool | int | str)}
    arrays = {name: np.asarray(part) for name, part in parts.items() if name not in plain and name != "clock"}
    write_model(path, _KIND, plain | {"clock": vars(state.clock)}, arrays)


def read_state(path: Path) -> State:
    """Read a state from a file that `write_state` wrote."""
    file = read_model(path)
    if file.kind != _KIND:
        raise ModelFileError(f"{path} is not a checkpoint but a {file.kind}; choose another folder for checkpoints")
    parts: dict[str, Any] = {name: part if part.ndim else part.item() for name, part in file.arrays.items()}
    parts |= file.header
    try:
        parts["planes"] = Planes(*(parts.pop(f"planes.{name}") for name in Planes._fields))
        parts["clock"] = Clock(**parts["clock"])
        parts["history"] = [_outer_step(row) for row in parts["history"].tolist()]
        return State(**{part.name: parts[part.name] for part in fields(State)})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path}: the checkpoint has no {error}; remove the file to start again") from None


def _outer_step(row: list[float]) -> OuterStep:
    step = dict(zip(OuterStep._fields, row, strict=True))
    return OuterStep(**step | {name: int(step[name]) for name in _WHOLE})  # type: ignore[arg-type]
