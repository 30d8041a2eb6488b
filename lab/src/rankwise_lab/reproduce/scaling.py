"""Figures 2 and 3 of the paper: how the time in inference grows with the samples, for AP and for NDCG loss.

Training, as in the paper: samples of one class are drawn along three axes (all at 1:10, negatives with 227 positives,
positives with 200 negatives), a model is trained on them with each method, and the time in all its calls of inference
is summed. C is the one chosen for the whole class, the same at all sizes. Calls: one call on normal scores along
the same axes, to larger sizes; the published methods, whose time grows as P·N, stop at a limit of P·N.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rankwise import RankSVM
from rankwise.inference import count_work
from rankwise_lab import pieces
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.timing import THREADS, fastest, unconverged
from rankwise_lab.reproduce.action import ActionExperiment
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.scaling_curves import (
    QS,
    ROWS,
    SORT,
    ZERO_ONE,
    Axis,
    Curve,
    axes,
    largest_of,
    time_call,
    within,
)

# The class of the paper's figures.
CLASS = "phoning"


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """points, repeats: sizes along an axis, and how often each is timed; the shortest time counts.

    rounds: passes over all sizes of calls, so that a slow phase of the machine does not fall on a size alone. largest:
    samples of the kind that grows, in calls. pairs: the most P·N of the published methods. tol: the relative duality
    gap to train to. seed: of the samples that are drawn.
    """

    training_points: int = 6
    training_repeats: int = 5
    points: int = 11
    repeats: int = 3
    rounds: int = 2
    largest: int = 10**7
    pairs: float = 1.5e9
    tol: float = 1e-3
    seed: int = 0

    @classmethod
    def quick(cls) -> Plan:
        return cls(training_points=3, points=5, largest=10**5, pairs=5e7)


def draw_samples(relevant: NDArray[np.bool_], n_pos: int, n_neg: int, seed: int) -> NDArray[np.int64]:
    """Draw rows of n_pos positives and n_neg negatives, ascending; smaller draws are contained in larger ones."""
    rng = np.random.default_rng(seed)
    rows = []
    for kind, count in ((relevant, n_pos), (~relevant, n_neg)):
        members = np.flatnonzero(kind)
        if members.size < count:
            raise ValueError(f"{count:,} samples of one class are needed; there are {members.size:,}")
        rows.append(rng.permutation(members)[:count])
    return np.sort(np.concatenate(rows))


class ScalingExperiment:
    """The experiment, on one of the classes of `action`; finished pieces, one file per size, are in `folder`."""

    def __init__(
        self, action: ActionExperiment, folder: Path, plan: Plan, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.action, self.data, self.plan, self._say = action, action.data, plan, say
        self.k, self.training_axes = _first_with_enough(self.data, action.classes, plan.training_points)
        self.relevant = np.ascontiguousarray(self.data.Y[:, self.k])
        self.axes = axes(plan.points, (plan.largest,) * 3)
        self.pieces = pieces.Pieces(folder, plan, {"samples": self.data.digest}, after=action.plan)

    @cached_property
    def Cs(self) -> dict[str, dict[str, float]]:
        """By measure and loss, the C chosen for the whole class."""
        return {loss: {name: self.action.chosen(self.k, name, loss) for name in (ZERO_ONE, loss)} for loss in ROWS}

    def run(self) -> dict[str, list[dict[str, Any]]]:
        """The points of both parts: axis, P, N, load, and by loss and curve seconds and calls."""
        with threadpool_limits(limits=THREADS):
            training = [self._kept("training", *place, 0, self._trained) for place in _places(self.training_axes)]
            return {"training": training, "calls": self._calls()}

    def _calls(self) -> list[dict[str, Any]]:
        places = _places(self.axes)
        rounds = [[self._kept("calls", *place, n, self._called) for place in places] for n in range(self.plan.rounds)]
        return [_least(points) for points in zip(*rounds, strict=True)]

    def _kept(
        self, part: str, axis: Axis, i: int, number: int, measure: Callable[[int, int], dict[str, dict[str, Any]]]
    ) -> dict[str, Any]:
        n_pos, n_neg = axis.sizes[i]

        def compute(_: Path) -> dict[str, Any]:
            self._say(f"{part}, {axis.name}: P = {n_pos:,}, N = {n_neg:,}")
            load = [os.getloadavg()[0]] if hasattr(os, "getloadavg") else []
            return {"axis": axis.name, "P": n_pos, "N": n_neg, "load": load, "rows": measure(n_pos, n_neg)}

        return self.pieces.kept(f"{part}-{axis.name}-{axis.x[i]}-{number}", compute)

    def _called(self, n_pos: int, n_neg: int) -> dict[str, dict[str, Any]]:
        """Seconds of a call, all curves of both losses taking turns; and what Algorithm 1 did, counted."""
        sample = scores.normal(n_pos, n_neg)
        keys = [(loss, name) for loss, row in ROWS.items() for name in within(row, n_pos * n_neg, self.plan.pairs)]
        curves = {" ".join(key): ROWS[key[0]][key[1]] for key in keys} | {SORT: Curve(SORT, method=SORT)}
        seconds = time_call(curves, sample, self.plan.repeats)
        found: dict[str, dict[str, Any]] = {loss: {} for loss in ROWS}
        for loss, name in keys:
            found[loss][name] = _point(seconds[f"{loss} {name}"], 1)
        for loss in ROWS:
            found[loss][QS] |= count_work(*sample, loss)._asdict()
        return found | {SORT: {SORT: _point(seconds[SORT], 1)}}

    def _trained(self, n_pos: int, n_neg: int) -> dict[str, dict[str, Any]]:
        """Seconds in inference, and calls, in a training; methods take turns. What is the same is trained once."""
        rows = draw_samples(self.relevant, n_pos, n_neg, self.plan.seed)
        samples = np.ascontiguousarray(self.data.X[rows], np.float64), self.relevant[rows]
        tasks = {
            (loss, name): (curve, self.Cs[loss][curve.loss or ZERO_ONE])
            for loss, row in ROWS.items()
            for name, curve in row.items()
        }
        distinct = dict.fromkeys(tasks.values())
        for task in distinct:  # run a little of each first, so that nothing is compiled while it is timed
            self._train(*task, *samples, max_iter=3)
        fits = {task: partial(self._train, *task, *samples) for task in distinct}
        best = fastest(fits, self.plan.training_repeats, _seconds)
        return {loss: {name: best[tasks[loss, name]] for name in row} for loss, row in ROWS.items()}

    def _train(
        self, curve: Curve, C: float, X: NDArray[np.float64], y: NDArray[np.bool_], max_iter: int = 10_000
    ) -> dict[str, Any]:
        model = RankSVM(curve.of(), C, method=curve.method, tol=self.plan.tol, max_iter=max_iter, n_threads=THREADS)
        with unconverged():
            model.fit(X, y)
        found = _point(model.timing_["inference"], model.timing_["calls"])
        return found | {"converged": bool(model.converged_)}


def _places(all_axes: list[Axis]) -> list[tuple[Axis, int]]:
    return [(axis, i) for axis in all_axes for i in range(len(axis.x))]


def _first_with_enough(data: ActionData, known: list[int], points: int) -> tuple[int, Any]:
    """Return the paper's class, or the first with enough samples for the three axes; and those axes."""
    why = "there is no class"
    for k in sorted(known, key=lambda k: data.classes[k] != CLASS):
        n_pos = int(data.Y[:, k].sum())
        try:
            return k, largest_of(n_pos, len(data.Y) - n_pos, points)
        except ValueError as error:
            why = f"class {data.classes[k]!r} has too few samples: {error}"
    raise ValueError(why)


def _least(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the shortest time of each curve, of several points of one size."""
    rows = {
        loss: {name: min((point["rows"][loss][name] for point in points), key=_seconds) for name in row}
        for loss, row in points[0]["rows"].items()
    }
    return {**points[0], "load": [load for point in points for load in point["load"]], "rows": rows}


def _seconds(point: Mapping[str, Any]) -> float:
    return float(point["seconds"])


def _point(seconds: float, calls: int) -> dict[str, Any]:
    return {"seconds": float(seconds), "calls": int(calls)}
